package postgres

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/tract-vcs/tract/objects"
)

// A watched ref is read again after pollFirst when it has just moved, and less and less often
// up to pollLast while it does not.
const (
	pollFirst = 10 * time.Millisecond
	pollLast  = 500 * time.Millisecond
)

// notifier tells watchers that this process has moved a ref, so that they read it at once.
type notifier struct {
	mu    sync.Mutex
	moved map[string]chan struct{} // by ref
}

// next returns a channel that is closed when the ref moves next.
func (n *notifier) next(ref string) <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.moved == nil {
		n.moved = map[string]chan struct{}{}
	}
	if n.moved[ref] == nil {
		n.moved[ref] = make(chan struct{})
	}
	return n.moved[ref]
}

func (n *notifier) move(ref string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if c := n.moved[ref]; c != nil {
		close(c)
		delete(n.moved, ref)
	}
}

// Watch is objects.Watcher.
func (s *store) Watch(ctx context.Context, name string) iter.Seq2[objects.Ref, error] {
	return func(yield func(objects.Ref, error) bool) {
		var last refState
		wait := pollFirst
		for first := true; ; {
			moved := s.moves.next(name)
			got, err := s.states(ctx, []string{name})
			if err != nil {
				yield(objects.Ref{Name: name}, err)
				return
			}
			if now := got[name]; first || now.version != last.version || now.target != last.target {
				first, last, wait = false, now, pollFirst
				ref := now.ref(name)
				if now.target.IsZero() {
					ref = objects.Ref{Name: name}
				}
				if !yield(ref, nil) {
					return
				}
			}
			select {
			case <-moved:
				wait = pollFirst
			case <-time.After(wait):
				wait = min(wait*3/2, pollLast)
			case <-s.closing:
				yield(objects.Ref{Name: name}, objects.ErrClosed)
				return
			case <-ctx.Done():
				yield(objects.Ref{Name: name}, ctx.Err())
				return
			}
		}
	}
}
