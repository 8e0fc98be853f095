package bolt

import (
	"context"
	"errors"
	"fmt"

	"github.com/tract-vcs/tract/objects"
)

// restoreStep is how many batches wait in the queue at a time.
const restoreStep = 4096

// Restore is objects.Restorer. The batches stand in the queue one behind the other, so
// that many of them share a sync.
func (s *store) Restore(ctx context.Context, list []objects.Batch) error {
	for len(list) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := min(len(list), restoreStep)
		requests := make([]*request, n)
		for i, b := range list[:n] {
			requests[i] = &request{batch: b, done: make(chan error, 1)}
		}
		if err := s.enqueue(requests); err != nil {
			return err
		}
		var failed []error
		for _, r := range requests {
			if err := <-r.done; err != nil && len(failed) == 0 {
				failed = append(failed, err)
			}
		}
		if err := errors.Join(failed...); err != nil {
			return err
		}
		list = list[n:]
	}
	return nil
}

func (s *store) enqueue(requests []*request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return objects.ErrClosed
	case s.readOnly:
		return fmt.Errorf("write store %s: %w", s.path, objects.ErrReadOnly)
	}
	if s.queue = append(s.queue, requests...); !s.writing {
		s.writing = true
		go s.write()
	}
	s.ask()
	return nil
}
