package postgres

import (
	"context"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tract-vcs/tract/objects"
)

// A watched ref is looked at again after pollFirst when it has just moved, and less and less
// often up to pollLast while it does not.
const (
	pollFirst = 10 * time.Millisecond
	pollLast  = 500 * time.Millisecond
)

// poller reads the refs that are watched: all of them with one statement.
type poller struct {
	mu      sync.Mutex
	watched map[string]*watched
	woken   chan struct{} // has an element when there is something to do at once
	polling bool          // the goroutine runs
}

// watched is a ref and who watches it.
type watched struct {
	state   refState
	known   bool
	err     error
	changed chan struct{} // closed, and made anew, when the above changes
	count   int
}

// Watch is objects.Watcher.
func (s *store) Watch(ctx context.Context, name string) iter.Seq2[objects.Ref, error] {
	return func(yield func(objects.Ref, error) bool) {
		if err := s.usable(ctx); err != nil {
			yield(objects.Ref{Name: name}, err)
			return
		}
		p := &s.poller
		w := p.add(s, name)
		defer p.remove(name)
		var last refState
		for first := true; ; {
			p.mu.Lock()
			now, known, err, changed := w.state, w.known, w.err, w.changed
			p.mu.Unlock()
			if err != nil {
				yield(objects.Ref{Name: name}, err)
				return
			}
			if known && (first || now.version != last.version || now.target != last.target) {
				first, last = false, now
				ref := now.ref(name)
				if now.target.IsZero() {
					ref = objects.Ref{Name: name}
				}
				if !yield(ref, nil) {
					return
				}
			}
			select {
			case <-changed:
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

// add watches a ref, and starts the goroutine that polls if there is none.
func (p *poller) add(s *store, name string) *watched {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.watched == nil {
		p.watched, p.woken = map[string]*watched{}, make(chan struct{}, 1)
	}
	if !p.polling {
		p.polling = true
		go p.poll(s)
	}
	w := p.watched[name]
	if w == nil {
		w = &watched{changed: make(chan struct{})}
		p.watched[name] = w
	}
	w.count++
	p.signal()
	return w
}

func (p *poller) remove(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.watched[name].count--; p.watched[name].count == 0 {
		delete(p.watched, name)
		p.signal()
	}
}

// signal makes the goroutine look at once. mu is held.
func (p *poller) signal() {
	select {
	case p.woken <- struct{}{}:
	default:
	}
}

// wake is called when this process has moved a ref.
func (p *poller) wake(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.watched[name] != nil {
		p.signal()
	}
}

// poll looks at the watched refs until there are none.
func (p *poller) poll(s *store) {
	for wait := pollFirst; ; {
		p.mu.Lock()
		names := slices.Collect(maps.Keys(p.watched))
		p.polling = len(names) > 0
		p.mu.Unlock()
		if len(names) == 0 {
			return
		}
		got, err := s.states(context.Background(), names)
		if p.tell(names, got, err) {
			wait = pollFirst
		}
		select {
		case <-time.After(wait):
			wait = min(wait*3/2, pollLast)
		case <-p.woken:
			wait = pollFirst
		case <-s.closing:
			return
		}
	}
}

// tell gives the watchers what was read. It reports whether a ref has moved.
func (p *poller) tell(names []string, got map[string]refState, err error) (moved bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range names {
		w := p.watched[name]
		if w == nil || w.known && err == nil && w.state == got[name] {
			continue
		}
		moved = moved || w.known
		w.known, w.err = true, err
		if err == nil {
			w.state = got[name]
		}
		close(w.changed)
		w.changed = make(chan struct{})
	}
	return moved
}
