package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/tract-vcs/tract/objects"
)

// halfSwept looks at a store and writes the file that is to take its place.
func halfSwept(t *testing.T, s *store) (w *sweeper, part *compaction) {
	t.Helper()
	err := s.steadily(t.Context(), "clean", nil, func(h *steady) (err error) {
		w = newSweeper(objects.Sweep{Before: now()})
		if err := w.look(s, h); err != nil {
			return err
		}
		part, err = s.compact(h, w)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return w, part
}

// sweptAround is a sweep that has something done between its two parts: the file that is
// to take the store's place is written, and has not yet its name.
func sweptAround(t *testing.T, s objects.Store, meanwhile func()) {
	t.Helper()
	in := inner(t, s)
	w, part := halfSwept(t, in)
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

// TestWhatIsSaidAnewMeanwhileIsPackedOnce says anew, during a sweep, a word that was
// erased and that nobody led to: it comes with the pack that it is in, and not once more.
func TestWhatIsSaidAnewMeanwhileIsPackedOnce(t *testing.T) {
	s, path := fresh(t)
	word := object("word")
	put := func(b objects.Batch) {
		t.Helper()
		if err := s.Apply(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	put(objects.Batch{Put: []objects.Object{word}})
	fold(t, s)
	erase(t, s, word)
	again := objects.New(objects.KindCommit, nil, []objects.ID{word.ID}, []byte("again"))
	sweptAround(t, s, func() {
		put(objects.Batch{Put: []objects.Object{word, again}, Refs: []objects.RefUpdate{{Name: "refs/heads/b", New: again.ID}}})
		fold(t, s)
		onTop := objects.New(objects.KindCommit, []objects.ID{again.ID}, []objects.ID{word.ID}, []byte("on top"))
		put(objects.Batch{Put: []objects.Object{onTop}, Refs: []objects.RefUpdate{{Name: "refs/heads/b", Old: again.ID, New: onTop.ID}}})
	})
	if n := packedTimes(t, s, word.ID); n != 1 {
		t.Errorf("the word lies in %d places of packs", n)
	}
	if _, err := objects.Read(t.Context(), s, word.ID); err != nil {
		t.Error(err)
	}
	wantClean(t, path)
}

// TestWhatCameMeanwhileIsReadBack has memory go wrong while a sweep packs what came since
// it looked: it leaves the file as it was, and says why.
func TestWhatCameMeanwhileIsReadBack(t *testing.T) {
	s, path := fresh(t)
	word := object("word")
	if err := s.Apply(t.Context(), objects.Batch{Put: []objects.Object{word}}); err != nil {
		t.Fatal(err)
	}
	in := inner(t, s)
	w, part := halfSwept(t, in)
	defer part.discard()
	for _, o := range []objects.Object{object("sound"), object("flipped")} {
		if err := s.Apply(t.Context(), objects.Batch{Put: []objects.Object{o}}); err != nil {
			t.Fatal(err)
		}
	}
	flipped := object("another word")
	flipped.Data[3] ^= 4
	part.pending = append(part.pending, flipped)
	if err := in.exchange(t.Context(), w, part); !errors.Is(err, objects.ErrCorrupt) {
		t.Errorf("the sweep ended with %v", err)
	}
	if err := part.readBack(); err == nil {
		t.Error("what is wrong is wrong once")
	}
	for _, o := range []objects.Object{word, object("sound"), object("flipped")} {
		if _, err := objects.Read(t.Context(), s, o.ID); err != nil {
			t.Error(err)
		}
	}
	wantClean(t, path)
}

// packedTimes counts in how many places of packs an object lies.
func packedTimes(t *testing.T, s objects.Store, id objects.ID) (n int) {
	t.Helper()
	err := inner(t, s).steadily(t.Context(), "read", nil, func(h *steady) error {
		n = 0
		for e, err := range newLook(h, h.meta).ascend(headsBucket, nil) {
			if err != nil {
				return err
			}
			head, err := e.Value()
			if err != nil {
				return err
			}
			p, err := parsePack(binary.BigEndian.Uint32(e.Key), head)
			if err != nil {
				return err
			}
			for i := range p.Len() {
				if p.id(i) == id {
					n++
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}
