package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/page"
)

// woods is the file of a store whose larger trees have branches, and what is in it.
type woods struct {
	file   []byte
	meta   page.Meta
	ids    []objects.ID
	purged []objects.ID // which have stonestones
	refs   map[string]objects.ID
	rounds int // in each of which every ref was moved
}

func newWoods(t *testing.T) *woods {
	t.Helper()
	s, path := fresh(t)
	w := &woods{refs: map[string]objects.ID{}, rounds: 3}
	var stones []objects.Tombstone
	for round := range w.rounds { // each leaves a run of the index
		var b objects.Batch
		for i := range 150 {
			o := object(fmt.Sprint("words ", round, i))
			if i%15 == 0 {
				stones = append(stones, objects.Tombstone{ID: o.ID, Why: strings.Repeat("old", 300)})
				w.purged = append(w.purged, o.ID)
			}
			k := objects.New(objects.KindCommit, nil, []objects.ID{o.ID}, fmt.Append(nil, round, i))
			b.Put = append(b.Put, o, k)
			w.ids = append(w.ids, o.ID, k.ID)
			if name := fmt.Sprintf("refs/heads/%03d", i); i < 60 {
				b.Refs = append(b.Refs, objects.RefUpdate{Name: name, Old: w.refs[name], New: k.ID})
				w.refs[name] = k.ID
			}
		}
		for i := range 900 { // so that a run has several chunks
			b.Put = append(b.Put, object(fmt.Sprint("more words ", round, i)))
		}
		if err := s.Apply(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		mustCheckpoint(t, s)
	}
	if n, err := objects.Purge(t.Context(), s, stones, nil); err != nil || n != len(stones) {
		t.Fatalf("purge: %d, %v", n, err)
	}
	idle(t, s)
	w.file = mustRead(t, path)
	var err error
	if w.meta, err = page.ReadMeta(bytes.NewReader(w.file), int64(len(w.file))); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *woods) snapshot() *snapshot { return newSnapshot(bytes.NewReader(w.file), w.meta) }

// pages are those of a bucket that are branches, or leaves with one above them.
func (w *woods) pages(t *testing.T, bucket int, leaves bool) (list []*page.Page) {
	t.Helper()
	l := w.snapshot()
	in, err := l.bucket(bucket)
	if err != nil || in.Inline != nil {
		return nil
	}
	next := []uint64{in.Root}
	for len(next) > 0 {
		p, err := l.pages.Page(next[0])
		if err != nil {
			t.Fatal(err)
		}
		if next = next[1:]; p.Leaf == leaves && (!leaves || p.ID != in.Root) {
			list = append(list, p)
		}
		for i := 0; !p.Leaf && i < p.Count; i++ {
			next = append(next, p.Element(i).Child)
		}
	}
	return list
}

// flipKeys calls try after each flip of one bit of a key of a page, in the short forms some of
// them, and returns how many there were.
func (w *woods) flipKeys(p *page.Page, try func(key int, what string)) (flips int) {
	for i := range p.Count {
		e := p.Element(i)
		for bit := 0; bit < 8*e.KeySize; bit += rounds(7, 7, 1) {
			b := &w.file[int(p.Offset)+e.KeyAt+bit/8]
			*b ^= 1 << (bit % 8)
			try(i, fmt.Sprintf("page %d, bit %d of key %d", p.ID, bit, i))
			*b ^= 1 << (bit % 8)
			flips++
		}
	}
	return flips
}

// told tells whether who reads a store is told by an error that it is damaged.
func told(err error) bool {
	return errors.Is((&store{path: "x.db"}).explain("read", err), objects.ErrCorrupt)
}

// wantIDs looks for objects one by one: each is there, or nobody knows.
func (w *woods) wantIDs(t *testing.T, what string, ids []objects.ID) {
	t.Helper()
	l := w.snapshot()
	for _, id := range ids {
		if ok, err := l.isStoredOrPurged(id); !ok && !told(err) {
			t.Errorf("%s: object %s is said not to be there: %v", what, id.Short(), err)
		}
	}
}

// wantMany looks for objects together.
func (w *woods) wantMany(t *testing.T, what string, ids []objects.ID) {
	t.Helper()
	list := make([]objects.Object, len(ids))
	for i := range ids {
		list[i].ID = ids[i]
	}
	l := w.snapshot()
	known, err := l.possiblePlaces(list)
	for _, id := range ids {
		there := len(known[id]) > 0
		if !there && err == nil {
			there, err = l.hasRecord(&id)
		}
		if !there && !told(err) {
			t.Errorf("%s: object %s would be stored again: %v", what, id.Short(), err)
		}
	}
}

// wantRefs reads all refs.
func (w *woods) wantRefs(t *testing.T, what string) {
	t.Helper()
	l := w.snapshot()
	for name, want := range w.refs {
		if r, err := l.ref(name); r.Target != want && !told(err) {
			t.Errorf("%s: %s is at %s: %v", what, name, r.Target.Short(), err)
		}
	}
}

// wantLog reads the log of each ref.
func (w *woods) wantLog(t *testing.T, what string) {
	t.Helper()
	l := w.snapshot()
	for name := range w.refs {
		n, last := 0, error(nil)
		for _, err := range l.log(name, math.MaxUint64) {
			n, last = n+1, err
		}
		if n != w.rounds && !told(last) {
			t.Errorf("%s: the log of %s has %d entries of %d: %v", what, name, n, w.rounds, last)
		}
	}
}

// TestBranchPageLeadsToTheWrongLeaf flips each bit of each key of each branch. Where the
// keys are in order still, what lies at the edge of a leaf is looked for in a sound one
// beside it: it is found, or there is damage, but nothing is said not to be there.
func TestBranchPageLeadsToTheWrongLeaf(t *testing.T) {
	w := newWoods(t)
	for bucket, want := range map[int]func(what string){
		objectsBucket: func(what string) { w.wantIDs(t, what, w.purged); w.wantMany(t, what, w.purged) },
		indexBucket:   func(what string) { w.wantIDs(t, what, w.ids); w.wantMany(t, what, w.ids) },
		refsBucket:    func(what string) { w.wantRefs(t, what) },
		movesBucket:   func(what string) { w.wantLog(t, what) },
	} {
		flips := 0
		for _, p := range w.pages(t, bucket, false) {
			flips += w.flipKeys(p, func(_ int, what string) { want(buckets[bucket] + ": " + what) })
		}
		if flips == 0 {
			t.Errorf("%s has no branches", buckets[bucket])
		}
	}
}

// TestDamagedKeyOfATombstone flips each bit of each key of the stonestones: those
// that have another are found as before, or there is damage.
func TestDamagedKeyOfATombstone(t *testing.T) {
	w, flips := newWoods(t), 0
	for _, p := range w.pages(t, objectsBucket, true) {
		var keys []objects.ID
		for i := range p.Count {
			key, err := p.Key(i)
			if err != nil {
				t.Fatal(err)
			}
			keys = append(keys, objects.ID(key))
		}
		flips += w.flipKeys(p, func(key int, what string) {
			w.wantIDs(t, what, slices.DeleteFunc(slices.Clone(w.purged), func(id objects.ID) bool { return id == keys[key] }))
		})
	}
	if flips == 0 {
		t.Error("there are no stonestones below a branch")
	}
}

// TestDamagedKeyOfAnIndexChunk flips each bit of each key of the index: what it leads to is
// found, or there is damage, wherever the chunk seems to belong now.
func TestDamagedKeyOfAnIndexChunk(t *testing.T) {
	w, flips := newWoods(t), 0
	for _, p := range w.pages(t, indexBucket, true) {
		flips += w.flipKeys(p, func(_ int, what string) { w.wantIDs(t, what, w.ids); w.wantMany(t, what, w.ids) })
	}
	if flips == 0 {
		t.Error("the index has no leaves below a branch")
	}
}
