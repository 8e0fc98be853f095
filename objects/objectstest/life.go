package objectstest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tract-vcs/tract/objects"
)

var lives = []promise{
	{"Context/a cancelled one is an error", lifeCancelled},
	{"Close/waits for what is running", lifeCloseWaits},
	{"Close/then every call says so", lifeClosed},
	{"Close/beside readers and writers", lifeCloseRace},
}

// calls is one call of every method that reads or writes.
func calls(ctx context.Context, s objects.Store, some objects.Object) map[string]func() error {
	return map[string]func() error{
		"Get": func() error {
			_, err := collect(s.Get(ctx, []objects.ID{some.ID}))
			return err
		},
		"Missing": func() error { _, err := s.Missing(ctx, []objects.ID{some.ID}); return err },
		"Find":    func() error { _, err := s.Find(ctx, 0, "a", 1); return err },
		"Chain": func() error {
			_, err := collect(s.Chain(ctx, some.ID, objects.ChainOptions{}))
			return err
		},
		"Chain to a stop": func() error {
			_, err := collect(s.Chain(ctx, some.ID, objects.ChainOptions{Stop: []objects.ID{{1}}}))
			return err
		},
		"GetRefs": func() error { _, err := s.GetRefs(ctx, branch); return err },
		"Refs":    func() error { _, err := s.Refs(ctx, objects.RefQuery{}); return err },
		"Log":     func() error { _, err := s.Log(ctx, "", 0, 0); return err },
		"Apply":   func() error { return s.Apply(ctx, objects.Batch{Put: []objects.Object{content("late")}}) },
		"Update": func() error {
			return s.Update(ctx, branch, func(tip objects.ID) (objects.Batch, error) { return move(branch, tip, content("late")), nil })
		},
	}
}

func lifeCancelled(t *testing.T, s objects.Store) {
	some := content("some")
	apply(t, s, move(branch, objects.ID{}, some))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, call := range calls(ctx, s, some) {
		if err := call(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s with a cancelled context: %v", name, err)
		}
	}
	if got, err := s.Missing(t.Context(), []objects.ID{content("late").ID}); err != nil || len(got) != 1 {
		t.Errorf("a cancelled call has written: %v", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	h := grow(some.ID, "line", 1000)
	put(t, s, h.all()...)
	n := 0
	var last error
	for _, last = range s.Chain(ctx, h.tip(), objects.ChainOptions{}) {
		if n++; n == 10 {
			cancel()
		}
	}
	if n > 1000 || !errors.Is(last, context.Canceled) {
		t.Errorf("cancelled in the loop after 10: %d elements, then %v", n, last)
	}
}

func lifeCloseWaits(t *testing.T, s objects.Store) {
	inside, release, closed := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	updated := make(chan error, 1)
	go func() {
		updated <- s.Update(t.Context(), branch, func(tip objects.ID) (objects.Batch, error) {
			close(inside)
			<-release
			return move(branch, tip, content("in time")), nil
		})
	}()
	<-inside
	go func() { closed <- s.Close() }()
	select {
	case err := <-closed:
		closed <- err
		t.Errorf("close did not wait for a running update: %v", err)
	case <-time.After(30 * time.Millisecond):
	}
	close(release)
	if err := <-updated; err != nil {
		t.Errorf("an update that ran when the store was closed: %v", err)
	}
	select {
	case <-closed:
	case <-soon(t).Done():
		t.Fatal("close never came back")
	}
}

func lifeClosed(t *testing.T, s objects.Store) {
	some := content("some")
	apply(t, s, move(branch, objects.ID{}, some))
	n := 0
	var last error
	put(t, s, grow(some.ID, "line", 900).all()...)
	for _, last = range s.Chain(t.Context(), grow(some.ID, "line", 900).tip(), objects.ChainOptions{}) {
		if n++; n == 1 {
			if err := s.Close(); err != nil { // inside a loop: it must not wait for the loop
				t.Fatalf("close: %v", err)
			}
		}
	}
	if !errors.Is(last, objects.ErrClosed) {
		t.Errorf("a chain went on for %d elements after Close and ended with %v", n, last)
	}
	for name, call := range calls(t.Context(), s, some) {
		if err := call(); !errors.Is(err, objects.ErrClosed) {
			t.Errorf("%s after Close: %v", name, err)
		}
	}
	if err := s.Close(); !errors.Is(err, objects.ErrClosed) {
		t.Errorf("second Close: %v", err)
	}
}

func lifeCloseRace(t *testing.T, s objects.Store) {
	ctx := soon(t)
	done := make(chan []error)
	go func() {
		done <- atOnce(8, func(i int) error {
			for {
				if err := increment(ctx, s, fmt.Sprint("refs/heads/", i%2), fmt.Sprint(i)); err != nil {
					return err
				}
				if _, err := s.Refs(ctx, objects.RefQuery{}); err != nil {
					return err
				}
			}
		})
	}()
	time.Sleep(20 * time.Millisecond)
	if err := s.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	for i, err := range <-done {
		if !errors.Is(err, objects.ErrClosed) {
			t.Errorf("writer %d ended with %v", i, err)
		}
	}
}

func checkReopen(t *testing.T, e Engine) {
	s := open(t, e)
	h := grow(objects.ID{}, "line", 100)
	b := move(branch, objects.ID{}, h.commits[0])
	b.Put = h.all()
	apply(t, s, b)
	apply(t, s, move("refs/tags/old", objects.ID{}, content("old")))
	apply(t, s, move("refs/tags/old", content("old").ID, objects.Object{}))
	for round := range 3 {
		if err := s.Close(); err != nil {
			t.Fatalf("close: %v", err)
		}
		s = e.Reopen(t, s)
		t.Cleanup(func() { _ = s.Close() })
		if got := commitsOf(t, s, h.tip(), 0); len(got) != 100 {
			t.Fatalf("%d commits of 100 are left", len(got))
		}
		if got, err := s.Refs(t.Context(), objects.RefQuery{}); err != nil || len(got) != 1+round {
			t.Fatalf("refs: %v, %v", got, err)
		}
		wantLinked(t, log(t, s, "", 0, 0), 3+round)
		apply(t, s, move(fmt.Sprint("refs/tags/", round), objects.ID{}, content(fmt.Sprint(round))))
	}
}
