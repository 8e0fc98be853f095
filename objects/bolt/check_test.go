package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/page"
)

// audited is what an audit found.
type audited struct {
	objects map[objects.ID]objects.Object
	erased  map[objects.ID]objects.Tombstone
	refs    map[string]objects.ID
	entries int
	damages []objects.Damage
}

// take keeps copies of objects.
func (a *audited) take(list []objects.Object) error {
	for _, o := range list {
		a.objects[o.ID] = o.Clone()
	}
	return nil
}

// harm is the damage that is not harmless.
func (a audited) harm() (list []objects.Damage) {
	for _, d := range a.damages {
		if !d.Harmless {
			list = append(list, d)
		}
	}
	return list
}

func audit(t testing.TB, path string, deep bool) (got audited, err error) {
	t.Helper()
	s, err := objects.Open(t.Context(), path, objects.Options{Damaged: true, Wait: time.Second})
	if err != nil {
		return got, err
	}
	defer func() { _ = s.Close() }()
	in, ok := objects.As[objects.Maintainer](s)
	if !ok {
		t.Fatal("the engine cannot be audited")
	}
	return got, in.Audit(t.Context(), objects.Audit{
		Deep: deep,
		Begin: func(int) error {
			got = audited{objects: map[objects.ID]objects.Object{}, erased: map[objects.ID]objects.Tombstone{}, refs: map[string]objects.ID{}}
			return nil
		},
		Objects: func(list []objects.Object) error {
			for _, o := range list {
				if err := o.Check(); err != nil {
					t.Errorf("an audit gave a damaged object: %v", err)
				}
			}
			return got.take(list)
		},
		Tombstone: func(o objects.Tombstone) error { got.erased[o.ID] = o; return nil },
		Ref:       func(r objects.Ref) error { got.refs[r.Name] = r.Target; return nil },
		Entry:     func(objects.LogEntry) error { got.entries++; return nil },
		Damage:    func(d objects.Damage) error { got.damages = append(got.damages, d); return nil },
	})
}

// TestAuditEndsWithTheErrorOfItsCaller returns an error from a callback: no callback is called after
// the first error, and none is running when the audit has returned.
func TestAuditEndsWithTheErrorOfItsCaller(t *testing.T) {
	path, _ := large(t, 900)
	s := mustOpen(t, path, objects.Options{})
	in, ok := objects.As[objects.Maintainer](s)
	if !ok {
		t.Fatal("the engine cannot be audited")
	}
	enough := errors.New("enough")
	for after := range 4 {
		turns := 0
		err := in.Audit(t.Context(), objects.Audit{Objects: func(list []objects.Object) error {
			for _, o := range list {
				if err := o.Check(); err != nil {
					t.Errorf("its memory went to another: %v", err)
				}
			}
			if turns++; turns > after {
				return enough
			}
			return nil
		}})
		if !errors.Is(err, enough) || turns != after+1 {
			t.Errorf("after %d turns: %v", turns, err)
		}
	}
}

// large is a store with packs, large objects, a journal with frames and an anchor.
func large(t testing.TB, commits int) (path string, m sample) {
	t.Helper()
	s, path := fresh(t)
	m = sample{objects: map[objects.ID]objects.Object{}, refs: map[string]objects.ID{}}
	for i := range commits {
		c := object(fmt.Sprint(i, strings.Repeat("y", 20+i*61%900)))
		if i%67 == 3 {
			c = object(fmt.Sprint(i, strings.Repeat("z", largeSize+i*13)))
		}
		var parents []objects.ID
		if !m.tip.IsZero() {
			parents = []objects.ID{m.tip}
		}
		k := objects.New(objects.KindCommit, parents, []objects.ID{c.ID}, []byte(fmt.Sprint("commit ", i)))
		b := objects.Batch{Put: []objects.Object{c, k}, Refs: []objects.RefUpdate{{Name: "refs/heads/main", Old: m.tip, New: k.ID}}}
		if i%10 == 0 {
			b.Refs = append(b.Refs, objects.RefUpdate{Name: fmt.Sprint("refs/tags/", i), New: k.ID})
			m.refs[fmt.Sprint("refs/tags/", i)] = k.ID
		}
		if err := s.Apply(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		m.objects[c.ID], m.objects[k.ID], m.tip = c, k, k.ID
		m.refs["refs/heads/main"] = k.ID
		if i == commits/3 || i == 2*commits/3 {
			mustCheckpoint(t, s)
		}
	}
	idle(t, s)
	return path, m
}

func TestAuditOfASoundStore(t *testing.T) {
	path, m := large(t, 300)
	for _, deep := range []bool{false, true} {
		got, err := audit(t, path, deep)
		if err != nil || len(got.damages) > 0 {
			t.Fatalf("deep %t: %v, %+v", deep, err, got.damages)
		}
		if len(got.objects) != len(m.objects) || len(got.refs) != len(m.refs) || got.entries != 300 {
			t.Errorf("deep %t: %d objects of %d, %d refs of %d, %d entries", deep, len(got.objects), len(m.objects), len(got.refs), len(m.refs), got.entries)
		}
	}
}

// storeFiles are the files of a store, and put back what they were.
type storeFiles map[string][]byte

func takeFiles(t testing.TB, path string) storeFiles {
	t.Helper()
	files := storeFiles{}
	for _, name := range []string{path, journalPath(path), gatePath(path)} {
		files[name] = mustRead(t, name)
	}
	return files
}

func (f storeFiles) put(t testing.TB) {
	t.Helper()
	for name, b := range f {
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// torture tells whether the long forms of tests are wanted.
func torture() bool { return os.Getenv("TRACT_TORTURE") != "" }

// TestEveryFlippedBitIsFoundOrHarmless flips one bit at a time in any of the files. Either
// the audit tells, or the store is as if nothing had happened: all of its objects,
// refs and entries are there.
func TestEveryFlippedBitIsFoundOrHarmless(t *testing.T) {
	flips := rounds(40, 40, 10_000)
	path, m := large(t, 300)
	files := takeFiles(t, path)
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(1, seed))
	names := []string{path, path, path, path, journalPath(path), gatePath(path)}
	found, saved := 0, 0
	for i := range flips {
		name := names[r.IntN(len(names))]
		b := append([]byte(nil), files[name]...)
		bit := r.IntN(len(b) * 8)
		if i%2 == 0 && name == path {
			bit = r.IntN(len(b)/4096)*4096*8 + r.IntN(160*8)
		}
		b[bit/8] ^= 1 << (bit % 8)
		files.put(t)
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
		what := fmt.Sprintf("seed %d: bit %d of byte %d of %s", seed, bit%8, bit/8, filepath.Base(name))
		got, err := audit(t, path, false)
		if err != nil && !errors.Is(err, objects.ErrCorrupt) {
			t.Fatalf("%s: %v", what, err)
		}
		if len(got.harm()) > 0 {
			found++
		} else if !m.isIn(got) {
			t.Errorf("%s: nothing was told, and it is not all there", what)
		}
		if i%4 != 0 {
			continue
		}
		if got, err = audit(t, path, true); err != nil {
			t.Errorf("%s: salvage: %v", what, err)
		}
		lost := m.lostIn(got)
		if saved++; lost > 2 { // of the journal, a frame
			t.Errorf("%s: %d objects of %d are lost by one bit: %.400v", what, lost, len(m.objects), got.damages)
		}
	}
	t.Logf("%d of %d flips were told, the others harmless; of %d stores all was saved but at most two objects", found, flips, saved)
	if found < flips/4 {
		t.Errorf("only %d of %d flips were told", found, flips)
	}
}

// isIn tells whether everything of the sample was found.
func (m sample) isIn(got audited) bool {
	for name, id := range m.refs {
		if got.refs[name] != id {
			return false
		}
	}
	return m.lostIn(got) == 0 && len(got.refs) == len(m.refs)
}

func (m sample) lostIn(got audited) (lost int) {
	for id := range m.objects {
		if _, ok := got.objects[id]; !ok {
			lost++
		}
	}
	return lost
}

// TestPageOfABucketThatIsEmpty takes all keys of the only page of the tombstones: nobody
// else knows that there were some.
func TestPageOfABucketThatIsEmpty(t *testing.T) {
	s, path := fresh(t)
	var stones []objects.Tombstone
	for i := range 3 { // they are too long for an inline page
		stones = append(stones, objects.Tombstone{ID: object(fmt.Sprint(i)).ID, Kind: objects.KindContent, Why: strings.Repeat("old", 300)})
	}
	if n, err := objects.Purge(t.Context(), s, stones, nil); err != nil || n != len(stones) {
		t.Fatalf("purge: %d, %v", n, err)
	}
	idle(t, s)
	b := mustRead(t, path)
	now, err := page.ReadMeta(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	in, err := newSnapshot(bytes.NewReader(b), now).bucket(objectsBucket)
	if err != nil || in.Inline != nil {
		t.Fatalf("the tombstones have no page: %v", err)
	}
	page.Order.PutUint16(b[int(in.Root)*now.PageSize+10:], 0)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := audit(t, path, false)
	for _, d := range got.harm() {
		if strings.Contains(d.Where, fmt.Sprintf("page %d (objects)", in.Root)) && d.What == "it is empty" {
			return
		}
	}
	t.Errorf("a page without its keys: %v, %+v", err, got.damages)
}
