package bolt

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tract-vcs/tract/objects"
)

// idsOf are all ids that a store has, in their order.
func idsOf(t testing.TB, path string) (ids []objects.ID) {
	t.Helper()
	for id := range wantClean(t, path).objects {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, objects.ID.Compare)
	return ids
}

// wantFound looks for objects by their ids and by the beginnings of them, and for some
// that are not there.
func wantFound(t testing.TB, s objects.Store, ids []objects.ID) {
	t.Helper()
	for _, o := range []string{"", ids[0].String()[:1], ids[1].String()[:2]} {
		want := slices.DeleteFunc(slices.Clone(ids), func(id objects.ID) bool { return !strings.HasPrefix(id.String(), o) })
		if got, err := s.Find(t.Context(), 0, o, len(ids)); err != nil || !slices.Equal(got, want) {
			t.Errorf("ids that begin with %q: %d, %v; want %d", o, len(got), err, len(want))
		}
		want = want[:min(3, len(want))]
		if got, err := s.Find(t.Context(), 0, o, 3); err != nil || !slices.Equal(got, want) {
			t.Errorf("the first ids that begin with %q: %v, %v; want %v", o, got, err, want)
		}
	}
	for i, id := range ids {
		if i%9 == 0 {
			if got, err := s.Find(t.Context(), 0, id.String()[:11+i%2], 2); err != nil || !slices.Equal(got, []objects.ID{id}) {
				t.Errorf("object %s: found %v, %v", id.Short(), got, err)
			}
		}
		if o, err := objects.Read(t.Context(), s, id); err != nil || o.ID != id {
			t.Fatalf("object %s: %v", id.Short(), err)
		}
		ids = append(ids, objects.ID{byte(i), byte(i >> 8), 1})
	}
	missing, err := s.Missing(t.Context(), ids)
	if err != nil || len(missing) != len(ids)/2 || missing[0] != ids[len(ids)/2] {
		t.Errorf("%d of %d objects are missing, %v", len(missing), len(ids), err)
	}
}

// entriesOfIndex is how many objects the index has.
func entriesOfIndex(t testing.TB, s objects.Store) (n uint64) {
	t.Helper()
	err := inner(t, s).view(t.Context(), "read", func(l *snapshot) error {
		all, err := l.runs()
		for _, r := range all.List {
			n += r.Entries
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestEveryObjectIsFoundAfterGC packs a conversation closely, goes on with it, and
// packs it again: every object is found by its id and by the beginning of it.
func TestEveryObjectIsFoundAfterGC(t *testing.T) {
	s, path := fresh(t)
	line(t, s, "main", 500)
	for range 2 {
		sweep(t, s, objects.Sweep{})
		ids := idsOf(t, path)
		if n := entriesOfIndex(t, s); n != uint64(len(ids)) {
			t.Errorf("the index has %d entries of %d objects", n, len(ids))
		}
		wantFound(t, s, ids)
		for i := range 40 {
			if err := appendOne(t, s, "main", i); err != nil {
				t.Fatal(err)
			}
		}
		mustCheckpoint(t, s)
		wantFound(t, s, idsOf(t, path))
	}
	line(t, s, "again", 500)
	sweep(t, s, objects.Sweep{})
	wantFound(t, s, idsOf(t, path))
}

// TestFlippedBitInAnID is found all the same: the checksum of the head says which
// bit it was. What is mended is hashed.
func TestFlippedBitInAnID(t *testing.T) {
	for _, packed := range []bool{false, true} {
		s, path := fresh(t)
		line(t, s, "main", 100)
		if mustCheckpoint(t, s); packed {
			sweep(t, s, objects.Sweep{})
		}
		idle(t, s)
		var ids []objects.ID
		var head int64
		err := inner(t, s).view(t.Context(), "read", func(l *snapshot) error {
			e, err := l.packPart(headsBucket, 1)
			if err != nil {
				return err
			}
			head = (e.Page().Offset + int64(e.ValueAt))
			p, err := l.pack(1)
			for i := range p.Len() {
				ids = append(ids, *p.ID(i))
			}
			return err
		})
		if err != nil || s.Close() != nil {
			t.Fatal(err)
		}
		files := takeFiles(t, path)
		for _, row := range []int{0, 7, len(ids) - 1} {
			for _, within := range []int{1, 5, 20} {
				files.put(t)
				b := slices.Clone(files[path])
				b[head+int64(packIDs+row*idSize+within)] ^= 0x08
				if err := os.WriteFile(path, b, 0o600); err != nil {
					t.Fatal(err)
				}
				damaged := mustOpen(t, path, objects.Options{})
				for range 2 {
					if _, err := objects.Read(t.Context(), damaged, ids[row]); err != nil {
						t.Errorf("packed %t, object %d, byte %d of its id: %v", packed, row, within, err)
					}
				}
				if missing, err := damaged.Missing(t.Context(), ids); err != nil || len(missing) > 0 {
					t.Errorf("packed %t, object %d, byte %d of its id: %d are missing, %v", packed, row, within, len(missing), err)
				}
				_ = damaged.Close()
			}
		}
	}
}
