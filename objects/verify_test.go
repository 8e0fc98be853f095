package objects_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/tract-vcs/tract/objects"
)

// liar is a store that changes what it yields.
type liar struct {
	objects.Store
	lie func(objects.Object) objects.Object
}

func (l liar) twist(seq iter.Seq2[objects.Object, error]) iter.Seq2[objects.Object, error] {
	return func(yield func(objects.Object, error) bool) {
		for o, err := range seq {
			if err == nil {
				o = l.lie(o)
			}
			if !yield(o, err) {
				return
			}
		}
	}
}

func (l liar) Get(ctx context.Context, ids []objects.ID) iter.Seq2[objects.Object, error] {
	return l.twist(l.Store.Get(ctx, ids))
}

func (l liar) Chain(ctx context.Context, tip objects.ID, o objects.ChainOptions) iter.Seq2[objects.Object, error] {
	return l.twist(l.Store.Chain(ctx, tip, o))
}

// story is five commits with a content each, newest first.
func story(t *testing.T) (s objects.Store, commits, contents []objects.Object) {
	t.Helper()
	s = objects.Memory()
	var parents []objects.ID
	for i := range 5 {
		c := objects.New(objects.KindContent, nil, nil, fmt.Append(nil, "content ", i))
		k := objects.New(objects.KindCommit, parents, []objects.ID{c.ID}, fmt.Append(nil, "commit ", i))
		parents = []objects.ID{k.ID}
		commits, contents = append([]objects.Object{k}, commits...), append([]objects.Object{c}, contents...)
	}
	if err := s.Apply(t.Context(), objects.Batch{Put: append(commits[:5:5], contents...)}); err != nil {
		t.Fatal(err)
	}
	return s, commits, contents
}

// lies are changes to one object that a hash must show.
var lies = map[string]func(objects.Object) objects.Object{
	"data":   func(o objects.Object) objects.Object { o.Data[0] ^= 1; return o },
	"cut":    func(o objects.Object) objects.Object { o.Data = o.Data[1:]; return o },
	"kind":   func(o objects.Object) objects.Object { o.Kind++; return o },
	"parent": func(o objects.Object) objects.Object { o.Parents = append(o.Parents, objects.ID{1}); return o },
	"link":   func(o objects.Object) objects.Object { o.Links = append(o.Links, objects.ID{1}); return o },
	"id":     func(o objects.Object) objects.Object { o.ID[31] ^= 0x80; return o },
	"other": func(objects.Object) objects.Object {
		return objects.New(objects.KindContent, nil, nil, []byte("other"))
	},
}

func TestVerifyGetNeverYieldsCorruptBytes(t *testing.T) {
	for name, lie := range lies {
		s, commits, _ := story(t)
		bad := commits[2].ID
		lying := objects.Verify(liar{s, func(o objects.Object) objects.Object {
			if o.ID == bad {
				return lie(o)
			}
			return o
		}})
		var ids []objects.ID
		for _, c := range commits {
			ids = append(ids, c.ID)
		}
		good, damaged := 0, 0
		for o, err := range lying.Get(t.Context(), ids) {
			switch {
			case err == nil:
				good++
			case errors.Is(err, objects.ErrCorrupt) && len(o.Data) == 0:
				damaged++
			default:
				t.Errorf("%s: %+v, %v", name, o, err)
			}
		}
		if good != 4 || damaged != 1 {
			t.Errorf("%s changed in one of five: %d yielded, %d damaged", name, good, damaged)
		}
		var corrupt *objects.CorruptError
		if _, err := objects.Read(t.Context(), lying, bad); !errors.As(err, &corrupt) || corrupt.ID.IsZero() {
			t.Errorf("%s: read: %v, want a CorruptError that names the object", name, err)
		}
	}
}

func TestVerifyChainEndsAtADamagedCommit(t *testing.T) {
	for name, lie := range lies {
		s, commits, _ := story(t)
		lying := objects.Verify(liar{s, func(o objects.Object) objects.Object {
			if o.ID == commits[2].ID {
				return lie(o)
			}
			return o
		}})
		n := 0
		var last error
		for _, last = range lying.Chain(t.Context(), commits[0].ID, objects.ChainOptions{}) {
			n++
		}
		if n != 3 || !errors.Is(last, objects.ErrCorrupt) {
			t.Errorf("%s: %d elements, then %v; want 3 that end with the damage", name, n, last)
		}
	}
}

func TestVerifyChainKeepsToFirstParents(t *testing.T) {
	s, commits, _ := story(t)
	lying := objects.Verify(liar{s, func(o objects.Object) objects.Object {
		if o.ID == commits[2].ID {
			return commits[3] // a true object in the wrong place
		}
		return o
	}})
	var last error
	n := 0
	for _, last = range lying.Chain(t.Context(), commits[0].ID, objects.ChainOptions{}) {
		n++
	}
	if n != 3 || !errors.Is(last, objects.ErrCorrupt) {
		t.Errorf("a skipped commit: %d elements, then %v", n, last)
	}
}

func TestWalkChecksWhatItDoesNotYield(t *testing.T) {
	_, commits, _ := story(t)
	get := func(id objects.ID) (objects.Object, error) {
		for _, c := range commits {
			if c.ID == id {
				c.Data = bytes.Clone(c.Data)
				if id == commits[1].ID {
					c.Data[0] ^= 1
				}
				return c, nil
			}
		}
		return objects.Object{}, &objects.NotFoundError{ID: id}
	}
	var last error
	for _, last = range objects.Walk(t.Context(), get, commits[0].ID, objects.ChainOptions{Stop: []objects.ID{commits[4].ID}}) {
	}
	if !errors.Is(last, objects.ErrCorrupt) {
		t.Errorf("the way to a stop led over a damaged commit, and the walk ended with %v", last)
	}
}

// TestALargeBatchIsCheckedThroughout spoils two objects of a batch that is checked by
// many at once, wherever they lie: nothing of it is put, and the first is named.
func TestALargeBatchIsCheckedThroughout(t *testing.T) {
	const n = 5000
	list := make([]objects.Object, n)
	for i := range list {
		list[i] = objects.New(objects.KindContent, nil, nil, fmt.Append(nil, "content ", i))
	}
	for _, at := range []int{0, 511, n/2 - 1, n / 2, n - 2} {
		s := objects.Verify(objects.Memory())
		bad := slices.Clone(list)
		bad[at].Data, bad[n-1].Data = []byte("another"), []byte("another")
		err := s.Apply(t.Context(), objects.Batch{Put: bad})
		if c := (*objects.CorruptError)(nil); !errors.As(err, &c) || c.ID != list[at].ID {
			t.Errorf("objects %d and the last are spoiled: %v", at, err)
		}
		if missing, err := s.Missing(t.Context(), []objects.ID{list[1].ID}); err != nil || len(missing) != 1 {
			t.Errorf("objects %d and the last are spoiled: others of the batch are there: %v, %v", at, missing, err)
		}
	}
	s := objects.Verify(objects.Memory())
	if err := s.Apply(t.Context(), objects.Batch{Put: list}); err != nil {
		t.Fatal(err)
	}
}
