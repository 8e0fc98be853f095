package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/page"
)

// flipped tells what is wrong with how a file is looked at and read of which bytes were
// changed: told or harmless is right.
func (m sample) flipped(t testing.TB, path string, b []byte, what string) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
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

// TestPageWithAWrongKeyCount reduces the key count of each page by one, to zero, or by a flipped
// bit. Nothing else of the page changes: the tree is in order, and only these keys cannot be found.
func TestPageWithAWrongKeyCount(t *testing.T) {
	path, m := large(t, 300)
	b := takeFiles(t, path)[path]
	size := int(page.Order.Uint32(b[page.HeaderSize+8:]))
	tried := 0
	for at := 2 * size; at < len(b); at += size {
		flags, count := page.Order.Uint16(b[at+8:]), page.Order.Uint16(b[at+10:])
		if page.Order.Uint64(b[at:]) != uint64(at/size) || flags != page.BranchFlag && flags != page.LeafFlag || count == 0 {
			continue
		}
		tried++
		for _, fewer := range []uint16{count - 1, 0, count & (count - 1)} {
			page.Order.PutUint16(b[at+10:], fewer)
			m.flipped(t, path, b, fmt.Sprintf("page %d of type %#x, %d keys of %d", at/size, flags, fewer, count))
		}
		page.Order.PutUint16(b[at+10:], count)
	}
	if tried < 10 {
		t.Errorf("only %d pages", tried)
	}
}

// TestDamagedRefName flips a bit of the name of each ref, and what says where
// the refs begin: a ref is not simply gone, since the log knows of it.
func TestDamagedRefName(t *testing.T) {
	path, m := large(t, 300)
	b := takeFiles(t, path)[path]
	at, err := page.ReadMeta(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	l := newSnapshot(bytes.NewReader(b), at)
	var names []int64
	for e, err := range l.ascend(refsBucket, nil) {
		if err != nil || e.Page().Offset == 0 {
			t.Fatalf("the refs have no page: %v", err)
		}
		names = append(names, e.Page().Offset+int64(e.KeyAt))
	}
	for i, name := range names {
		bit, at := i%8, name+int64(i*5%len("refs/heads/m"))
		b[at] ^= 1 << bit
		m.flipped(t, path, b, fmt.Sprintf("bit %d of name %d", bit, i))
		b[at] ^= 1 << bit
	}
	root, ok, err := l.pages.Find(l.pages.Root(), []byte(buckets[refsBucket]))
	if err != nil || !ok {
		t.Fatal(err)
	}
	for bit := range 8 {
		b[(root.Page().Offset + int64(root.ValueAt))] ^= 1 << bit
		m.flipped(t, path, b, fmt.Sprintf("bit %d of where the refs begin", bit))
		b[(root.Page().Offset + int64(root.ValueAt))] ^= 1 << bit
	}
}

// denied is what somebody is told who reads all of the sample, if that is not what it is
// and does not say that something is damaged.
func (m sample) denied(t testing.TB, path string) error {
	t.Helper()
	s, err := objects.Open(t.Context(), path, objects.Options{ReadOnly: true})
	if errors.Is(err, objects.ErrCorrupt) || errors.Is(err, objects.ErrFormat) {
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
