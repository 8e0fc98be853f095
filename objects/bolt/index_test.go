package bolt

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/tract-vcs/tract/objects"
)

func FuzzChunk(f *testing.F) {
	one := run{0, 7, 2}
	key, value := encodeChunk(one, []indexEntry{newIndexEntry(objects.ID{1}, place{1, 2}), newIndexEntry(objects.ID{2}, place{3, 4})})
	f.Add(key, value)
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

func FuzzAnchor(f *testing.F) {
	f.Add(anchor{salt: [saltSize]byte{1}, gen: 2, end: 4096, seq: 9}.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		a, ok, err := readAnchor(bytes.NewReader(b))
		if err == nil && ok && !bytes.Equal(a.encode(), b[:anchorSize]) {
			t.Errorf("%x is written %x", b, a.encode())
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
	err := in.view(t.Context(), "read", func(l *look) error {
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
