package bolt

import (
	"fmt"
	"testing"

	"github.com/tract-vcs/tract/objects"
)

// sweptAround looks at a store and writes the file that is to take its place; then does
// something meanwhile, and gives the file the name.
func sweptAround(t *testing.T, s objects.Store, meanwhile func()) {
	t.Helper()
	in := inner(t, s)
	var w *sweeper
	var part *compaction
	err := in.steadily(t.Context(), "clean", nil, func(h *steady) (err error) {
		w = newSweeper(objects.Sweep{Before: now()})
		if err := w.look(in, h); err != nil {
			return err
		}
		part, err = in.compact(h, w)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	meanwhile()
	if err := in.exchange(t.Context(), w, part); err != nil {
		t.Fatal(err)
	}
}

// TestAMoveMeanwhileBringsBack moves a ref to what a sweep is about to take away, while
// the journal has moves from before the sweep: all of them are folded together.
func TestAMoveMeanwhileBringsBack(t *testing.T) {
	for _, moves := range []int{0, 1, 20} {
		s, path := fresh(t)
		stray := objects.New(objects.KindCommit, nil, nil, []byte("stray"))
		live := objects.New(objects.KindCommit, nil, nil, []byte("live"))
		put := func(b objects.Batch) {
			t.Helper()
			if err := s.Apply(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		}
		put(objects.Batch{Put: []objects.Object{stray, live}})
		fold(t, s)
		for i := range moves {
			put(objects.Batch{Refs: []objects.RefUpdate{{Name: fmt.Sprint("refs/heads/a", i), New: live.ID}}})
		}
		sweptAround(t, s, func() {
			put(objects.Batch{Refs: []objects.RefUpdate{{Name: "refs/heads/b", New: stray.ID}}})
		})
		if _, err := objects.Read(t.Context(), s, stray.ID); err != nil {
			t.Errorf("after %d moves: %v", moves, err)
		}
		wantClean(t, path)
	}
}

// TestAListMeanwhileKeepsItsChunks says anew, during a sweep, what was erased and led to
// by nobody: it comes back with all of its chunks.
func TestAListMeanwhileKeepsItsChunks(t *testing.T) {
	s, path := fresh(t)
	var chunks []objects.Object
	var ids []objects.ID
	for i := range 200 {
		o := objects.New(objects.KindChunk, nil, nil, fmt.Append(nil, "chunk ", i))
		chunks, ids = append(chunks, o), append(ids, o.ID)
	}
	list := objects.New(objects.KindList, nil, ids, []byte("list"))
	if err := s.Apply(t.Context(), objects.Batch{Put: append(chunks, list)}); err != nil {
		t.Fatal(err)
	}
	fold(t, s)
	erase(t, s, list)
	again := objects.New(objects.KindCommit, nil, []objects.ID{list.ID}, []byte("again"))
	sweptAround(t, s, func() {
		err := s.Apply(t.Context(), objects.Batch{
			Put: []objects.Object{list, again}, Refs: []objects.RefUpdate{{Name: "refs/heads/b", New: again.ID}},
		})
		if err != nil {
			t.Fatal(err)
		}
	})
	for _, id := range append(ids, list.ID, again.ID) {
		if _, err := objects.Read(t.Context(), s, id); err != nil {
			t.Fatal(err)
		}
	}
	if missing, err := s.Missing(t.Context(), ids); err != nil || len(missing) > 0 {
		t.Errorf("%d chunks are not there: %v", len(missing), err)
	}
	wantClean(t, path)
}
