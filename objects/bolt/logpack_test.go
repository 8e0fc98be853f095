package bolt

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tract-vcs/tract/objects"
	"pgregory.net/rapid"
)

// someEntries makes a log of so many entries, the first of them with a number.
func someEntries(first uint64, n int) (list []objects.LogEntry) {
	last := objects.LogEntry{Seq: first - 1}
	if first > 1 {
		last.Hash = objects.ID{7}
	}
	for i := range n {
		note := objects.Note{Time: time.UnixMilli(int64(i)), Author: "ada", Command: "commit", Group: objects.Group{1, byte(i / 2)}, Continues: i%2 == 1}
		if i%5 == 4 {
			note.Reverts = objects.Group{1, byte(i / 3)}
		}
		moves := []objects.RefUpdate{{Name: "refs/heads/main", Old: objects.ID{byte(i)}, New: objects.ID{byte(i + 1)}}}
		if i%3 == 0 {
			moves = append(moves, objects.RefUpdate{Name: fmt.Sprint("refs/tags/", i), New: objects.ID{byte(i)}})
		}
		last = objects.NewLogEntry(last, note, moves)
		list = append(list, last)
	}
	return list
}

// packedIDs says that ids whose second byte is not zero lie in packs.
func packedIDs(list []objects.LogEntry) (where placeOf, at idAt) {
	places, ids := map[objects.ID]place{}, map[place]objects.ID{}
	for i, e := range list {
		for k, u := range e.Refs {
			if at := (place{uint32(1 + i/9), 8*i + k}); u.New[1] > 0 && places[u.New].pack == 0 {
				places[u.New], ids[at] = at, u.New
			}
		}
	}
	return func(id objects.ID) place { return places[id] }, func(at place) (objects.ID, error) {
		if id, ok := ids[at]; ok {
			return id, nil
		}
		return objects.ID{}, errPack
	}
}

func TestLogEntriesThatLieTogether(t *testing.T) {
	for _, first := range []uint64{1, 300} {
		for _, n := range []int{1, 2, 256} {
			list := someEntries(first, n)
			key, value := encodeEntries(list, nil)
			got, err := decodeEntries(key, value, nil)
			if err != nil || !reflect.DeepEqual(got, list) {
				t.Errorf("%d entries from %d: %v", n, first, err)
			}
			if _, err := decodeEntries(logKey(first+1), value, nil); err == nil {
				t.Errorf("%d entries are read under the key of others", n)
			}
			for bit := range 8 * min(len(value), 200) {
				bad := bytes.Clone(value)
				bad[bit/8] ^= 1 << (bit % 8)
				if _, err := decodeEntries(key, bad, nil); err == nil {
					t.Errorf("bit %d of %d entries is wrong and nobody notices", bit, n)
				}
			}
		}
	}
}

// TestLogEntriesOfAnyShape have refs that come and go, move from where they were not,
// and to what lies in a pack or nowhere.
func TestLogEntriesOfAnyShape(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := func(what string) (id objects.ID) {
			copy(id[:], rapid.SampledFrom([]string{"", "\x01", "\x02", "\x01p", "\x02p", "\x03p"}).Draw(t, what))
			return id
		}
		text := rapid.SampledFrom([]string{"", "ada", "commit", "refs/heads/main", "refs/tags/\xff"})
		last := objects.LogEntry{}
		if rapid.Bool().Draw(t, "others before") {
			last = objects.LogEntry{Seq: rapid.Uint64Range(1, 1<<40).Draw(t, "sequence"), Hash: objects.ID{9}}
		}
		var list []objects.LogEntry
		for range rapid.IntRange(2, 30).Draw(t, "entries") {
			note := objects.Note{
				Time: time.UnixMilli(rapid.Int64Range(-1<<50, 1<<50).Draw(t, "time")), Author: text.Draw(t, "author"), Command: text.Draw(t, "command"),
				Group: objects.Group{rapid.Byte().Draw(t, "group")}, Continues: rapid.Bool().Draw(t, "continues"), Reverts: objects.Group{rapid.Byte().Draw(t, "reverts")},
			}
			var moves []objects.RefUpdate
			for range rapid.IntRange(0, 4).Draw(t, "moves") {
				moves = append(moves, objects.RefUpdate{Name: text.Draw(t, "name"), Old: id("old"), New: id("new")})
			}
			last = objects.NewLogEntry(last, note, moves)
			list = append(list, last)
		}
		where, at := packedIDs(list)
		key, value := encodeEntries(list, where)
		got, err := decodeEntries(key, value, at)
		if err != nil || !reflect.DeepEqual(got, list) {
			t.Fatalf("%v: %+v, want %+v", err, got, list)
		}
		other := func(p place) (objects.ID, error) {
			id, err := at(p)
			id[5] ^= 1
			return id, err
		}
		_, err = decodeEntries(key, value, other)
		if leads := decodedPlaces(t, key, value, at); leads && err == nil {
			t.Fatal("a pack has another object, and nobody notices")
		}
	})
}

// decodedPlaces tells whether entries refer to a pack.
func decodedPlaces(t *rapid.T, key, value []byte, at idAt) (leads bool) {
	_, err := decodeEntries(key, value, func(p place) (objects.ID, error) { leads = true; return at(p) })
	if err != nil {
		t.Fatal(err)
	}
	return leads
}

// TestLogColumnsOfMoreMovesThanBytes has the first of two entries move as many refs as
// there are bytes left, and the second more than there can be anywhere.
func TestLogColumnsOfMoreMovesThanBytes(t *testing.T) {
	b := make([]byte, idSize)                                     // hash of the last
	b = append(b, 2, 1, 0, 0, 0)                                  // two entries, one empty text, two times
	b = append(b, 0)                                              // no groups
	rest := binary.AppendUvarint([]byte{0, 0, 0, 0}, 1<<62)       // of the second
	b = append(append(b, 0, 0, 0, 0, byte(1+len(rest))), rest...) // of the first
	if _, err := decodeColumns(1, b, nil); err == nil {
		t.Error("it is read")
	}
}

func FuzzLogColumns(f *testing.F) {
	list := someEntries(1, 20)
	list[7].Refs[0].New = objects.ID{1, 1}
	where, _ := packedIDs(list)
	f.Add(uint64(1), encodeColumns(list, where))
	f.Add(uint64(9), encodeColumns(someEntries(9, 2), nil))
	f.Fuzz(func(t *testing.T, seq uint64, b []byte) {
		if seq == 0 {
			return
		}
		got, err := decodeColumns(seq, b, func(place) (objects.ID, error) { return objects.ID{1, 1}, nil })
		if err != nil {
			return
		}
		again, err := decodeColumns(seq, encodeColumns(got, nil), nil)
		if err != nil || !reflect.DeepEqual(again, got) {
			t.Errorf("%+v, %v; want %+v", again, err, got)
		}
	})
}

// TestAFoldReadsWholeLogEntries: of the entries that a fold lays together it takes none of
// which a byte has changed, whether the next one tells or its checksum does.
func TestAFoldReadsWholeLogEntries(t *testing.T) {
	var log []change
	for _, part := range [][]objects.LogEntry{someEntries(1, 6), someEntries(40, 5), someEntries(90, 1)} {
		for _, e := range part {
			log = append(log, change{logBucket, logKey(e.Seq), encodeEntry(e)})
		}
	}
	key, value := encodeEntries(someEntries(200, 4), nil)
	log = append(log, change{logBucket, key, value})
	for _, e := range someEntries(300, 2) {
		log = append(log, change{logBucket, logKey(e.Seq), encodeEntry(e)})
	}
	l := newLook(nil, meta{})
	entries, err := l.readLog(log)
	if err != nil || len(entries) != 18 {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	for i := range log {
		for at := sealSize; at < len(log[i].value); at++ {
			log[i].value[at] ^= 1
			if _, err := l.readLog(log); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("log entry %x", log[i].key)) {
				t.Errorf("byte %d of entry %d has changed: %v", at, i, err)
			}
			log[i].value[at] ^= 1
		}
	}
	log[2], log[3] = log[3], log[2]
	if _, err := l.readLog(log); err != nil {
		t.Errorf("in another order: %v", err)
	}
	log[2].key = logKey(77)
	if _, err := l.readLog(log); err == nil {
		t.Error("one is taken under the number of another")
	}
}

// TestLogEntriesThatDoNotFollow are refused, though their seal is right.
func TestLogEntriesThatDoNotFollow(t *testing.T) {
	list := someEntries(1, 3)
	for name, wrong := range map[string][]objects.LogEntry{
		"a gap": {list[0], list[2]}, "twice": {list[0], list[0]}, "backwards": {list[1], list[0]},
	} {
		key, value := encodeEntries(wrong, nil)
		if got, err := decodeEntries(key, value, nil); err == nil {
			t.Errorf("%s: %d entries", name, len(got))
		}
	}
	sound := encodeColumns(list, nil)
	for name, all := range map[string][]byte{
		"nothing": nil, "cut off": sound[:len(sound)-1], "noise": bytes.Repeat([]byte{0xff}, 200), "more": append(bytes.Clone(sound), 0),
		"no entries": append(make([]byte, idSize), 0, 0),
	} {
		key := logKey(1)
		if got, err := decodeEntries(key, seal(key, deflate([]byte{byte(codecZstd)}, all)), nil); err == nil {
			t.Errorf("%s: %d entries", name, len(got))
		}
	}
}

// TestLogOfAPackedStore is that of before, read in any way, and goes on.
func TestLogOfAPackedStore(t *testing.T) {
	path, _ := large(t, 600)
	s := mustOpen(t, path, objects.Options{})
	names := []string{"", "refs/heads/main", "refs/tags/10", "refs/tags/590", "refs/tags/none"}
	read := func() (all [][]objects.LogEntry) {
		for _, name := range names {
			for _, before := range []uint64{0, 1, 2, 256, 257, 258, 300, 600, 9999} {
				for _, limit := range []int{0, 1, 300} {
					list, err := s.Log(t.Context(), name, before, limit)
					if err != nil {
						t.Fatalf("%q before %d: %v", name, before, err)
					}
					all = append(all, list)
				}
			}
		}
		return all
	}
	want := read()
	for range 2 {
		sweep(t, s, objects.Sweep{})
		if !reflect.DeepEqual(read(), want) {
			t.Fatal("the log has changed")
		}
	}
	if err := appendOne(t, s, "main", 1); err != nil {
		t.Fatal(err)
	}
	wantNumberOfEntries(t, s, 601)
	sweep(t, s, objects.Sweep{})
	wantNumberOfEntries(t, s, 601)
	wantClean(t, path)
}
