package bolt

import (
	"bytes"
	"os"
	"testing"

	"github.com/tract-vcs/tract/objects"
)

// packedLog is a store that is packed closely, whose log refers to its packs.
func packedLog(t *testing.T, commits int) (path string, m sample, entries int) {
	t.Helper()
	path, m = large(t, commits)
	s := mustOpen(t, path, objects.Options{})
	sweep(t, s, objects.Sweep{})
	err := inner(t, s).view(t.Context(), "read", func(l *look) error {
		refers := false
		for e, err := range l.ascend(logBucket, nil) {
			var value []byte
			if err == nil {
				value, err = e.value()
			}
			if err == nil {
				_, err = decodeEntries(e.key, value, func(at place) (objects.ID, error) { refers = true; return l.idAt(at) })
			}
			if err != nil {
				return err
			}
		}
		if !refers {
			t.Error("the log does not refer to the packs")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	return path, m, wantClean(t, path).entries
}

// TestLogIsSavedWhereNothingLeads takes away the pages that lead to packs and log. What
// is in them still fits together.
func TestLogIsSavedWhereNothingLeads(t *testing.T) {
	path, m, entries := packedLog(t, 600)
	b := mustRead(t, path)
	clear(b[:2*4096])
	for at := 2 * 4096; at < len(b); at += 4096 {
		if order.Uint64(b[at:]) == uint64(at/4096) && order.Uint16(b[at+8:]) == branchPage {
			clear(b[at : at+4096])
		}
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := audit(t, path, true)
	if err != nil || got.entries != entries || m.lostIn(got) != 0 {
		t.Errorf("%d of %d entries are saved, and %d objects are not, %v", got.entries, entries, m.lostIn(got), err)
	}
}

// TestLogIsSavedWithTheIDsThatItRefersTo flips bits in the id of a commit, or in one that
// stands beside it. Reading the
// log says so, and saving puts both right. The newest entry stands for itself, so that
// the store goes on.
func TestLogIsSavedWithTheIDsThatItRefersTo(t *testing.T) {
	path, m, entries := packedLog(t, 300)
	offset := map[objects.ID]int64{}
	s := mustOpen(t, path, objects.Options{})
	err := inner(t, s).view(t.Context(), "read", func(l *look) error {
		for _, id := range m.refs {
			at, _, err := l.locate(id)
			if err != nil {
				return err
			}
			e, err := l.ofPack(headsBucket, at.pack)
			if err != nil {
				return err
			}
			head, err := e.value()
			if err != nil {
				return err
			}
			offset[id] = e.page.at + int64(e.element.value+idPlace(t, at.pack, head, at.slot))
		}
		return nil
	})
	if err != nil || s.Close() != nil {
		t.Fatal(err)
	}
	files := takeFiles(t, path)
	for _, ref := range []string{"refs/heads/main", "refs/tags/10", "refs/tags/200"} {
		at := offset[m.refs[ref]]
		b := bytes.Clone(files[path])
		b[at+7] ^= 0x10
		files.put(t)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := audit(t, path, false)
		if err != nil || len(got.harm()) == 0 {
			t.Errorf("%s: %v, and no damage", ref, err)
		}
		got, err = audit(t, path, true)
		if err != nil || got.entries != entries || m.lostIn(got) != 0 {
			t.Errorf("%s: %d of %d entries are saved, and %d objects are not, %v", ref, got.entries, entries, m.lostIn(got), err)
		}
		s := mustOpen(t, path, objects.Options{})
		apply(t, s, "refs/heads/new", "the store goes on "+ref)
		_ = s.Close()
	}
}

// TestIDsOfManyPacks asks twice for ids of more packs than a look remembers: what was read
// of the first lies in memory that is used again for the last.
func TestIDsOfManyPacks(t *testing.T) {
	s, _ := fresh(t)
	line(t, s, "main", 3*keepPacks*dense.commits)
	sweep(t, s, objects.Sweep{})
	in := inner(t, s)
	err := in.steadily(t.Context(), "check", nil, func(h *steady) error {
		a := &auditor{store: in, files: h, meta: h.meta}
		for range 2 {
			for n := uint32(1); n <= 3*keepPacks; n++ {
				at := place{n, int(n)}
				want, err := newLook(h, h.meta).idAt(at)
				if err != nil {
					return err
				}
				if got, err := a.idAt(at); err != nil || got != want {
					t.Errorf("pack %d: %s, %v, want %s", n, got.Short(), err, want.Short())
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
