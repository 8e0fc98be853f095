package objects_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"

	"github.com/tract-vcs/tract/objects"
)

// bulkLiar is a liar that gives many objects at once.
type bulkLiar struct{ liar }

func (l bulkLiar) runs(seq iter.Seq2[objects.Object, error]) iter.Seq2[[]objects.Object, error] {
	return func(yield func([]objects.Object, error) bool) {
		var run []objects.Object
		for o, err := range seq {
			if err != nil {
				yield(nil, err)
				return
			}
			run = append(run, o)
		}
		for part := range slices.Chunk(run, 2) {
			if !yield(part, nil) {
				return
			}
		}
	}
}

func (l bulkLiar) Line(ctx context.Context, tip objects.ID, limit int) iter.Seq2[objects.Run, error] {
	return func(yield func(objects.Run, error) bool) {
		for list, err := range l.runs(l.Chain(ctx, tip, objects.ChainOptions{Limit: limit})) {
			if !yield(objects.Run{Objects: list}, err) {
				return
			}
		}
	}
}

func (l bulkLiar) Load(ctx context.Context, ids []objects.ID) iter.Seq2[[]objects.Object, error] {
	return l.runs(l.Get(ctx, ids))
}

// linesOf gives runs that are objects.
func linesOf(runs iter.Seq2[objects.Run, error]) iter.Seq2[[]objects.Object, error] {
	return func(yield func([]objects.Object, error) bool) {
		for run, err := range runs {
			if !yield(run.Objects, err) {
				return
			}
		}
	}
}

// TestVerifyRunsNeverHoldWrongBytes lies about one object of a run: it and what comes
// with it and after it is not given out.
func TestVerifyRunsNeverHoldWrongBytes(t *testing.T) {
	for name, lie := range lies {
		s, commits, _ := story(t)
		lying := objects.Verify(bulkLiar{liar{s, func(o objects.Object) objects.Object {
			if o.ID == commits[2].ID {
				return lie(o)
			}
			return o
		}}})
		var ids []objects.ID
		for _, c := range commits {
			ids = append(ids, c.ID)
		}
		for what, runs := range map[string]iter.Seq2[[]objects.Object, error]{
			"line": linesOf(objects.Line(t.Context(), lying, ids[0], 0)), "load": objects.Load(t.Context(), lying, ids),
		} {
			n := 0
			var last error
			for run, err := range runs {
				if last = err; err == nil {
					n += len(run)
				}
			}
			if n != 2 || !errors.Is(last, objects.ErrCorrupt) {
				t.Errorf("%s of five with a %s changed in the third: %d objects, %v", what, name, n, last)
			}
		}
	}
}

// TestVerifyLineKeepsToFirstParents gives a good commit in the place of another.
func TestVerifyLineKeepsToFirstParents(t *testing.T) {
	s, commits, _ := story(t)
	lying := objects.Verify(bulkLiar{liar{s, func(o objects.Object) objects.Object {
		if o.ID == commits[3].ID {
			return commits[4]
		}
		return o
	}}})
	var last error
	for _, err := range objects.Line(t.Context(), lying, commits[0].ID, 0) {
		last = err
	}
	if !errors.Is(last, objects.ErrCorrupt) {
		t.Errorf("a line that skips a commit: %v", last)
	}
}
