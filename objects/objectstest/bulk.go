package objectstest

import (
	"errors"
	"iter"
	"slices"
	"testing"

	"github.com/tract-vcs/tract/objects"
)

// bulks hold objects.Line and objects.Load to what Chain and Get give, whether the
// engine is an objects.Bulk or not.
var bulks = []promise{
	{"Bulk/Line is Chain in runs", bulkLine},
	{"Bulk/Load is Get in runs", bulkLoad},
	{"Bulk/a hole ends it", bulkHole},
	{"Bulk/a loop may end early and may use the store", bulkLoops},
}

// flat copies what runs hold, which is good for a moment only.
func flat(runs iter.Seq2[[]objects.Object, error]) (list []objects.Object, err error) {
	for run, err := range runs {
		if err != nil {
			return list, err
		}
		for _, o := range run {
			o.Parents, o.Links, o.Data = slices.Clone(o.Parents), slices.Clone(o.Links), slices.Clone(o.Data)
			list = append(list, o)
		}
	}
	return list, nil
}

// line is flat for a line.
func line(runs iter.Seq2[objects.Run, error]) ([]objects.Object, error) {
	return flat(func(yield func([]objects.Object, error) bool) {
		for run, err := range runs {
			if err != nil {
				yield(nil, err)
				return
			}
			for o, err := range run.All() {
				if !yield([]objects.Object{o}, err) {
					return
				}
			}
		}
	})
}

func bulkLine(t *testing.T, s objects.Store) {
	h := grow(objects.ID{}, "line", 5000)
	for part := range slices.Chunk(h.all(), 900) { // some of it is sealed, some is not
		put(t, s, part...)
	}
	for _, limit := range []int{0, 1, 9, 300, 4999, 5000, 6000} {
		got, err := line(objects.Line(soon(t), s, h.tip(), limit))
		if err != nil {
			t.Fatalf("limit %d: %v", limit, err)
		}
		want := h.commits
		if limit > 0 {
			want = h.commits[:min(limit, len(h.commits))]
		}
		wantObjects(t, got, want)
	}
	got, err := line(objects.Line(soon(t), s, h.tip(), 0, h.commits[7].ID))
	if err != nil {
		t.Fatal(err)
	}
	wantObjects(t, got, h.commits[:7])
	if got, err := line(objects.Line(soon(t), s, objects.ID{}, 0)); err != nil || len(got) != 0 {
		t.Errorf("the line of nothing: %d commits, %v", len(got), err)
	}
}

func bulkLoad(t *testing.T, s objects.Store) {
	h := grow(objects.ID{}, "line", 3000)
	for part := range slices.Chunk(h.all(), 900) {
		put(t, s, part...)
	}
	var ids []objects.ID
	for i, c := range slices.Backward(h.contents) {
		if i%3 != 0 {
			ids = append(ids, c.ID)
		}
	}
	missing := content("never put")
	ids = append(ids, h.contents[0].ID, ids[4], missing.ID, h.tip())
	got, err := flat(objects.Load(soon(t), s, ids))
	if err != nil {
		t.Fatal(err)
	}
	want, err := collect(s.Get(soon(t), ids))
	if err != nil {
		t.Fatal(err)
	}
	byID := func(a, b objects.Object) int { return a.ID.Compare(b.ID) }
	if _, ok := objects.As[objects.Bulk](s); ok {
		if got[0].ID != ids[0] || got[len(got)-1].ID != h.tip() {
			t.Error("objects come in another order than they were asked for")
		}
	}
	slices.SortFunc(got, byID)
	slices.SortFunc(want, byID)
	wantObjects(t, got, want)
}

func bulkHole(t *testing.T, s objects.Store) {
	h := grow(objects.ID{}, "line", 2000)
	hole := h.commits[1500]
	put(t, s, slices.DeleteFunc(h.all(), func(o objects.Object) bool { return o.ID == hole.ID })...)
	got, err := line(objects.Line(soon(t), s, h.tip(), 0))
	if none := (*objects.NotFoundError)(nil); !errors.As(err, &none) || none.ID != hole.ID {
		t.Errorf("a hole in a line is %v", err)
	}
	wantObjects(t, got, h.commits[:1500])
}

// firstOf is the id of the first commit of a run.
func firstOf(run *objects.Run) (id objects.ID) {
	for o := range run.All() {
		return o.ID
	}
	return id
}

func bulkLoops(t *testing.T, s objects.Store) {
	h := grow(objects.ID{}, "line", 4000)
	put(t, s, h.all()...)
	n, runs := 0, 0
	for run, err := range objects.Line(soon(t), s, h.tip(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		first := firstOf(&run)
		put(t, s, content("put by the body of a loop over "+first.String()))
		if _, err := line(objects.Line(soon(t), s, h.tip(), 50)); err != nil {
			t.Fatal(err)
		}
		if again := firstOf(&run); again != first || again != h.commits[n].ID {
			t.Fatal("a run changed while it was used")
		}
		n += run.Len()
		if runs++; n > 2000 || runs == 100 { // one without Bulk gives them one by one
			break
		}
	}
}
