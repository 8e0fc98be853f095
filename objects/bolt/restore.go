package bolt

import (
	"context"
	"errors"

	"github.com/tract-vcs/tract/objects"
)

// restoreStep is how many entries are planned with one writer.
const restoreStep = 4096

// Restore is objects.Maintainer. Many entries share a group and its sync.
func (s *store) Restore(ctx context.Context, list []objects.LogEntry) error {
	for len(list) > 0 {
		err := s.submit(ctx, func(_ context.Context, w *writer) error {
			n, err := w.restore(list[:min(len(list), restoreStep)])
			list = list[n:]
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// restore writes entries up to the first that fails, and returns how many it wrote.
func (w *writer) restore(list []objects.LogEntry) (n int, err error) {
	var mine *group // that this call leads
	var planned []*group
	for _, e := range list {
		if mine != nil && mine.frame.Size() >= groupBytes {
			break // the group is full
		}
		var g *group
		var lead bool
		if g, lead, err = w.join(func(g *group) error { return w.planEntry(g, e) }); err != nil {
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
		if <-g.done; g.err != nil {
			return n, g.err
		}
		n++
	}
	if n > 0 && errors.Is(err, errRetry) {
		err = nil // the caller continues with the rest
	}
	return n, err
}

// planEntry plans an entry unchanged, if it follows what is planned. mu is held.
func (w *writer) planEntry(g *group, e objects.LogEntry) error {
	last, err := w.lastSeq()
	if err != nil {
		return err
	}
	err = e.Follows(last, func(name string) (target, newest objects.ID, err error) {
		target, err = w.target(name)
		return target, w.known[name].entry, err
	})
	if err != nil {
		return err
	}
	w.move(g, e.Seq, e.Note, e.Refs)
	return nil
}
