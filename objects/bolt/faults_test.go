package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/objectstest"
)

// rounds is how often something random is done: short, usual, in make torture.
func rounds(short, usual, long int) int {
	switch {
	case torture():
		return long
	case testing.Short():
		return short
	}
	return usual
}

// harmOf is a way to damage the bytes of a file. older is what the file once was.
type harmOf func(r *rand.Rand, b, older []byte) []byte

// pageOf is a page of b but for the meta pages.
func pageOf(r *rand.Rand, b []byte) []byte {
	if len(b) < 4*4096 {
		return b
	}
	at := (2 + r.IntN(len(b)/4096-2)) * 4096
	return b[at : at+4096]
}

var harms = map[string]harmOf{
	"zeroed page":   func(r *rand.Rand, b, _ []byte) []byte { clear(pageOf(r, b)); return b },
	"noise":         func(r *rand.Rand, b, _ []byte) []byte { noise(r, pageOf(r, b)); return b },
	"zeroed sector": func(r *rand.Rand, b, _ []byte) []byte { clear(sectorOf(r, b)); return b },
	"swapped pages": func(r *rand.Rand, b, _ []byte) []byte {
		x, y := pageOf(r, b), pageOf(r, b)
		old := bytes.Clone(x)
		copy(x, y)
		copy(y, old)
		return b
	},
	"stale page": func(r *rand.Rand, b, older []byte) []byte {
		if n := min(len(b), len(older)) / 4096; n > 0 {
			at := r.IntN(n) * 4096
			copy(b[at:at+4096], older[at:])
		}
		return b
	},
	"truncation":     func(r *rand.Rand, b, _ []byte) []byte { return b[:r.IntN(len(b)+1)] },
	"changed number": func(r *rand.Rand, b, _ []byte) []byte { b[r.IntN(len(b))] = byte(r.IntN(256)); return b },
}

func sectorOf(r *rand.Rand, b []byte) []byte {
	if len(b) < 512 {
		return b
	}
	at := r.IntN(len(b)/512) * 512
	return b[at : at+512]
}

// aged is a store, and what its files were some time before.
func aged(t testing.TB) (path string, m sample, older storeFiles) {
	t.Helper()
	path, m = large(t, 200)
	older = takeFiles(t, path)
	s := mustOpen(t, path, objects.Options{})
	for i := range 60 {
		o := objects.New(objects.KindCommit, []objects.ID{m.tip}, nil, []byte(fmt.Sprint("later ", i, strings.Repeat(".", i*20))))
		if err := s.Apply(t.Context(), objects.Batch{Put: []objects.Object{o}, Refs: []objects.RefUpdate{{Name: "refs/heads/main", Old: m.tip, New: o.ID}}}); err != nil {
			t.Fatal(err)
		}
		m.objects[o.ID], m.tip, m.refs["refs/heads/main"] = o, o.ID, o.ID
		if i == 30 {
			mustCheckpoint(t, s)
		}
	}
	idle(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path, m, older
}

// TestDamageOfEveryKind damages any of the files in any way. Reading gives what is
// right or an error that says what is wrong; the audit tells of all that matters, and if
// it tells of nothing every operation works; a deep audit ends, and gives nothing that is
// wrong.
func TestDamageOfEveryKind(t *testing.T) {
	path, m, older := aged(t)
	files := takeFiles(t, path)
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(2, seed))
	told, silent := map[string]int{}, map[string]int{}
	for kind, harm := range harms {
		for range rounds(3, 4, 1000) {
			name := []string{path, path, path, journalPath(path), gatePath(path)}[r.IntN(5)]
			files.put(t)
			b := harm(r, bytes.Clone(files[name]), older[name])
			if err := os.WriteFile(name, b, 0o600); err != nil {
				t.Fatal(err)
			}
			what := fmt.Sprintf("seed %d: %s of %s", seed, kind, filepath.Base(name))
			got, err := audit(t, path, false)
			if err != nil {
				t.Fatalf("%s: audit: %v", what, err)
			}
			switch whole := m.isIn(got); {
			case len(got.harm()) > 0:
				told[kind]++
			case whole:
				silent[kind]++
			default:
				t.Errorf("%s: nothing was told, and it is not all there", what)
			}
			m.wantTruth(t, what, path)
			if _, err := audit(t, path, true); err != nil {
				t.Errorf("%s: salvage: %v", what, err)
			}
			if len(got.harm()) == 0 {
				m.wantUsable(t, what, path)
			}
		}
	}
	for kind := range harms {
		t.Logf("%-14s %d told, %d harmless", kind, told[kind], silent[kind])
	}
}

// wantUsable wants that every operation works on a store that fsck calls sound: reading,
// an append, a backup, a purge and gc, after which it is sound again.
func (m sample) wantUsable(t *testing.T, what, path string) {
	t.Helper()
	m.wantTruth(t, what, path)
	s, err := objects.Open(t.Context(), path, objects.Options{Wait: 10 * time.Second})
	if err != nil {
		t.Errorf("%s: fsck calls the store sound, and it cannot be opened: %v", what, err)
		return
	}
	defer func() { _ = s.Close() }()
	in, o := inner(t, s), object("appended to a sound store")
	n := 0
	for _, err := range s.Chain(t.Context(), m.tip, objects.ChainOptions{}) {
		if err != nil {
			t.Errorf("%s: fsck calls the store sound: walk: %v", what, err)
		}
		n++
	}
	if n < 200 {
		t.Errorf("%s: the walk visits %d commits", what, n)
	}
	for name, operation := range map[string]func() error{
		"append":     func() error { return s.Apply(t.Context(), batch("refs/heads/next", "next")) },
		"checkpoint": func() error { return tryCheckpoint(t, s) },
		"backup":     func() error { return in.Copy(t.Context(), t.TempDir(), nil) },
		"purge": func() error {
			if err := s.Apply(t.Context(), objects.Batch{Put: []objects.Object{o}}); err != nil {
				return err
			}
			_, err := in.Purge(t.Context(), []objects.Tombstone{{ID: o.ID, Time: time.Now(), Why: "test"}}, nil)
			return err
		},
		"gc": func() error {
			_, err := in.Sweep(t.Context(), objects.Sweep{Before: now()})
			return err
		},
	} {
		if err := operation(); err != nil {
			t.Errorf("%s: fsck calls the store sound: %s: %v", what, name, err)
		}
	}
	if got, err := audit(t, path, false); err != nil || len(got.harm()) > 0 {
		t.Errorf("%s: after every operation: %v, %.400v", what, err, got.harm())
	}
}

// wantTruth reads everything through the engine: what it gives is right.
func (m sample) wantTruth(t *testing.T, what, path string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	s, err := objects.Open(ctx, path, objects.Options{Wait: time.Second})
	if err != nil {
		wantTyped(t, what, err)
		return
	}
	defer func() { _ = s.Close() }()
	var ids []objects.ID
	for id := range m.objects {
		ids = append(ids, id)
	}
	for o, err := range s.Get(ctx, ids) {
		if wantTyped(t, what, err); err == nil && !bytes.Equal(o.Data, m.objects[o.ID].Data) {
			t.Errorf("%s: object %s has wrong bytes", what, o.ID.Short())
		}
	}
	n := 0
	for o, err := range objectstest.ChainWithContent(ctx, s, m.tip) {
		if wantTyped(t, what, err); err == nil && !bytes.Equal(o.Data, m.objects[o.ID].Data) {
			t.Errorf("%s: object %s has wrong bytes in a chain", what, o.ID.Short())
		}
		n++
	}
	refs, err := s.Refs(ctx, objects.RefQuery{})
	wantTyped(t, what, err)
	for _, ref := range refs {
		if m.refs[ref.Name] != ref.Target {
			t.Errorf("%s: ref %s is at %s", what, ref.Name, ref.Target.Short())
		}
	}
}

// TestControlOfDamage shows that the damage is real: bbolt alone, reading the same
// files, gives wrong values without a word.
func TestControlOfDamage(t *testing.T) {
	path, m, _ := aged(t)
	files := takeFiles(t, path)
	r := rand.New(rand.NewPCG(3, 3))
	wrong := 0
	for range 400 {
		b := bytes.Clone(files[path])
		b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if !m.bboltNotices(path) {
			wrong++
		}
	}
	if wrong == 0 {
		t.Error("bbolt alone notices every flip: the harness changes nothing")
	}
	t.Logf("bbolt alone gives wrong values for %d flips of 400 without an error", wrong)
}

// bboltNotices reads the heads and bodies with bbolt and compares what it gives with
// what objects there must be: it has no other way to know.
func (m sample) bboltNotices(path string) (noticed bool) {
	err := protect(func() error {
		db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: time.Second})
		if err != nil {
			return err
		}
		defer func() { _ = db.Close() }()
		return db.View(func(tx *bbolt.Tx) error {
			heads, bodies := tx.Bucket([]byte(buckets[headsBucket])), tx.Bucket([]byte(buckets[bodiesBucket]))
			if heads == nil || bodies == nil {
				return errors.New("no buckets")
			}
			return heads.ForEach(func(k, v []byte) error {
				p, err := parsePack(nil, 1, v)
				if err != nil {
					return err
				}
				body := bodies.Get(k)
				for i := range p.Len() {
					var room []objects.ID
					o := p.Object(i, &room)
					if from, size := p.Data(i); o.Kind != objects.KindCommit && bodyStart+from+size <= len(body) {
						o.Data = body[bodyStart+from : bodyStart+from+size]
					}
					if o.Check() != nil {
						noticed = false
						return errWrong // a value that is wrong, and no error of bbolt
					}
				}
				return nil
			})
		})
	})
	return !errors.Is(err, errWrong)
}

var errWrong = errors.New("wrong")

// TestRollbackIsNoticed puts older files in the place of the newest, which are sound in
// themselves.
func TestRollbackIsNoticed(t *testing.T) {
	path, _, older := aged(t)
	files := takeFiles(t, path)
	for name, back := range map[string][]string{
		"the file": {path}, "the journal": {journalPath(path)}, "both": {path, journalPath(path)},
	} {
		files.put(t)
		for _, file := range back {
			if err := os.WriteFile(file, older[file], 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := objects.Open(t.Context(), path, objects.Options{}); !errors.Is(err, objects.ErrCorrupt) {
			t.Errorf("%s from before: open gives %v", name, err)
		}
		if got, err := audit(t, path, false); err != nil || len(got.harm()) == 0 {
			t.Errorf("%s from before: the audit tells nothing, %v", name, err)
		}
	}
	// The control: with the anchor from before as well nobody can know.
	older.put(t)
	s := mustOpen(t, path, objects.Options{})
	if _, err := s.Refs(t.Context(), objects.RefQuery{}); err != nil {
		t.Errorf("everything from before: %v", err)
	}
}
