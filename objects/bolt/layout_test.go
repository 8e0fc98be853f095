package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"go.etcd.io/bbolt"
	"pgregory.net/rapid"

	"github.com/tract-vcs/tract/objects"
)

// drawRows draws rows of all buckets: few or many, short or longer than a page.
func drawRows(t *rapid.T) map[string][]cell {
	rows := map[string][]cell{}
	length := rapid.OneOf(rapid.IntRange(0, 60), rapid.IntRange(0, 9000))
	for _, name := range buckets {
		wide := rapid.IntRange(1, 270).Draw(t, "bytes of a key")
		for i := range rapid.OneOf(rapid.IntRange(0, 5), rapid.IntRange(0, 300)).Draw(t, "rows") {
			key := fmt.Appendf(nil, "%0*d", max(wide, 3), i)
			rows[name] = append(rows[name], cell{key: key, value: bytes.Repeat([]byte{byte(i)}, length.Draw(t, "bytes of a value"))})
		}
	}
	return rows
}

// wantBolt has bbolt check a file and read all of it.
func wantBolt(t *rapid.T, db *bbolt.DB, rows map[string][]cell) {
	err := db.View(func(tx *bbolt.Tx) error {
		for err := range tx.Check() {
			return err
		}
		for _, name := range buckets {
			var have []cell
			err := tx.Bucket([]byte(name)).ForEach(func(k, v []byte) error {
				have = append(have, cell{key: bytes.Clone(k), value: bytes.Clone(v)})
				return nil
			})
			same := func(a, b cell) bool { return bytes.Equal(a.key, b.key) && bytes.Equal(a.value, b.value) }
			if err != nil || !slices.EqualFunc(have, rows[name], same) {
				return fmt.Errorf("bucket %q has %d rows of %d, or others: %w", name, len(have), len(rows[name]), err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestLayoutIsOneOfBbolts has bbolt read files that are laid out here, and write to them.
func TestLayoutIsOneOfBbolts(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		rows := drawRows(t)
		path := filepath.Join(dir, "laid out")
		b := layOut(rows, 4096)
		if err := sameRows(b, rows); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		db, err := bbolt.Open(path, 0o600, &bbolt.Options{FreelistType: bbolt.FreelistArrayType})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = db.Close() }()
		wantBolt(t, db, rows)
		for range 3 {
			err := db.Update(func(tx *bbolt.Tx) error {
				for _, name := range buckets {
					bucket := tx.Bucket([]byte(name))
					for i := len(rows[name]) - 1; i >= 0; i-- {
						switch rapid.IntRange(0, 6).Draw(t, "change") {
						case 0, 1, 2:
							if err := bucket.Delete(rows[name][i].key); err != nil {
								return err
							}
							rows[name] = slices.Delete(rows[name], i, i+1)
						case 3:
							rows[name][i].value = []byte("changed")
							if err := bucket.Put(rows[name][i].key, rows[name][i].value); err != nil {
								return err
							}
						}
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			wantBolt(t, db, rows)
		}
	})
}

// TestLayoutHasNothingTooMuch holds a small store that is packed closely to the pages
// that what is in it needs.
func TestLayoutHasNothingTooMuch(t *testing.T) {
	s, path := fresh(t)
	r := rand.New(rand.NewPCG(3, 4))
	b := objects.Batch{}
	for range 100 {
		b.Put = append(b.Put, object(speech(r)))
	}
	b.Refs = []objects.RefUpdate{{Name: "refs/heads/main", New: b.Put[0].ID}}
	if err := s.Apply(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	sweep(t, s, objects.Sweep{Before: time.Now().Add(-time.Hour)})
	idle(t, s)
	file := mustRead(t, path)
	m, err := readMeta(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	l := newLook(bytes.NewReader(file), m)
	rows, err := rowsOf(l)
	if err != nil {
		t.Fatal(err)
	}
	need := 4 // two meta pages, the root, the list of free pages
	for _, name := range []string{headsBucket, bodiesBucket} {
		need += (sizeOf(rows[name]) + m.pageSize - 1) / m.pageSize
	}
	if len(file) != need*m.pageSize {
		t.Errorf("the file has %d bytes, want %d pages", len(file), need)
	}
	for _, name := range buckets {
		tree, err := l.bucket(name)
		if small := name != headsBucket && name != bodiesBucket; err != nil || (tree.inline != nil) != small {
			t.Errorf("bucket %q lies in the page of the root: %v, %v", name, tree.inline != nil, err)
		}
	}
	if info, err := os.Stat(journalPath(path)); err != nil || info.Size() != int64(headerSize) {
		t.Errorf("the journal beside it has %d bytes, %v", info.Size(), err)
	}
	wantClean(t, path)
	again := mustOpen(t, path, objects.Options{})
	for i := range 700 { // and it goes on
		if err := appendOne(t, again, "other", i); err != nil {
			t.Fatal(err)
		}
	}
	fold(t, again)
	wantClean(t, path)
}

// TestLayoutRefusesAnotherFile shows that the file that is made is read before it is
// taken.
func TestLayoutRefusesAnotherFile(t *testing.T) {
	rows := map[string][]cell{refsBucket: {{key: []byte("refs/heads/main"), value: bytes.Repeat([]byte("v"), 5000)}}}
	b := layOut(rows, 4096)
	for _, at := range []int{2*4096 + 10, 4 * 4096, len(b) - 4000, 4096 + pageHeader} {
		bad := bytes.Clone(b)
		bad[at] ^= 1
		if err := sameRows(bad, rows); err == nil {
			t.Errorf("byte %d is wrong, and nobody says so", at)
		}
	}
}

// TestBucketWhoseNameIsDamaged flips a bit in the name of a bucket. The file is a store
// still, and a damaged one.
func TestBucketWhoseNameIsDamaged(t *testing.T) {
	s, path := fresh(t)
	line(t, s, "main", 50)
	sweep(t, s, objects.Sweep{})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b = bytes.ReplaceAll(b, []byte(objectsBucket), []byte("objectr"))
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = objects.Read(t.Context(), mustOpen(t, path, objects.Options{}), object("never put").ID)
	if !errors.Is(err, objects.ErrCorrupt) {
		t.Errorf("objects without their bucket: %v", err)
	}
}
