package objectstest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tract-vcs/tract/objects"
)

var gets = []promise{
	{"Get/each id once, missing ones not", getOnce},
	{"Get/more than a page", getMany},
	{"Get/bytes come back as they were put", getBytes},
	{"Get/an object is the caller's own", getOwn},
	{"Get/the body may end the loop", getBreak},
	{"Get/the body may call the store", getBody},
	{"Missing/in the order asked", missing},
	{"Find/any number of digits", find},
	{"Find/refuses what is no digit", findBad},
}

func byID(a, b objects.Object) int { return a.ID.Compare(b.ID) }

func getOnce(t *testing.T, s objects.Store) {
	a, b, absent := content("a"), content("b"), content("absent")
	put(t, s, a, b)
	got, err := collect(s.Get(t.Context(), []objects.ID{b.ID, absent.ID, a.ID, b.ID, absent.ID, {}}))
	if err != nil {
		t.Fatal(err)
	}
	want := []objects.Object{a, b}
	slices.SortFunc(want, byID)
	slices.SortFunc(got, byID)
	wantObjects(t, got, want)
	if got, err := collect(s.Get(t.Context(), nil)); len(got) != 0 || err != nil {
		t.Errorf("get of no ids: %d objects, %v", len(got), err)
	}
	if _, err := objects.Read(t.Context(), s, absent.ID); !errors.Is(err, objects.ErrNotFound) {
		t.Errorf("read of an absent object: %v", err)
	}
}

func getMany(t *testing.T, s objects.Store) {
	var want []objects.Object
	for i := range 1500 {
		want = append(want, content(fmt.Sprint("many ", i)))
	}
	for i := range 3 {
		want = append(want, content(strings.Repeat(fmt.Sprint(i), objects.MaxSize)))
	}
	put(t, s, want...)
	got, err := collect(s.Get(t.Context(), ids(want)))
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(got, byID)
	slices.SortFunc(want, byID)
	wantObjects(t, got, want)
}

func getBytes(t *testing.T, s objects.Store) {
	var edges []objects.ID
	for i := range objects.MaxEdges {
		edges = append(edges, objects.Hash(fmt.Append(nil, i)))
	}
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	for _, want := range []objects.Object{
		objects.New(objects.KindContent, nil, nil, nil),
		objects.New(objects.KindCommit, edges, edges, every),
		objects.New(objects.KindCommit, edges[:1], nil, []byte("\xff\xfe\x00\xed\xa0\x80 \r\n")),
		objects.New(objects.KindChunk, nil, edges[:2], make([]byte, objects.MaxSize)),
		objects.New(objects.KindTools, nil, nil, []byte("\x00")),
	} {
		put(t, s, want)
		got, err := objects.Read(t.Context(), s, want.ID)
		if err != nil {
			t.Fatal(err)
		}
		wantObjects(t, []objects.Object{got}, []objects.Object{want})
	}
}

func getOwn(t *testing.T, s objects.Store) {
	given := objects.New(objects.KindCommit, []objects.ID{{1}}, []objects.ID{{2}}, []byte("mine"))
	want := objects.New(objects.KindCommit, []objects.ID{{1}}, []objects.ID{{2}}, []byte("mine"))
	put(t, s, given)
	for range 2 { // first spoil what was given, then what was got
		given.Data[0], given.Parents[0], given.Links[0] = 'X', objects.ID{}, objects.ID{}
		got, err := objects.Read(t.Context(), s, want.ID)
		if err != nil {
			t.Fatal(err)
		}
		wantObjects(t, []objects.Object{got}, []objects.Object{want})
		given = got
	}
}

func getBreak(t *testing.T, s objects.Store) {
	h := grow(objects.ID{}, "break", 10)
	put(t, s, h.all()...)
	for range s.Get(t.Context(), ids(h.all())) {
		break
	}
	for range ChainWithContent(t.Context(), s, h.tip()) {
		break
	}
	apply(t, s, move(branch, objects.ID{}, content("after"))) // waits for ever if the loops left a lock
}

// getBody does in the body of both loops all that a store can do.
func getBody(t *testing.T, s objects.Store) {
	h := grow(objects.ID{}, "body", 400)
	put(t, s, h.all()...)
	n := 0
	body := func(o objects.Object, err error) {
		if n++; err != nil || n%100 != 1 {
			return
		}
		ctx := soon(t)
		if _, err := objects.Read(ctx, s, o.ID); err != nil {
			t.Fatalf("read in a loop: %v", err)
		}
		if _, err := s.Refs(ctx, objects.RefQuery{}); err != nil {
			t.Fatalf("list refs in a loop: %v", err)
		}
		next := content(fmt.Sprint("put in a loop ", n))
		if err := s.Apply(ctx, move(fmt.Sprint("refs/heads/", n), objects.ID{}, next)); err != nil {
			t.Fatalf("apply in a loop: %v", err)
		}
		err = s.Update(ctx, branch, func(tip objects.ID) (objects.Batch, error) {
			return move(branch, tip, commit(tip, next.ID)), nil
		})
		if err != nil {
			t.Fatalf("update in a loop: %v", err)
		}
		if got := commitsOf(t, s, h.tip(), 3); len(got) != 3 {
			t.Fatalf("chain in a loop: %d commits", len(got))
		}
	}
	for o, err := range s.Get(t.Context(), ids(h.commits)) {
		body(o, err)
	}
	for o, err := range ChainWithContent(t.Context(), s, h.tip()) {
		body(o, err)
	}
	if n != 3*len(h.commits) {
		t.Errorf("the loops yielded %d objects, want %d", n, 3*len(h.commits))
	}
}

func missing(t *testing.T, s objects.Store) {
	here := []objects.Object{content("here"), content("here too")}
	put(t, s, here...)
	var ask, want []objects.ID
	for i := range 1000 {
		absent := content(fmt.Sprint("absent ", i)).ID
		ask, want = append(ask, absent, here[i%2].ID), append(want, absent)
	}
	got, err := s.Missing(t.Context(), ask)
	if err != nil {
		t.Fatal(err)
	}
	wantIDs(t, got, want)
	if got, err := s.Missing(t.Context(), nil); len(got) != 0 || err != nil {
		t.Errorf("missing of no ids: %v, %v", got, err)
	}
}

func find(t *testing.T, s objects.Store) {
	var all []objects.Object
	for i := range 600 {
		kind := objects.KindContent
		if i%3 == 0 {
			kind = objects.KindManifest
		}
		all = append(all, objects.New(kind, nil, nil, fmt.Append(nil, i)))
	}
	put(t, s, all...)
	slices.SortFunc(all, byID)
	whole := all[42].ID.String()
	prefixes := []string{"", "ffffffffffffff", whole, strings.ToUpper(whole), whole + "0"}
	for n := 1; n <= 7; n++ {
		prefixes = append(prefixes, whole[:n])
	}
	for _, prefix := range prefixes {
		for _, kind := range []objects.Kind{0, objects.KindContent, objects.KindManifest, objects.KindList} {
			var want []objects.ID
			for _, o := range all {
				if (kind == 0 || o.Kind == kind) && strings.HasPrefix(o.ID.String(), strings.ToLower(prefix)) {
					want = append(want, o.ID)
				}
			}
			for _, limit := range []int{0, 1, 7} {
				got, err := s.Find(t.Context(), kind, prefix, limit)
				if err != nil {
					t.Fatalf("find %q: %v", prefix, err)
				}
				if limit > 0 && len(want) > limit {
					wantIDs(t, got, want[:limit])
				} else {
					wantIDs(t, got, want)
				}
			}
		}
	}
}

func findBad(t *testing.T, s objects.Store) {
	put(t, s, content("one"))
	for _, prefix := range []string{"g", "12x", " ", "0x12", "é"} {
		if got, err := s.Find(t.Context(), 0, prefix, 0); err == nil {
			t.Errorf("find %q gave %v and no error", prefix, got)
		}
	}
}
