package bolt

import (
	"context"

	"github.com/tract-vcs/tract/objects"
)

// restoreStep is the most entries that are planned together.
const restoreStep = 1024

// Restore is objects.Maintainer. Many entries share a group and its sync.
func (s *store) Restore(ctx context.Context, list []objects.LogEntry) error {
	for len(list) > 0 {
		err := s.submit(ctx, func(_ context.Context, w *writer) error {
			n, err := w.restoreSome(list[:min(len(list), restoreStep)])
			list = list[n:]
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// restoreSome writes entries up to the first that fails, or for which the group has no room, and
// returns how many it wrote: the caller calls it again for the others.
func (w *writer) restoreSome(list []objects.LogEntry) (n int, err error) {
	var failed error // of the entry after those that are planned
	g, leads, err := w.join(func(g *group) error {
		for n < len(list) && g.frame.Size() < groupBytes {
			if failed = protect(func() error { return w.planEntry(g, list[n]) }); failed != nil {
				break
			}
			n++
		}
		if n > 0 {
			return nil
		}
		return failed
	})
	if err = w.finish(g, leads, err); err != nil {
		return 0, err
	}
	return n, w.store.explain("read", failed)
}

// planEntry plans an entry unchanged, if it follows what is planned. mu is held.
func (w *writer) planEntry(g *group, e objects.LogEntry) error {
	last, err := w.lastSeq()
	if err != nil {
		return err
	}
	err = e.Follows(last, func(name string) (target, newest objects.ID, err error) {
		r, err := w.plannedRef(name)
		return r.Target, r.entry, err
	})
	if err != nil {
		return err
	}
	w.planMoves(g, e.Seq, e.Note, e.Refs)
	return nil
}
