package bolt

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tract-vcs/tract/objects"
)

func FuzzChunk(f *testing.F) {
	one := run{0, 7, 2}
	key, value := encodeChunk(one, []indexEntry{newIndexEntry(objects.ID{1}, place{1, 2}), newIndexEntry(objects.ID{2}, place{3, 4})})
	f.Add(key, value)
	list := encodeRun(run{denseRun, 1, 2}, []indexEntry{newIndexEntry(objects.ID{1}, place{1, 2}), newIndexEntry(objects.ID{2}, place{3, 4})})
	f.Add(list[0].Key, list[0].Value)
	f.Fuzz(func(t *testing.T, key, value []byte) {
		entries, err := parseChunk(key, value)
		if err != nil {
			return
		}
		for at := searchEntries(entries, make([]byte, indexPrefix)); at < len(entries); at += entrySize {
			if e := indexEntry(entries[at:]); newIndexEntry(objects.ID(append(bytes.Clone(e[:indexPrefix]), make([]byte, 24)...)), e.place()) != e {
				t.Errorf("entry %x is written otherwise", e)
			}
		}
	})
}

// TestRunsAreJoined folds often, and finds everything in the few runs that stay.
func TestRunsAreJoined(t *testing.T) {
	s, path := fresh(t)
	var ids []objects.ID
	for i := range 70 {
		o := object(fmt.Sprint("object ", i))
		if err := s.Apply(t.Context(), objects.Batch{Put: []objects.Object{o}}); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, o.ID)
		fold(t, s)
	}
	in := idle(t, s)
	err := in.view(t.Context(), "read", func(l *snapshot) error {
		all, err := l.runs()
		if err != nil {
			return err
		}
		entries, levels := uint64(0), map[uint64]int{}
		for _, r := range all.list {
			entries += r.entries
			levels[r.level]++
		}
		if entries != uint64(len(ids)) || all.last != uint64(len(ids)) || len(levels) != 3 {
			t.Errorf("%d entries in runs %+v", entries, all)
		}
		for level, n := range levels {
			if n >= runFan {
				t.Errorf("%d runs of level %d", n, level)
			}
		}
		for _, id := range ids {
			if _, ok, err := l.locate(id); !ok || err != nil {
				t.Errorf("object %s is not found, %v", id.Short(), err)
			}
		}
		_, ok, err := l.locate(objects.ID{0xff})
		if ok {
			t.Error("an object is found that is not there")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	found, err := s.Find(t.Context(), objects.KindContent, "", 7)
	slices.SortFunc(ids, objects.ID.Compare)
	if err != nil || !slices.Equal(found, ids[:7]) {
		t.Errorf("found %v, %v; want %v", found, err, ids[:7])
	}
	if found, err = s.Find(t.Context(), 0, "", 5); err != nil || !slices.Equal(found, ids[:5]) {
		t.Errorf("found %v, %v; want %v", found, err, ids[:5])
	}
	wantSound(t, path)
}

// TestDenseRun has ids that begin alike, as few as can be told apart and as many as
// there never are.
func TestDenseRun(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var entries []indexEntry
		draw := rapid.SampledFrom([]byte{0, 1, 7, 0xff})
		for i := range rapid.IntRange(1, 3000).Draw(t, "entries") {
			id := objects.ID{draw.Draw(t, "first"), byte(i >> 8), byte(i), draw.Draw(t, "fourth"), byte(i)}
			if i%100 > 60 {
				id = objects.ID{1, 2, 3, 4, byte(i)}
			}
			entries = append(entries, newIndexEntry(id, place{uint32(rapid.Uint64Range(0, 1<<32-1).Draw(t, "pack")), rapid.IntRange(0, packObjects-1).Draw(t, "slot")}))
		}
		want := map[indexEntry]int{}
		for _, e := range entries {
			clear(e[densePrefix:indexPrefix])
			want[e]++
		}
		list := encodeRun(run{denseRun, 1, uint64(len(entries))}, entries)
		var last []byte
		for _, c := range list {
			got, err := parseChunk(c.Key, c.Value)
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Equal(last, got[:indexPrefix]) || !bytes.Equal(c.Key[5:], got[:indexPrefix]) {
				t.Fatalf("chunk %x begins with %x after %x", c.Key, got[:indexPrefix], last)
			}
			for ; len(got) > 0; got = got[entrySize:] {
				if bytes.Compare(last, got[:indexPrefix]) > 0 {
					t.Fatalf("%x after %x", got[:indexPrefix], last)
				}
				last = got[:indexPrefix]
				want[indexEntry(got)]--
			}
		}
		for e, n := range want {
			if n != 0 {
				t.Fatalf("entry %x is there %d times too seldom", e, n)
			}
		}
	})
}
