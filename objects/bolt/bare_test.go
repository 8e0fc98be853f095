package bolt

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

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
	err := inner(t, s).view(t.Context(), "read", func(l *look) error {
		all, err := l.runs()
		for _, r := range all.list {
			n += r.entries
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestSmallStoreNeedsNoIndex packs a conversation closely, goes on with it, and packs it
// again: what there is is found, by its id and by the beginning of it.
func TestSmallStoreNeedsNoIndex(t *testing.T) {
	s, path := fresh(t)
	line(t, s, "main", 500)
	for range 2 {
		sweep(t, s, objects.Sweep{})
		if n := entriesOfIndex(t, s); n != 0 {
			t.Errorf("the index has %d entries", n)
		}
		wantFound(t, s, idsOf(t, path))
		before := entriesOfIndex(t, s)
		for i := range 40 {
			if err := appendOne(t, s, "main", i); err != nil {
				t.Fatal(err)
			}
		}
		fold(t, s)
		if n := entriesOfIndex(t, s); n <= before || n > 80 {
			t.Errorf("after more commits the index has %d entries", n)
		}
		wantFound(t, s, idsOf(t, path))
	}
	line(t, s, "again", 500) // the words of these were never said
	sweep(t, s, objects.Sweep{})
	wantFound(t, s, idsOf(t, path))
}

// TestLargeStoreHasAnIndex finds objects by it.
func TestLargeStoreHasAnIndex(t *testing.T) {
	s, path := fresh(t)
	line(t, s, "main", bareObjects/2+1)
	sweep(t, s, objects.Sweep{})
	if n := entriesOfIndex(t, s); n != bareObjects+2 {
		t.Errorf("the index has %d entries", n)
	}
	wantFound(t, s, idsOf(t, path))
}

// TestBarePackThatIsGone is told: no index leads there.
func TestBarePackThatIsGone(t *testing.T) {
	s, path := fresh(t)
	line(t, s, "main", 30)
	sweep(t, s, objects.Sweep{})
	idle(t, s)
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		for _, name := range []string{headsBucket, bodiesBucket} {
			if err := tx.Bucket([]byte(name)).Delete(packKey(1)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || db.Close() != nil {
		t.Fatal(err)
	}
	got, err := audit(t, path, false)
	if err != nil || len(got.harm()) != 1 || got.harm()[0].Where != "pack 1" {
		t.Errorf("a store without its pack: %v, %+v", err, got.damages)
	}
	again := mustOpen(t, path, objects.Options{})
	if _, err := again.Missing(t.Context(), []objects.ID{{1}}); err == nil {
		t.Error("nobody can say what is in a pack that is not there")
	}
}

// TestBarePackThatIsDamaged keeps nobody from what lies elsewhere, nor from writing.
func TestBarePackThatIsDamaged(t *testing.T) {
	s, path := fresh(t)
	line(t, s, "main", 300)
	sweep(t, s, objects.Sweep{})
	idle(t, s)
	ids := idsOf(t, path)
	var at int64
	var head []byte
	err := inner(t, s).view(t.Context(), "read", func(l *look) error {
		e, err := l.ofPack(headsBucket, 1)
		at = e.page.at + int64(e.element.value)
		if err == nil {
			head, err = e.value()
		}
		return err
	})
	if err != nil || s.Close() != nil {
		t.Fatal(err)
	}
	files := takeFiles(t, path)
	for name, flip := range map[string]int64{"its count": 8, "what is in zstd": int64(frontOf(head).end) + 9} {
		files.put(t)
		b := slices.Clone(files[path])
		b[at+flip] ^= 0x20
		b[at+flip+1] ^= 0x11 // a single bit would be mended
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		damaged := mustOpen(t, path, objects.Options{})
		apply(t, damaged, "refs/heads/more", "it goes on")
		added := object("it goes on").ID
		for range 2 {
			if o, err := objects.Read(t.Context(), damaged, added); err != nil || o.ID != added {
				t.Errorf("%s: what was added: %v", name, err)
			}
			if got, err := damaged.Find(t.Context(), 0, added.String()[:9], 2); err != nil || !slices.Equal(got, []objects.ID{added}) {
				t.Errorf("%s: what was added: found %v, %v", name, got, err)
			}
			if _, err := objects.Read(t.Context(), damaged, ids[0]); !errors.Is(err, objects.ErrCorrupt) {
				t.Errorf("%s: an object of the pack: %v", name, err)
			}
			fold(t, damaged)
		}
		_ = damaged.Close()
	}
}

// TestAnIDOfWhichABitIsFlipped is found all the same: the checksum of the head says which
// bit it was. What is mended is hashed.
func TestAnIDOfWhichABitIsFlipped(t *testing.T) {
	for _, packed := range []bool{false, true} {
		var kept []byte
		s, path := fresh(t)
		line(t, s, "main", 100)
		if fold(t, s); packed {
			sweep(t, s, objects.Sweep{})
		}
		idle(t, s)
		var ids []objects.ID
		var head int64
		err := inner(t, s).view(t.Context(), "read", func(l *look) error {
			e, err := l.ofPack(headsBucket, 1)
			if err != nil {
				return err
			}
			head = e.page.at + int64(e.element.value)
			if kept, err = e.value(); err != nil {
				return err
			}
			p, err := l.pack(1)
			for i := range p.Len() {
				ids = append(ids, p.id(i))
			}
			return err
		})
		if err != nil || s.Close() != nil {
			t.Fatal(err)
		}
		files := takeFiles(t, path)
		for _, slot := range []int{0, 7, len(ids) - 1} {
			for _, within := range []int{1, 5, 20} {
				files.put(t)
				b := slices.Clone(files[path])
				b[head+int64(idPlace(t, 1, kept, slot)+within)] ^= 0x08
				if err := os.WriteFile(path, b, 0o600); err != nil {
					t.Fatal(err)
				}
				damaged := mustOpen(t, path, objects.Options{})
				for range 2 {
					if _, err := objects.Read(t.Context(), damaged, ids[slot]); err != nil {
						t.Errorf("packed %t, object %d, byte %d of its id: %v", packed, slot, within, err)
					}
				}
				if missing, err := damaged.Missing(t.Context(), ids); err != nil || len(missing) > 0 {
					t.Errorf("packed %t, object %d, byte %d of its id: %d are missing, %v", packed, slot, within, len(missing), err)
				}
				_ = damaged.Close()
			}
		}
	}
}
