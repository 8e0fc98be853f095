package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/tract-vcs/tract/objects"
)

// TestFileSnapshotIsUnchangedThroughOneCheckpoint reads a file while others write to it: after one
// checkpoint every page is unchanged, and after more the reader gets an error.
func TestFileSnapshotIsUnchangedThroughOneCheckpoint(t *testing.T) {
	path, m := large(t, 200)
	s := mustOpen(t, path, objects.Options{})
	h, err := inner(t, s).openSnapshot(t.Context(), true, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer h.close()
	write := func(i int) {
		t.Helper()
		h.releaseLocks() // as who is patient does now and then
		o := object(fmt.Sprint("while somebody reads ", i))
		if err := s.Apply(t.Context(), objects.Batch{Put: []objects.Object{o}, Refs: []objects.RefUpdate{{Name: fmt.Sprint("refs/tags/new", i), New: o.ID}}}); err != nil {
			t.Fatal(err)
		}
		mustCheckpoint(t, s)
	}
	write(1)
	if err := h.reacquireLocks(); err != nil {
		t.Fatalf("after one checkpoint: %v", err)
	}
	got := audited{objects: map[objects.ID]objects.Object{}, refs: map[string]objects.ID{}}
	a := newChecker(h, objects.Audit{
		Objects: got.take,
		Ref:     func(r objects.Ref) error { got.refs[r.Name] = r.Target; return nil },
		Damage:  func(d objects.Damage) error { return fmt.Errorf("%s: %s", d.Where, d.What) },
	})
	h.anchor = nil // it is of now, and what is read is of then
	if err := a.run(); err != nil {
		t.Fatalf("after one checkpoint: %v", err)
	}
	if !m.isIn(got) || len(got.objects) != len(m.objects) {
		t.Errorf("%d objects and %d refs, want those of before: %d and %d", len(got.objects), len(got.refs), len(m.objects), len(m.refs))
	}
	write(2)
	write(3)
	if err := h.reacquireLocks(); !errors.Is(err, errReplaced) {
		t.Errorf("after three checkpoints: %v", err)
	}
}

func TestCopyIsASnapshot(t *testing.T) {
	path, m := large(t, 200)
	s := mustOpen(t, path, objects.Options{})
	c, ok := objects.As[objects.Maintainer](s)
	if !ok {
		t.Fatal("the engine cannot be copied")
	}
	dir := t.TempDir()
	if err := c.Copy(t.Context(), dir, nil); err != nil {
		t.Fatal(err)
	}
	if got := wantClean(t, dir); !m.isIn(got) {
		t.Error("the copy is not the store")
	}
	copied := mustOpen(t, dir, objects.Options{})
	apply(t, copied, "refs/heads/copy", "a copy goes its own way")
	if bytes.Contains(mustRead(t, journalPath(path)), []byte("a copy goes its own way")) {
		t.Error("the copy writes to the store that it was made of")
	}
}
