package bolt

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/tract-vcs/tract/objects"
)

// TestPageThatHasLostItsLastKey takes one from the count of keys of each page. Nothing
// else of it is changed: the tree is in order, and leads everywhere but to the last key.
func TestPageThatHasLostItsLastKey(t *testing.T) {
	path, m := large(t, 300)
	files := takeFiles(t, path)
	b := files[path]
	size := int(order.Uint32(b[pageHeader+8:]))
	tried := 0
	for at := 2 * size; at < len(b); at += size {
		flags, count := order.Uint16(b[at+8:]), order.Uint16(b[at+10:])
		if order.Uint64(b[at:]) != uint64(at/size) || flags != branchPage && flags != leafPage || count == 0 {
			continue
		}
		tried++
		order.PutUint16(b[at+10:], count-1)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		order.PutUint16(b[at+10:], count)
		what := fmt.Sprintf("page %d of type %#x, %d keys of %d", at/size, flags, count-1, count)
		got, err := audit(t, path, false)
		if err != nil && !errors.Is(err, objects.ErrCorrupt) {
			t.Fatalf("%s: %v", what, err)
		}
		if len(got.harm()) == 0 && !m.isIn(got) {
			t.Errorf("%s: nothing was told, and it is not all there: %v", what, err)
		}
		if err := m.denied(t, path); err != nil {
			t.Errorf("%s: who reads is told %v", what, err)
		}
	}
	if tried < 10 {
		t.Errorf("only %d pages", tried)
	}
}

// denied is what somebody is told who reads all of the sample, if that is not what it is
// and does not say that something is damaged.
func (m sample) denied(t testing.TB, path string) error {
	t.Helper()
	s, err := objects.Open(t.Context(), path, objects.Options{ReadOnly: true})
	if errors.Is(err, objects.ErrCorrupt) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	for id := range m.objects {
		if _, err := objects.Read(t.Context(), s, id); err != nil && !errors.Is(err, objects.ErrCorrupt) {
			return err
		}
	}
	for name, id := range m.refs {
		r, err := objects.ReadRef(t.Context(), s, name)
		if err == nil && r.Target != id || err != nil && !errors.Is(err, objects.ErrCorrupt) {
			return fmt.Errorf("ref %s at %s: %w", name, r.Target.Short(), err)
		}
	}
	return nil
}
