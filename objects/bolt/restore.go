package bolt

import (
	"context"
	"errors"

	"github.com/tract-vcs/tract/objects"
)

// restoreStep is how many batches are written together.
const restoreStep = 4096

// Restore is objects.Restorer. Many batches are planned one behind the other and share
// a sync.
func (s *store) Restore(ctx context.Context, list []objects.Batch) error {
	for len(list) > 0 {
		err := s.submit(ctx, func(w *writer, _ allowance) error {
			n, err := w.together(list[:min(len(list), restoreStep)])
			list = list[n:]
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// together writes batches up to the first that fails, and tells how many there are now.
func (w *writer) together(list []objects.Batch) (n int, err error) {
	var mine *group // that nobody else will write
	var planned []*group
	for _, b := range list {
		if mine != nil && (mine.frame.size() >= groupBytes || mine.hauled != nil) {
			break // it takes no more
		}
		g, lead, e := w.plan(b, "", objects.ID{})
		if err = e; err != nil {
			break
		}
		if lead {
			mine = g
		}
		planned = append(planned, g)
	}
	if mine != nil {
		w.write(mine)
	}
	for _, g := range planned {
		if g != nil {
			if <-g.done; g.err != nil {
				return n, g.err
			}
		}
		n++
	}
	if n > 0 && errors.Is(err, errAgain) {
		err = nil // the rest goes the same way
	}
	return n, err
}
