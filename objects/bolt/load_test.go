package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/objectstest"
)

// seen is a history as a walk has seen it: its contents, and where they lay.
type seen struct {
	ids      []objects.ID
	locators []objects.Locator
	known    int
}

func walked(t testing.TB, s objects.Store, tip objects.ID) (h seen) {
	t.Helper()
	for run, err := range objects.ChainRuns(t.Context(), s, tip, 0) {
		if err != nil {
			t.Fatal(err)
		}
		locators := objectstest.Locators(&run)
		for _, c := range run.Objects {
			locator, known := locators[c.Links[0]]
			if h.ids, h.locators = append(h.ids, c.Links[0]), append(h.locators, locator); known {
				h.known++
			}
		}
	}
	return h
}

// wanted asks for a history and notes what it gets.
func (h seen) wanted(got map[objects.ID]objects.Object, failed map[objects.ID]error) objects.LoadRequest {
	var mu sync.Mutex
	return objects.LoadRequest{
		Len: len(h.ids),
		At:  func(i int) (objects.ID, objects.Locator) { return h.ids[i], h.locators[i] },
		Give: func(i int, o *objects.Object, err error) error {
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed[h.ids[i]] = err
			} else {
				got[h.ids[i]] = *o
			}
			return nil
		},
	}
}

// load asks for a history, and counts the objects that had to be looked for.
func (h seen) load(t testing.TB, s objects.Store) (got map[objects.ID]objects.Object, failed map[objects.ID]error, looked int) {
	t.Helper()
	got, failed = map[objects.ID]objects.Object{}, map[objects.ID]error{}
	w := h.wanted(got, failed)
	rest, err := inner(t, s).Load(t.Context(), w)
	if err == nil {
		err = objects.Load(t.Context(), s, w)
	}
	if err != nil {
		t.Fatal(err)
	}
	return got, failed, len(rest)
}

func (m sample) wantAll(t testing.TB, h seen, got map[objects.ID]objects.Object) {
	t.Helper()
	for _, id := range h.ids {
		if o, ok := got[id]; !ok || !bytes.Equal(o.Data, m.objects[id].Data) || o.Kind != objects.KindContent {
			t.Fatalf("object %s is there: %v, %.60q", id.Short(), ok, o.Data)
		}
	}
}

func TestLoadWithLocatorsReadsNoIndex(t *testing.T) {
	path, m := large(t, 900)
	s := mustOpen(t, path, objects.Options{})
	h := walked(t, s, m.tip)
	if h.known < 500 {
		t.Fatalf("the locators of %d of %d contents are known", h.known, len(h.ids))
	}
	got, _, looked := h.load(t, s)
	m.wantAll(t, h, got)
	if looked > len(h.ids)-h.known {
		t.Errorf("%d of %d were looked for, and of %d the locator is not known", looked, len(h.ids), len(h.ids)-h.known)
	}
	few := seen{ids: h.ids[500:502], locators: h.locators[500:502]}
	if got, _, looked := few.load(t, s); looked != 2 || len(got) != 2 {
		t.Errorf("of two that are wanted of a pack %d were looked for, and %d came", looked, len(got))
	}
}

// TestContentsLieBesideCommitsAfterSweep packs a history of several times pendingBytes. The walk knows
// where each content lies: otherwise a whole pack is unpacked for one content, and then once more.
func TestContentsLieBesideCommitsAfterSweep(t *testing.T) {
	s, _ := fresh(t)
	var put []objects.Object
	var tip objects.ID
	for i := range 5 * pendingBytes / (8 << 10) {
		said := object(fmt.Sprintf("%08d", i) + strings.Repeat("word ", 8<<10/5))
		c := objects.New(objects.KindCommit, parentsOf(tip), []objects.ID{said.ID}, fmt.Append(nil, i))
		put, tip = append(put, said, c), c.ID
	}
	if err := s.Apply(t.Context(), objects.Batch{Put: put, Refs: []objects.RefUpdate{{Name: "refs/heads/main", New: tip}}}); err != nil {
		t.Fatal(err)
	}
	sweep(t, s, objects.Sweep{Before: now()})
	if h := walked(t, s, tip); len(h.ids) != len(put)/2 || h.known != len(h.ids) {
		t.Errorf("of %d contents are %d known, want all of %d", len(h.ids), h.known, len(put)/2)
	}
}

// TestLocatorsOfAnotherFile walks over a history and loads its contents after gc has rewritten the
// file with other packs.
func TestLocatorsOfAnotherFile(t *testing.T) {
	path, m := large(t, 900)
	s, other := mustOpen(t, path, objects.Options{}), mustOpen(t, path, objects.Options{})
	h := walked(t, s, m.tip)
	sweep(t, other, objects.Sweep{Before: now()})
	got, _, looked := h.load(t, s)
	m.wantAll(t, h, got)
	if looked != len(h.ids) {
		t.Errorf("%d of %d were looked for", looked, len(h.ids))
	}
	number := inner(t, s).purges()
	for i := range h.locators { // a file with the inode of the first would be taken for it
		if h.locators[i][0] > 0 {
			h.locators[i][0] = number<<32 | h.locators[i][0]&(1<<32-1)
		}
	}
	got, _, looked = h.load(t, s)
	if m.wantAll(t, h, got); looked != len(h.ids) {
		t.Errorf("of a file taken for another %d of %d were looked for", looked, len(h.ids))
	}
}

// TestLocatorsInADamagedBody flips a bit of a content: one object of the pack is damaged, and the
// others are right.
func TestLocatorsInADamagedBody(t *testing.T) {
	path, m := large(t, 900)
	h := walked(t, mustOpen(t, path, objects.Options{}), m.tip)
	i := 399 // commit 500, whose words are no piece of others
	file := mustRead(t, path)
	words := m.objects[h.ids[i]].Data
	if !bytes.Contains(file, words) {
		t.Fatal("the words are not in the file as they are")
	}
	file = bytes.ReplaceAll(file, words, append([]byte("?"), words[1:]...)) // in pages that are free, too
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, path, objects.Options{})
	h = walked(t, s, m.tip)
	got, failed, _ := h.load(t, s)
	if len(failed) != 1 || !errors.Is(failed[h.ids[i]], objects.ErrCorrupt) || len(got) != len(h.ids)-1 {
		t.Errorf("%d came, and %v", len(got), failed)
	}
	got[h.ids[i]] = m.objects[h.ids[i]]
	m.wantAll(t, h, got)
}

// TestLoadWhileGCRuns walks and loads while the file is written anew again and again.
func TestLoadWhileGCRuns(t *testing.T) {
	path, m := large(t, 900)
	s, other := mustOpen(t, path, objects.Options{}), mustOpen(t, path, objects.Options{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 6 {
			sweep(t, other, objects.Sweep{Before: now()})
		}
	}()
	for over := false; !over; {
		select {
		case <-done:
			over = true
		default:
		}
		h := walked(t, s, m.tip)
		got, failed, _ := h.load(t, s)
		if m.wantAll(t, h, got); len(failed) > 0 {
			t.Fatal(failed)
		}
	}
}

// TestLoadDoesNotTrustSizes gives locators with enormous sizes, as a damaged file may have them. The memory
// that is allocated ahead is bounded, and every object comes.
func TestLoadDoesNotTrustSizes(t *testing.T) {
	path, m := large(t, 900)
	s := mustOpen(t, path, objects.Options{})
	h := walked(t, s, m.tip)
	for i := len(h.locators) - 100; i < len(h.locators); i++ {
		h.locators[i][1] |= 1<<31 - 1
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, _, _ := h.load(t, s)
	runtime.ReadMemStats(&after)
	m.wantAll(t, h, got)
	if n := after.TotalAlloc - before.TotalAlloc; n > 3*maxReserved { // load loads twice
		t.Errorf("%d MB were allocated", n>>20)
	}
}

// TestLoadGivesEveryIndexOnce requests some objects more than once, in random order.
func TestLoadGivesEveryIndexOnce(t *testing.T) {
	path, m := large(t, 900)
	s := mustOpen(t, path, objects.Options{})
	h := walked(t, s, m.tip)
	h.ids, h.locators = append(h.ids, h.ids[100:400]...), append(h.locators, h.locators[100:400]...)
	slices.Reverse(h.ids)
	slices.Reverse(h.locators)
	given := make([]int, len(h.ids))
	var mu sync.Mutex
	err := objects.Load(t.Context(), s, objects.LoadRequest{
		Len: len(h.ids),
		At:  func(i int) (objects.ID, objects.Locator) { return h.ids[i], h.locators[i] },
		Give: func(i int, o *objects.Object, err error) error {
			mu.Lock()
			defer mu.Unlock()
			if given[i]++; o.ID != h.ids[i] || !bytes.Equal(o.Data, m.objects[o.ID].Data) {
				t.Errorf("place %d gets %s", i, o.ID.Short())
			}
			return err
		},
	})
	if i := slices.IndexFunc(given, func(n int) bool { return n != 1 }); err != nil || i >= 0 {
		t.Errorf("place %d was not given once, %v", i, err)
	}
	stop := errors.New("enough")
	err = objects.Load(t.Context(), s, objects.LoadRequest{
		Len:  len(h.ids),
		At:   func(i int) (objects.ID, objects.Locator) { return h.ids[i], h.locators[i] },
		Give: func(int, *objects.Object, error) error { return stop },
	})
	if !errors.Is(err, stop) {
		t.Errorf("who takes no more gets %v", err)
	}
}
