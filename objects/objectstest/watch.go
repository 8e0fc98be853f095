package objectstest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tract-vcs/tract/objects"
)

// watches hold an engine that is an objects.Watcher; another passes them.
var watches = []promise{
	{"Watch/the present state comes first", watchFirst},
	{"Watch/the last state is never skipped", watchLast},
	{"Watch/no state comes twice", watchOnce},
	{"Watch/ends with the context", watchContext},
	{"Watch/ends when the store is closed", watchClosed},
}

func watcher(s objects.Store) objects.Watcher {
	w, _ := objects.As[objects.Watcher](s)
	return w
}

func watchFirst(t *testing.T, s objects.Store) {
	w := watcher(s)
	if w == nil {
		return
	}
	for ref, err := range w.Watch(soon(t), branch) {
		if err != nil || ref.Name != branch || !ref.Target.IsZero() {
			t.Errorf("a ref that is not there: %+v, %v", ref, err)
		}
		break
	}
	apply(t, s, move(branch, objects.ID{}, content("a")))
	for ref, err := range w.Watch(soon(t), branch) {
		if err != nil || ref.Target != content("a").ID || ref.Version != 1 {
			t.Errorf("a ref that is there: %+v, %v", ref, err)
		}
		break
	}
}

func watchLast(t *testing.T, s objects.Store) {
	w := watcher(s)
	if w == nil {
		return
	}
	const moves = 40
	written := make(chan error, 1)
	go func() {
		err := walkRef(t.Context(), s, branch, moves)
		if err == nil {
			err = s.Apply(t.Context(), move("refs/heads/other", objects.ID{}, content("other")))
		}
		written <- err
	}()
	var tip objects.ID
	for range moves {
		tip = commit(tip, objects.Hash([]byte(branch))).ID
	}
	version := uint64(0)
	for ref, err := range w.Watch(soon(t), branch) {
		if err != nil {
			t.Fatalf("the last state never came: %v", err)
		}
		if ref.Version < version {
			t.Fatalf("version %d came after %d", ref.Version, version)
		}
		version = ref.Version
		if ref.Target == tip {
			break
		}
		time.Sleep(3 * time.Millisecond) // slower than the writer
	}
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	// A deletion is a state too.
	deleted := false
	for ref, err := range w.Watch(soon(t), branch) {
		if err != nil {
			t.Fatalf("the deletion never came: %v", err)
		}
		if ref.Target.IsZero() {
			break
		}
		if !deleted {
			apply(t, s, move(branch, tip, objects.Object{}))
			deleted = true
		}
	}
}

func watchOnce(t *testing.T, s objects.Store) {
	w := watcher(s)
	if w == nil {
		return
	}
	apply(t, s, move(branch, objects.ID{}, content("a")))
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	states := 0
	for ref, err := range w.Watch(ctx, branch) {
		if err != nil {
			break
		}
		if states++; states > 1 {
			t.Fatalf("%+v came although only another ref moved", ref)
		}
		apply(t, s, move("refs/heads/other", objects.ID{}, content("b")))
	}
}

func watchContext(t *testing.T, s objects.Store) {
	w := watcher(s)
	if w == nil {
		return
	}
	ctx, cancel := context.WithCancel(t.Context())
	cause := make(chan error, 1)
	go func() {
		var last error
		for ref, err := range w.Watch(ctx, branch) {
			if last != nil {
				err = fmt.Errorf("%+v came after %w", ref, last)
			}
			last = err
			cancel()
		}
		cause <- last
	}()
	select {
	case err := <-cause:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the watch ended with %v", err)
		}
	case <-soon(t).Done():
		t.Error("the watch did not end with its context")
	}
}

func watchClosed(t *testing.T, s objects.Store) {
	w := watcher(s)
	if w == nil {
		return
	}
	var last error
	for _, last = range w.Watch(soon(t), branch) {
		if last == nil {
			if err := s.Close(); err != nil {
				t.Fatalf("close: %v", err)
			}
		}
	}
	if !errors.Is(last, objects.ErrClosed) {
		t.Errorf("the watch ended with %v, want that the store is closed", last)
	}
}
