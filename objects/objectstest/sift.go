package objectstest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/tract-vcs/tract/objects"
)

// sifts test objects.Sift, which walks histories with their content.
var sifts = []promise{
	{"Sift/what may match comes with its commit, newest first", siftLine},
	{"Sift/every commit once, other parents last", siftMerges},
	{"Sift/content of every size and place", siftContents},
	{"Sift/an object in chunks is always let through", siftChunks},
	{"Sift/a hole ends it", siftHole},
	{"Sift/a loop may stop, and read the store", siftStop},
	{"Sift/ends with the context", siftContext},
	{"Sift/what is written meanwhile does no harm", siftBeside},
}

func holding(text string) func([]byte) bool {
	return func(data []byte) bool { return bytes.Contains(data, []byte(text)) }
}

// sift gives the commits found; each has its content behind it.
func sift(t *testing.T, s objects.Store, may func([]byte) bool, tips ...objects.ID) (commits, contents []objects.Object) {
	t.Helper()
	all, err := collect(objects.Sift(soon(t), s, tips, may))
	if err != nil {
		t.Fatalf("sift: %v", err)
	}
	for pair := range slices.Chunk(all, 2) {
		if len(pair) != 2 || pair[0].Links[0] != pair[1].ID {
			t.Fatalf("a commit without its content: %+v", pair)
		}
		commits, contents = append(commits, pair[0]), append(contents, pair[1])
	}
	return commits, contents
}

func siftLine(t *testing.T, s objects.Store) {
	h := grow(objects.ID{}, "line", 1500)
	put(t, s, h.all()...)
	var commits, contents []objects.Object
	for i, o := range h.contents {
		if bytes.Contains(o.Data, []byte("7")) {
			commits, contents = append(commits, h.commits[i]), append(contents, o)
		}
	}
	gotCommits, gotContents := sift(t, s, holding("7"), h.tip())
	wantObjects(t, gotCommits, commits)
	wantObjects(t, gotContents, contents)
	if none, _ := sift(t, s, holding("needle"), h.tip()); len(none) > 0 {
		t.Errorf("%d commits have what is nowhere", len(none))
	}
	all, _ := sift(t, s, holding(""), h.tip())
	wantObjects(t, all, h.commits)
	if none, _ := sift(t, s, holding("")); len(none) > 0 {
		t.Errorf("no tip leads to %d commits", len(none))
	}
}

func siftMerges(t *testing.T, s objects.Store) {
	base := grow(objects.ID{}, "base", 600)
	left := grow(base.commits[300].ID, "left", 500)
	right := grow(base.commits[100].ID, "right", 500)
	said := content("merged")
	merge := objects.New(objects.KindCommit, []objects.ID{left.tip(), right.tip(), base.tip()}, []objects.ID{said.ID}, nil)
	silent := objects.New(objects.KindCommit, []objects.ID{merge.ID}, nil, nil)
	after := grow(silent.ID, "after", 300)
	put(t, s, slices.Concat(base.all(), left.all(), right.all(), after.all(), []objects.Object{said, merge, silent})...)
	got, _ := sift(t, s, holding(""), after.tip(), right.commits[5].ID, after.tip())
	wantObjects(t, got, slices.Concat(after.commits, []objects.Object{merge}, left.commits, base.commits[300:],
		right.commits[5:], base.commits[100:300], right.commits[:5], base.commits[:100]))
	got, _ = sift(t, s, holding("right 1"), after.tip())
	if len(got) != 111 {
		t.Errorf("%d commits of the other parent say 1, 10 to 19 and 100 to 199", len(got))
	}
}

// siftContents has content that is small, large, empty, and said before: elsewhere.
func siftContents(t *testing.T, s objects.Store) {
	said := grow(objects.ID{}, "said", 400)
	put(t, s, said.all()...)
	var want, list []objects.Object
	tip := said.tip()
	for i := range 700 {
		o := content("needle and hay")
		switch i % 7 {
		case 1:
			o = said.contents[i/2]
		case 2:
			o = content(fmt.Sprint(i, string(bytes.Repeat([]byte("large "), 1500)), "needle"))
		case 3:
			o = content(fmt.Sprint(i, string(bytes.Repeat([]byte("large "), 1500))))
		case 4:
			o = content("")
		case 5:
			o = content(fmt.Sprint(i, " of its own"))
		}
		c := commit(tip, o.ID)
		list, tip = append(list, o, c), c.ID
		if i%7 == 0 || i%7 == 2 || i%7 == 6 {
			want = append(want, c)
		}
	}
	put(t, s, list...)
	slices.Reverse(want)
	got, _ := sift(t, s, holding("needle"), tip)
	wantObjects(t, got, want)
}

func siftChunks(t *testing.T, s objects.Store) {
	chunk := objects.New(objects.KindChunk, nil, nil, []byte("needle"))
	list := objects.New(objects.KindList, nil, []objects.ID{chunk.ID}, []byte("6"))
	first := commit(objects.ID{}, list.ID)
	h := grow(first.ID, "line", 20)
	put(t, s, append(h.all(), chunk, list, first)...)
	got, contents := sift(t, s, holding("needle"), h.tip())
	wantObjects(t, got, []objects.Object{first})
	wantObjects(t, contents, []objects.Object{list})
}

func siftHole(t *testing.T, s objects.Store) {
	h := grow(content("no commit").ID, "line", 40) // whose parent is not there
	put(t, s, h.all()...)
	got, err := collect(objects.Sift(soon(t), s, []objects.ID{h.tip()}, holding("")))
	if !errors.Is(err, objects.ErrNotFound) || len(got) != 80 {
		t.Errorf("%d objects before a hole, then %v", len(got), err)
	}
	c := commit(h.tip(), content("not there").ID)
	put(t, s, c)
	if _, err := collect(objects.Sift(soon(t), s, []objects.ID{c.ID}, holding(""))); !errors.Is(err, objects.ErrNotFound) {
		t.Errorf("a commit whose content is not there: %v", err)
	}
	if _, err := collect(objects.Sift(soon(t), s, []objects.ID{{1}}, holding(""))); !errors.Is(err, objects.ErrNotFound) {
		t.Errorf("a tip that is not there: %v", err)
	}
}

func siftStop(t *testing.T, s objects.Store) {
	h := grow(objects.ID{}, "line", 900)
	put(t, s, h.all()...)
	n := 0
	for o, err := range objects.Sift(soon(t), s, []objects.ID{h.tip()}, holding("")) {
		if err == nil {
			_, err = objects.Read(t.Context(), s, o.ID)
		}
		if err != nil {
			t.Fatal(err)
		}
		apply(t, s, move(fmt.Sprintf("refs/heads/%d", n), objects.ID{}, content("written by the loop")))
		if n++; n == 5 {
			break
		}
	}
}

func siftContext(t *testing.T, s objects.Store) {
	h := grow(objects.ID{}, "line", 3000)
	put(t, s, h.all()...)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	for _, last = range objects.Sift(ctx, s, []objects.ID{h.tip()}, holding("")) {
		cancel()
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("it ended with %v", last)
	}
}

// siftBeside has a writer move what is searched about, if the engine does that.
func siftBeside(t *testing.T, s objects.Store) {
	h := grow(objects.ID{}, "line", 1200)
	put(t, s, h.all()...)
	written := make(chan error, 1)
	go func() { written <- walkRef(t.Context(), s, branch, 200) }()
	want := 0
	for _, o := range h.contents {
		if holding("9")(o.Data) {
			want++
		}
	}
	for range 20 {
		if got, _ := sift(t, s, holding("9"), h.tip(), h.commits[700].ID); len(got) != want {
			t.Fatalf("%d commits of %d", len(got), want)
		}
	}
	if err := <-written; err != nil {
		t.Fatal(err)
	}
}
