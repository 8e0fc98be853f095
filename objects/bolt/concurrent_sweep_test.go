package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/tract-vcs/tract/objects"
)

// halfSwept writes the file that is to take the place of the store's.
func halfSwept(t *testing.T, s *store) *gc {
	t.Helper()
	c := &gc{}
	t.Cleanup(c.close)
	err := c.begin(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	marks, err := c.mark(t.Context(), s, objects.Sweep{Before: now()})
	if err == nil {
		err = c.copyAndVerify(marks)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// sweptAround is a sweep that has something done between its two parts: the file that is
// to take the store's place is written, and has not yet its name.
func sweptAround(t *testing.T, s objects.Store, meanwhile func()) {
	t.Helper()
	idle(t, s)
	c := halfSwept(t, inner(t, s))
	meanwhile()
	idle(t, s)
	if err := c.replace(); err != nil {
		t.Fatal(err)
	}
}

// TestRefMovedDuringSweepKeepsItsTarget moves a ref to an object that a sweep is about to remove,
// while the journal has moves from before the sweep. One checkpoint writes all of them.
func TestRefMovedDuringSweepKeepsItsTarget(t *testing.T) {
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
		mustCheckpoint(t, s)
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

// TestListPutDuringSweepKeepsItsChunks puts a purged and unreachable list again during a sweep: it
// is kept with all of its chunks.
func TestListPutDuringSweepKeepsItsChunks(t *testing.T) {
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
	mustCheckpoint(t, s)
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

// TestObjectPutDuringSweepIsPackedOnce puts a purged and unreachable object again during a sweep: it
// is copied with its pack, and not a second time.
func TestObjectPutDuringSweepIsPackedOnce(t *testing.T) {
	s, path := fresh(t)
	word := object("word")
	put := func(b objects.Batch) {
		t.Helper()
		if err := s.Apply(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	put(objects.Batch{Put: []objects.Object{word}})
	mustCheckpoint(t, s)
	erase(t, s, word)
	again := objects.New(objects.KindCommit, nil, []objects.ID{word.ID}, []byte("again"))
	sweptAround(t, s, func() {
		put(objects.Batch{Put: []objects.Object{word, again}, Refs: []objects.RefUpdate{{Name: "refs/heads/b", New: again.ID}}})
		mustCheckpoint(t, s)
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

// TestSweepHashesWhatWasWrittenMeanwhile changes a byte of a pack that was written while a sweep
// copied the store, and gives the pack a checksum that is right for the changed bytes or leaves the
// old one: the sweep leaves the store as it was, and names the object.
func TestSweepHashesWhatWasWrittenMeanwhile(t *testing.T) {
	for _, sum := range []bool{false, true} {
		s, path := fresh(t)
		before, meanwhile := object("before"), object("meanwhile")
		put := func(o objects.Object) {
			t.Helper()
			if err := s.Apply(t.Context(), objects.Batch{Put: []objects.Object{o}}); err != nil {
				t.Fatal(err)
			}
			mustCheckpoint(t, s)
			idle(t, s)
		}
		put(before)
		c := halfSwept(t, inner(t, s))
		put(meanwhile)
		editBodies(t, path, sum, func(i int, body []byte) []byte {
			body[len(body)-1] ^= byte(i) // of the second pack
			return body
		})
		old := mustRead(t, path)
		err := c.replace()
		if damaged := (*objects.CorruptError)(nil); !errors.As(err, &damaged) || damaged.ID != meanwhile.ID {
			t.Errorf("with a checksum that fits %t: the sweep ended with %v", sum, err)
		}
		if c.close(); !bytes.Equal(mustRead(t, path), old) {
			t.Errorf("with a checksum that fits %t: the store has changed", sum)
		}
		if _, err := objects.Read(t.Context(), s, before.ID); err != nil {
			t.Error(err)
		}
	}
}

// packedTimes counts in how many places of packs an object lies.
func packedTimes(t *testing.T, s objects.Store, id objects.ID) (n int) {
	t.Helper()
	err := inner(t, s).retryOnFileSnapshot(t.Context(), "read", nil, func(h *fileSnapshot) error {
		n = 0
		for e, err := range newSnapshot(h, h.meta).ascend(headsBucket, nil) {
			if err != nil {
				return err
			}
			head, err := e.Value()
			if err != nil {
				return err
			}
			p, err := parsePack(nil, binary.BigEndian.Uint32(e.Key), head)
			if err != nil {
				return err
			}
			for i := range p.Len() {
				if p.hasUnpurged(i, id) {
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
