package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/page"
)

// TestDamagedMetaPageIsAnError damages each of the two meta pages. The other one leads to an intact
// store, but perhaps to one without the last commit.
func TestDamagedMetaPageIsAnError(t *testing.T) {
	m := newSample(t, 3)
	path := filepath.Join(t.TempDir(), "x.db")
	for name, at := range map[string]int{"first": page.HeaderSize + 48, "second": 4096 + page.HeaderSize + 48} {
		m.with(t, path, func(b []byte) []byte { b[at] ^= 1; return b })
		_, err := objects.Open(t.Context(), path, objects.Options{})
		if !errors.Is(err, objects.ErrCorrupt) || !strings.Contains(err.Error(), name+" meta page") || !strings.Contains(err.Error(), path) {
			t.Errorf("the %s meta page is damaged: %v", name, err)
		}
	}
}

// TestBranchPagesWithWrongChildren makes branch pages refer in circles and to wrong pages.
func TestBranchPagesWithWrongChildren(t *testing.T) {
	m := newSample(t, 120)
	path := filepath.Join(t.TempDir(), "x.db")
	f := bytes.NewReader(m.file)
	now, err := page.ReadMeta(f, int64(len(m.file)))
	if err != nil {
		t.Fatal(err)
	}
	l := newSnapshot(f, now)
	branches := 0
	for bucket, name := range buckets {
		b, err := l.bucket(bucket)
		if err != nil {
			t.Fatal(err)
		}
		top, err := l.pages.Top(b)
		if err != nil {
			t.Fatal(err)
		}
		if top.Leaf {
			continue
		}
		branches++
		for _, i := range []int{0, top.Count - 1} {
			for _, to := range []uint64{top.ID, now.Root, now.Freelist, 0, 1, now.HighWater - 1, now.HighWater, 1 << 40, 1<<64 - 1} {
				at := int(top.Offset) + page.HeaderSize + i*page.ElementSize + 8
				m.with(t, path, func(b []byte) []byte { page.Order.PutUint64(b[at:], to); return b })
				if to == top.Element(i).Child {
					continue
				}
				if what := fmt.Sprintf("branch %d of %s leads to page %d", i, name, to); !m.tryAll(t, what, path) {
					t.Errorf("%s: nothing was noticed", what)
				}
			}
		}
	}
	if branches < 3 {
		t.Errorf("only %d trees of the sample have branches", branches)
	}
}

func TestFreelistWithPagesInUse(t *testing.T) {
	m := newSample(t, 40)
	path := filepath.Join(t.TempDir(), "x.db")
	now, err := page.ReadMeta(bytes.NewReader(m.file), int64(len(m.file)))
	if err != nil {
		t.Fatal(err)
	}
	at := int(now.Freelist) * now.PageSize
	for name, change := range map[string]func(b []byte){
		"endless":        func(b []byte) { page.Order.PutUint16(b[10:], 0xffff); page.Order.PutUint64(b[16:], 1<<40) },
		"more than fit":  func(b []byte) { page.Order.PutUint16(b[10:], 4000) },
		"the root":       func(b []byte) { page.Order.PutUint16(b[10:], 1); page.Order.PutUint64(b[16:], now.Root) },
		"itself":         func(b []byte) { page.Order.PutUint16(b[10:], 1); page.Order.PutUint64(b[16:], now.Freelist) },
		"a meta page":    func(b []byte) { page.Order.PutUint16(b[10:], 1); page.Order.PutUint64(b[16:], 1) },
		"beyond the end": func(b []byte) { page.Order.PutUint16(b[10:], 1); page.Order.PutUint64(b[16:], now.HighWater) },
		"twice the same": func(b []byte) { copy(b[24:32], b[16:24]) },
		"a leaf":         func(b []byte) { page.Order.PutUint16(b[8:], page.LeafFlag) },
		"very long":      func(b []byte) { page.Order.PutUint32(b[12:], 1<<31) },
	} {
		m.with(t, path, func(b []byte) []byte { change(b[at:]); return b })
		s := mustOpen(t, path, objects.Options{})
		apply(t, s, "refs/heads/new", "new") // it goes into the journal
		if err := tryCheckpoint(t, s); !errors.Is(err, objects.ErrCorrupt) {
			t.Errorf("a free list that is %s: %v", name, err)
		}
		if _, err := objects.Read(t.Context(), s, m.tip); err != nil {
			t.Errorf("a free list that is %s: read: %v", name, err)
		}
	}
}

// FuzzPages reads whatever a file may hold. Memory and time are bounded by the
// size of the file.
func FuzzPages(f *testing.F) {
	m := newSample(f, 4)
	f.Add(m.file, uint32(0), uint64(0))
	f.Fuzz(func(_ *testing.T, file []byte, at uint32, word uint64) {
		file = bytes.Clone(file)
		if int(at)+8 <= len(file) {
			page.Order.PutUint64(file[at:], word)
		}
		r := bytes.NewReader(file)
		now, err := page.ReadMeta(r, int64(len(file)))
		if err != nil {
			return
		}
		_, _, _ = page.ReadFreelist(r, now)
		l := newSnapshot(r, now)
		for bucket := range buckets {
			for e, err := range l.ascend(bucket, nil) {
				if err != nil {
					break
				}
				_, _ = e.Value()
				if t, err := l.bucket(bucket); err == nil {
					_ = l.pages.CheckPath(t, e.Key)
				}
			}
			for _, err := range l.descend(bucket, []byte{0xff, 0xff}) {
				if err != nil {
					break
				}
			}
		}
	})
}

// TestInlinePageWithoutItsKeys has a bucket that lies in a value: a count of keys that
// is 0 by damage leaves bytes of which nobody says what they are.
func TestInlinePageWithoutItsKeys(t *testing.T) {
	m := newSample(t, 3)
	path := filepath.Join(t.TempDir(), "x.db")
	now, err := page.ReadMeta(bytes.NewReader(m.file), int64(len(m.file)))
	if err != nil {
		t.Fatal(err)
	}
	l := newSnapshot(bytes.NewReader(m.file), now)
	e, ok, err := l.pages.Find(l.pages.Root(), []byte(buckets[movesBucket]))
	if err != nil || !ok {
		t.Fatal(err)
	}
	at := int((e.Page().Offset + int64(e.ValueAt)))
	if page.Order.Uint64(m.file[at:]) != 0 || page.Order.Uint16(m.file[at+page.HeaderSize+10:]) == 0 {
		t.Fatal("the moves lie on a page of their own, or there are none")
	}
	m.with(t, path, func(b []byte) []byte { page.Order.PutUint16(b[at+page.HeaderSize+10:], 0); return b })
	s := mustOpen(t, path, objects.Options{ReadOnly: true})
	if list, err := s.Log(t.Context(), "refs/heads/main", 0, 0); !errors.Is(err, objects.ErrCorrupt) {
		t.Errorf("the log of a branch has %d entries: %v", len(list), err)
	}
}

// TestPageWithUnusedBytes takes a byte from the size of a value: the keys are in
// order and lie where they lay, but between two of them is something of neither.
func TestPageWithUnusedBytes(t *testing.T) {
	m := newSample(t, 120)
	now, err := page.ReadMeta(bytes.NewReader(m.file), int64(len(m.file)))
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range newSnapshot(bytes.NewReader(m.file), now).ascend(refsBucket, nil) {
		if err != nil {
			t.Fatal(err)
		}
		p := e.Page()
		if err := p.Check(now.HighWater); err != nil || p.Count < 2 || p.Offset == 0 {
			t.Fatalf("page %d with %d keys: %v", p.ID, p.Count, err)
		}
		size := m.file[p.Offset+page.HeaderSize+12:]
		page.Order.PutUint32(size, page.Order.Uint32(size)-1)
		if p, err = page.Read(bytes.NewReader(m.file), now, p.ID); err != nil {
			t.Fatal(err)
		}
		if err := p.Check(now.HighWater); err == nil || !strings.Contains(err.Error(), "key 1 begins at") {
			t.Errorf("a value of page %d is shorter: %v", p.ID, err)
		}
		return
	}
	t.Error("there are no refs")
}
