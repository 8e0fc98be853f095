package bolt

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tract-vcs/tract/objects"
)

// groupBytes is from where on a group takes no more, so that the memory that it needs
// does not grow.
const groupBytes = 16 << 20

// Apply is objects.Writer.
func (s *store) Apply(ctx context.Context, b objects.Batch) error {
	return s.submit(ctx, func(w *writer, _ allowance) error {
		return w.finish(w.plan(b, "", objects.ID{}))
	})
}

// Update is objects.Writer. f runs in the goroutine of its caller while the file
// is locked for writing, so that no other process can come in between. Of one ref it
// is one at a time.
func (s *store) Update(ctx context.Context, ref string, f func(tip objects.ID) (objects.Batch, error)) error {
	return s.submit(ctx, func(w *writer, p allowance) error {
		return w.finish(w.update(ref, p, f))
	})
}

// submit calls f with a writer, again when what it stood on was not written.
func (s *store) submit(ctx context.Context, f func(*writer, allowance) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p := allowance{ctx: ctx, end: time.Now().Add(s.wait)}
	for late := false; ; late = true {
		w, err := s.enterWriter(p, late)
		if err != nil {
			return err
		}
		err = func() error {
			defer s.leaveWriter(w) // f may not come back
			return f(w, p)
		}()
		if !errors.Is(err, errAgain) {
			return err
		}
	}
}

// allowance is how long somebody waits for a turn.
type allowance struct {
	ctx context.Context //nolint:containedctx // it is one call
	end time.Time
}

// errPatience says that the time is over that a store may be waited for.
var errPatience = errors.New("waited too long")

// late explains why somebody waits no longer.
func (s *store) late(op string, err error) error {
	if errors.Is(err, errPatience) {
		return s.busy(op)
	}
	return err
}

// wait waits until a channel is closed.
func (p allowance) wait(done <-chan struct{}) error {
	timer := time.NewTimer(time.Until(p.end))
	defer timer.Stop()
	select {
	case <-done:
		return nil
	case <-p.ctx.Done():
		return p.ctx.Err()
	case <-timer.C:
		return errPatience
	}
}

// update plans what f makes of the tip of a ref.
func (w *writer) update(ref string, p allowance, f func(tip objects.ID) (objects.Batch, error)) (*group, bool, error) {
	if err := w.stand(ref, p); err != nil {
		return nil, false, err
	}
	defer w.step(ref)
	for {
		tip, err := w.tip(ref)
		if err != nil {
			return nil, false, err
		}
		b, err := f(tip)
		if err != nil {
			return nil, false, err
		}
		g, lead, err := w.plan(b, ref, tip)
		if !errors.Is(err, errMovedOn) {
			return g, lead, err
		}
	}
}

// stand waits until nobody else moves a ref. Those who wait are served in turn.
func (w *writer) stand(ref string, p allowance) error {
	w.order.Lock()
	line, some := w.lines[ref]
	if !some {
		w.lines[ref] = nil
		w.order.Unlock()
		return nil
	}
	turn := make(chan struct{})
	w.lines[ref] = append(line, turn)
	w.order.Unlock()
	err := p.wait(turn)
	if err == nil {
		return nil
	}
	w.order.Lock()
	i := slices.Index(w.lines[ref], turn)
	if i >= 0 {
		w.lines[ref] = slices.Delete(w.lines[ref], i, i+1)
	}
	w.order.Unlock()
	if i < 0 { // at the same moment
		w.step(ref)
	}
	return w.store.late("write", err)
}

// step lets the next one move a ref.
func (w *writer) step(ref string) {
	w.order.Lock()
	defer w.order.Unlock()
	line := w.lines[ref]
	if len(line) == 0 {
		delete(w.lines, ref)
		return
	}
	close(line[0])
	w.lines[ref] = line[1:]
}

// finish waits until what was planned is written. A request that failed, or that has
// nothing to write, may have seen what nobody else can see yet: it is answered no sooner
// than that is there.
func (w *writer) finish(g *group, lead bool, err error) error {
	switch {
	case errors.Is(err, errAgain):
		return err
	case lead:
		w.write(g)
		return g.err
	case g != nil:
		<-g.done
		return g.err
	}
	if g = w.latest(); g != nil {
		if <-g.done; g.err != nil {
			return errAgain
		}
	}
	return err
}

// latest is the last group that is planned; nil: all is written.
func (w *writer) latest() *group {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.next != nil && w.next.lead {
		return w.next
	}
	return w.flying
}

// write writes a group, when the one before it is written.
func (w *writer) write(g *group) {
	w.disk.Lock()
	w.mu.Lock()
	w.close(g)
	w.mu.Unlock()
	if w.h.broken.Load() {
		g.err = errAgain // what it stands on is not there
	} else {
		g.err = w.store.commit(w.h, g)
	}
	w.landed(g)
	close(g.done)
	w.store.tend(w)
	stop := w.h.broken.Load() || w.h.side.wanted()
	w.disk.Unlock()
	if stop {
		w.stop()
		w.wake()
	}
}
