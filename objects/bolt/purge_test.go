package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tract-vcs/tract/objects"
)

func erase(t testing.TB, s objects.Store, list ...objects.Object) {
	t.Helper()
	var left []objects.Tombstone
	for _, o := range list {
		left = append(left, objects.Tombstone{ID: o.ID, Time: time.Now(), Why: "test"})
	}
	if n, err := objects.Purge(t.Context(), s, left, nil); err != nil || n != len(list) {
		t.Fatalf("erase %d objects: %d, %v", len(list), n, err)
	}
}

// wantNowhere wants that words are in no file of a store.
func wantNowhere(t testing.TB, path string, words ...string) {
	t.Helper()
	if found := filesWith(t, path, words...); len(found) > 0 {
		t.Error(found)
	}
}

// filesWith returns which words are in which files of a store.
func filesWith(t testing.TB, path string, words ...string) (found []string) {
	t.Helper()
	files, err := filepath.Glob(path + "*")
	if err != nil || len(files) < 4 {
		t.Fatalf("the files of the store are %v, %v", files, err)
	}
	for _, name := range files {
		b := mustRead(t, name)
		for _, w := range words {
			if at := bytes.Index(b, []byte(w)); at >= 0 {
				found = append(found, fmt.Sprintf("%q is in %s at %d", w, filepath.Base(name), at))
			}
		}
	}
	return found
}

// spoken is a store with a history whose contents can be told apart: some in packs,
// some large, the last in the journal.
func spoken(t testing.TB, n int) (s objects.Store, path string, said []objects.Object) {
	t.Helper()
	s, path = fresh(t)
	var tip objects.ID
	for i := range n {
		words := fmt.Sprintf("<words %d>", i)
		if i%7 == 3 {
			words += strings.Repeat(words, largeSize/8)
		}
		c := object(words)
		var parents []objects.ID
		if !tip.IsZero() {
			parents = []objects.ID{tip}
		}
		k := objects.New(objects.KindCommit, parents, []objects.ID{c.ID}, []byte(fmt.Sprint("commit ", i)))
		b := objects.Batch{Put: []objects.Object{c, k}, Refs: []objects.RefUpdate{{Name: "refs/heads/main", Old: tip, New: k.ID}}}
		if err := s.Apply(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		tip, said = k.ID, append(said, c)
		if i == n/3 || i == 2*n/3 {
			mustCheckpoint(t, s)
		}
	}
	return s, path, said
}

func words(i int) string { return fmt.Sprintf("<words %d>", i) }

func TestPurgedBytesAreInNoFile(t *testing.T) {
	const n = 60
	s, path, said := spoken(t, n)
	other := mustOpen(t, path, objects.Options{})
	if _, err := objects.Read(t.Context(), other, said[0].ID); err != nil {
		t.Fatal(err)
	}
	left := path + newSuffix + "left" // by a gc that was killed
	if err := os.WriteFile(left, mustRead(t, path), 0o600); err != nil {
		t.Fatal(err)
	}
	gone := []int{0, 3, 20, 24, 41, 45, 58, 59}
	var list []objects.Object
	for _, i := range gone {
		list = append(list, said[i])
	}
	erase(t, s, list...)
	for _, i := range gone {
		wantNowhere(t, path, words(i))
	}
	found := wantClean(t, path)
	if len(found.objects) != 2*n-len(gone) || len(found.erased) != len(gone) || found.entries != n {
		t.Errorf("%d objects, %d tombstones and %d entries are left", len(found.objects), len(found.erased), found.entries)
	}
	for _, h := range []objects.Store{s, other} {
		if _, err := objects.Read(t.Context(), h, said[20].ID); !errors.Is(err, objects.ErrPurged) {
			t.Errorf("it reads as %v", err)
		}
		if _, err := objects.Read(t.Context(), h, said[21].ID); err != nil {
			t.Errorf("what is beside it: %v", err)
		}
	}
	if inner(t, other).purges() < 2 {
		t.Error("another handle does not know that something was erased")
	}
	apply(t, s, "refs/heads/later", "goes on")
	wantClean(t, path)
	sweep(t, s, objects.Sweep{Before: now()})
	if found := wantClean(t, path); len(found.erased) != len(gone) {
		t.Errorf("after gc %d tombstones are left", len(found.erased))
	}
}

// packValues returns the stored heads and bodies of all packs.
func packValues(t testing.TB, s objects.Store) map[string][]byte {
	t.Helper()
	values := map[string][]byte{}
	err := inner(t, s).view(t.Context(), "read", func(l *snapshot) error {
		for _, bucket := range []int{headsBucket, bodiesBucket} {
			for e, err := range l.ascend(bucket, nil) {
				if err != nil {
					return err
				}
				value, err := e.Value()
				if err != nil {
					return err
				}
				values[fmt.Sprintf("%s %x", buckets[bucket], e.Key)] = bytes.Clone(value)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// TestPurgeRewritesOnlyPacksWithTheContent purges one content of a store with many packs:
// all other packs stay byte for byte, and the file grows by no more than the rewritten pages.
func TestPurgeRewritesOnlyPacksWithTheContent(t *testing.T) {
	s, path := fresh(t)
	var target objects.Object
	for i := range 40 {
		var list []objects.Object
		for k := range 30 {
			list = append(list, object(fmt.Sprintf("<words %d-%d>%s", i, k, strings.Repeat("-", 3000))))
		}
		if i == 20 {
			target = list[7]
		}
		if err := s.Apply(t.Context(), objects.Batch{Put: list}); err != nil {
			t.Fatal(err)
		}
		mustCheckpoint(t, s)
	}
	idle(t, s)
	before, size := packValues(t, s), len(mustRead(t, path))
	erase(t, s, target)
	idle(t, s)
	after, changed, bytesChanged := packValues(t, s), 0, 0
	for key, value := range before {
		if !bytes.Equal(after[key], value) {
			changed, bytesChanged = changed+1, bytesChanged+len(value)
		}
	}
	if len(before) < 80 || len(after) != len(before) || changed != 2 {
		t.Errorf("%d values of %d packs changed, want a head and a body", changed, len(before)/2)
	}
	if grown := len(mustRead(t, path)) - size; grown > 4*bytesChanged+64<<10 {
		t.Errorf("the file grew by %d bytes for a pack of %d", grown, bytesChanged)
	}
	wantNowhere(t, path, "<words 20-7>")
	wantClean(t, path)
}

// TestControlOfPurge runs the steps of a purge and leaves out one kind of overwriting at a time: the
// search for the purged bytes finds each omission.
func TestControlOfPurge(t *testing.T) {
	for name, omit := range map[string]func(p *purge){
		"nothing":    func(*purge) {},
		"journal":    func(p *purge) { p.journalWiped = true },
		"free pages": func(p *purge) { p.wiped = true },
		"packs":      func(p *purge) { p.remaining = p.remaining[:len(p.remaining)-1] },
	} {
		s, path, said := spoken(t, 30)
		var list []objects.Tombstone
		for _, o := range said {
			list = append(list, objects.Tombstone{ID: o.ID, Time: time.Now()})
		}
		idle(t, s)
		in := inner(t, s)
		rest, err := in.tombstonesToWrite(t.Context(), list)
		if err != nil || len(rest) != len(said) {
			t.Fatalf("%d of %d are to be purged: %v", len(rest), len(said), err)
		}
		p := &purge{remaining: rest}
		omit(p)
		for done := false; !done; {
			twin := in.withOwnHandles()
			err := twin.withExclusiveHandle(t.Context(), "purge in", func(h *handle) (err error) {
				done, err = p.step(twin, h)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		idle(t, s)
		var all []string
		for i := range said {
			all = append(all, words(i))
		}
		if found := filesWith(t, path, all...); (len(found) > 0) != (name != "nothing") {
			t.Errorf("without %s: found %v", name, found)
		}
		wantClean(t, path)
	}
}

// TestInterruptedPurgeIsCompletedByTheNextWriter stops a purge after each of its steps, with
// steps so small that it takes many: before the first nothing is erased, and after it the
// next write erases everything and leaves no byte.
func TestInterruptedPurgeIsCompletedByTheNextWriter(t *testing.T) {
	for stop := 0; ; stop++ {
		s, path, said := spoken(t, 30)
		_ = s.Close()
		s = mustOpen(t, path, objects.Options{})
		in := inner(t, s)
		var list []objects.Tombstone
		var all []string
		for i, o := range said {
			list, all = append(list, objects.Tombstone{ID: o.ID, Time: time.Now()}), append(all, words(i))
		}
		rest, err := in.tombstonesToWrite(t.Context(), list)
		if err != nil {
			t.Fatal(err)
		}
		p, done := &purge{remaining: rest, stepBytes: 20 << 10}, false
		for i := 0; i < stop && !done; i++ {
			twin := in.withOwnHandles()
			err := twin.withExclusiveHandle(t.Context(), "purge in", func(h *handle) (err error) {
				done, err = p.step(twin, h)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if got, err := audit(t, path, false); err != nil || len(got.harm()) > 0 || (len(got.damages) > 0) != (stop > 0 && !done) {
			t.Errorf("after %d steps: %v, %v", stop, err, got.damages)
		}
		apply(t, s, "refs/heads/next", "next")
		idle(t, s)
		found := wantClean(t, path)
		if stop == 0 {
			if len(found.erased) != 0 {
				t.Errorf("%d objects were erased before the first step", len(found.erased))
			}
			continue
		}
		if len(found.erased) != len(said) {
			t.Errorf("after %d steps and a write %d objects of %d are erased", stop, len(found.erased), len(said))
		}
		wantNowhere(t, path, all...)
		if done {
			break
		}
	}
}

// TestPurgeCompletesAnInterruptedOne purges again after a purge whose process was killed: the same
// objects, of which the store has tombstones by then, or others. Nothing of either is left, nor of what
// a killed gc has left.
func TestPurgeCompletesAnInterruptedOne(t *testing.T) {
	for _, again := range []bool{true, false} {
		s, path, said := spoken(t, 30)
		in := idle(t, s)
		tombstones := func(list []objects.Object) (all []objects.Tombstone) {
			for _, o := range list {
				all = append(all, objects.Tombstone{ID: o.ID, Time: time.Now()})
			}
			return all
		}
		rest, err := in.tombstonesToWrite(t.Context(), tombstones(said[:20]))
		if err != nil {
			t.Fatal(err)
		}
		twin, p := in.withOwnHandles(), &purge{remaining: rest, stepBytes: 20 << 10}
		err = twin.withExclusiveHandle(t.Context(), "purge in", func(h *handle) error {
			_, err := p.step(twin, h)
			return err
		})
		if err != nil || len(p.remaining) == 0 {
			t.Fatalf("%d objects are left to erase, %v", len(p.remaining), err)
		}
		left := path + newSuffix + "123"
		if err := os.WriteFile(left, []byte(words(0)), 0o600); err != nil {
			t.Fatal(err)
		}
		second := said[20:]
		if again {
			second = said[:20]
		}
		if _, err := in.Purge(t.Context(), tombstones(second), nil); err != nil {
			t.Fatal(err)
		}
		var all []string
		for i := range said {
			if i < 20 || !again {
				all = append(all, words(i))
			}
		}
		wantNowhere(t, path, all...)
		if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the leftover of gc: %v", err)
		}
		wantClean(t, path)
	}
}

// TestSweepRemovesUnreachableTombstones has gc remove a tombstone to which nothing refers.
func TestSweepRemovesUnreachableTombstones(t *testing.T) {
	s, path, _ := spoken(t, 10)
	stray := object("nobody names me")
	if err := s.Apply(t.Context(), objects.Batch{Put: []objects.Object{stray}}); err != nil {
		t.Fatal(err)
	}
	erase(t, s, stray)
	sweep(t, s, objects.Sweep{Before: time.Now().Add(-time.Hour)})
	if found := wantClean(t, path); len(found.erased) != 1 {
		t.Errorf("%d tombstones are left of a purge within the time of grace", len(found.erased))
	}
	sweep(t, s, objects.Sweep{Before: now()})
	if found := wantClean(t, path); len(found.erased) != 0 || len(found.objects) != 20 {
		t.Errorf("%d tombstones and %d objects are left", len(found.erased), len(found.objects))
	}
	before := time.Now().Add(-time.Hour)
	late := objects.Tombstone{ID: stray.ID, Kind: objects.KindContent, Time: before.Add(-time.Second)}
	if n, err := objects.Purge(t.Context(), s, []objects.Tombstone{late}, nil); n != 1 || err != nil {
		t.Fatalf("purge: %d, %v", n, err)
	}
	sweep(t, s, objects.Sweep{Before: before})
	if found := wantClean(t, path); len(found.erased) != 0 || len(found.objects) != 20 {
		t.Errorf("%d tombstones of a purge before the time of grace are left, and %d objects", len(found.erased), len(found.objects))
	}
}

// TestPurgedObjectsCanBePutAgain puts purged objects again. They are then stored like all others: in
// the journal, a pack, and the new file of a gc.
func TestPurgedObjectsCanBePutAgain(t *testing.T) {
	s, path, said := spoken(t, 30)
	small, large := said[2], said[3]
	want := func(what string, erased int) {
		t.Helper()
		for _, o := range []objects.Object{small, large} {
			if got, err := objects.Read(t.Context(), s, o.ID); err != nil || !bytes.Equal(got.Data, o.Data) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if found := wantClean(t, path); len(found.erased) != erased || len(found.objects) != 60-erased {
			t.Errorf("%s: %d tombstones and %d objects", what, len(found.erased), len(found.objects))
		}
	}
	erase(t, s, small, large, said[4])
	if err := s.Apply(t.Context(), objects.Batch{Put: []objects.Object{small, large}}); err != nil {
		t.Fatal(err)
	}
	want("in the journal", 1)
	mustCheckpoint(t, s)
	want("in the file", 1)
	sweep(t, s, objects.Sweep{Before: now()})
	want("in a new file", 1)
}

// TestPurgeRefusesADamagedPack purges an object of a pack in which another is damaged: the
// new checksum would stand for both.
func TestPurgeRefusesADamagedPack(t *testing.T) {
	s, path, said := spoken(t, 30)
	mustCheckpoint(t, s)
	_ = s.Close()
	b := bytes.ReplaceAll(mustRead(t, path), []byte(words(7)), []byte("<words ?>"))
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, path, objects.Options{})
	_, err := objects.Purge(t.Context(), s, []objects.Tombstone{{ID: said[1].ID}}, nil)
	if !errors.Is(err, objects.ErrCorrupt) {
		t.Errorf("objects of a damaged store were erased: %v", err)
	}
	if !bytes.Equal(mustRead(t, path), b) {
		t.Error("it has changed")
	}
	if read := mustOpen(t, path, objects.Options{ReadOnly: true}); true {
		_, err := objects.Purge(t.Context(), read, []objects.Tombstone{{ID: said[1].ID}}, nil)
		if !errors.Is(err, objects.ErrReadOnly) {
			t.Errorf("a store that is only read: %v", err)
		}
	}
}

// TestDamageOfATombstone flips every bit of one.
func TestDamageOfATombstone(t *testing.T) {
	good := encodeTombstone(objects.Tombstone{ID: object("x").ID, Kind: objects.KindContent, Size: 5, Time: now(), Why: "why", Remains: []byte("rest")})
	for bit := range 8 * len(good) {
		b := bytes.Clone(good)
		b[bit/8] ^= 1 << (bit % 8)
		o, err := decodeObject(object("x").ID, b)
		if errors.Is(err, objects.ErrPurged) || err == nil && o.Check() == nil {
			t.Fatalf("bit %d: %v", bit, err)
		}
	}
	if _, err := decodeObject(object("y").ID, good); !errors.Is(err, objects.ErrCorrupt) {
		t.Errorf("the tombstone of another: %v", err)
	}
}

// TestFileThatReusesAnInode rewrites the store twice, so that the new file has the inode of an old
// one: a process that had the old file open sees that it is another file.
func TestFileThatReusesAnInode(t *testing.T) {
	s, path := fresh(t)
	apply(t, s, "refs/heads/main", "one")
	mustCheckpoint(t, s)
	other := mustOpen(t, filepath.Dir(path), objects.Options{})
	read := func() {
		t.Helper()
		if _, err := objects.Read(t.Context(), other, object("one").ID); err != nil {
			t.Fatal(err)
		}
	}
	read()
	was := inner(t, other).purges()
	idle(t, other)
	place := filepath.Join(t.TempDir(), "place")
	if err := os.Link(path, place); err != nil {
		t.Skip(err)
	}
	sweep(t, s, objects.Sweep{Before: now()})
	idle(t, s)
	if err := os.WriteFile(place, mustRead(t, path), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(place, path); err != nil {
		t.Fatal(err)
	}
	if read(); inner(t, other).purges() == was {
		t.Error("what was read of the old file is taken for true of the new one")
	}
}
