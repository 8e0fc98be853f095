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

func (l bulkLiar) ChainRuns(ctx context.Context, tip objects.ID, limit int) iter.Seq2[objects.CommitRun, error] {
	return func(yield func(objects.CommitRun, error) bool) {
		var all []objects.Object
		for o, err := range l.Chain(ctx, tip, objects.ChainOptions{Limit: limit}) {
			if err != nil {
				yield(objects.CommitRun{}, err)
				return
			}
			all = append(all, o)
		}
		for part := range slices.Chunk(all, 2) {
			if !yield(objects.CommitRun{Objects: part}, nil) {
				return
			}
		}
	}
}

func (l bulkLiar) Load(ctx context.Context, w objects.LoadRequest) (rest []int, err error) {
	for i := range w.Len {
		id, _ := w.At(i)
		o, err := objects.Read(ctx, l.liar, id)
		if err == nil {
			err = w.Give(i, &o, nil)
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, nil
}

var _ objects.BulkReader = bulkLiar{}

// TestVerifyRunsNeverHoldCorruptBytes lies about one object of a run: it and what comes
// with it and after it is not given out.
func TestVerifyRunsNeverHoldCorruptBytes(t *testing.T) {
	for name, lie := range lies {
		s, commits, _ := story(t)
		lying := objects.Verify(bulkLiar{liar{s, func(o objects.Object) objects.Object {
			if o.ID == commits[2].ID {
				return lie(o)
			}
			return o
		}}})
		n := 0
		var last error
		for run, err := range objects.ChainRuns(t.Context(), lying, commits[0].ID, 0) {
			if last = err; err == nil {
				n += len(run.Objects)
			}
		}
		if n != 2 || !errors.Is(last, objects.ErrCorrupt) {
			t.Errorf("line of five with a %s changed in the third: %d objects, %v", name, n, last)
		}
		n = 0
		err := objects.Load(t.Context(), lying, objects.LoadRequest{
			Len: len(commits),
			At:  func(i int) (objects.ID, objects.Locator) { return commits[i].ID, objects.Locator{} },
			Give: func(_ int, _ *objects.Object, err error) error {
				if err == nil {
					n++
				}
				return err
			},
		})
		if n != 2 || !errors.Is(err, objects.ErrCorrupt) {
			t.Errorf("load of five with a %s changed in the third: %d objects, %v", name, n, err)
		}
	}
}

// TestVerifyRunsFollowFirstParents returns a good commit in the place of another.
func TestVerifyRunsFollowFirstParents(t *testing.T) {
	s, commits, _ := story(t)
	lying := bulkLiar{liar{s, func(o objects.Object) objects.Object {
		if o.ID == commits[3].ID {
			return commits[4]
		}
		return o
	}}}
	for _, store := range []objects.Store{objects.Verify(lying), objects.Trust(lying, nil)} {
		var last error
		for _, err := range objects.ChainRuns(t.Context(), store, commits[0].ID, 0) {
			last = err
		}
		if !errors.Is(last, objects.ErrCorrupt) {
			t.Errorf("a chain that skips a commit: %v", last)
		}
	}
}
