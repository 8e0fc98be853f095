package bolt

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tract-vcs/tract/internal/compression"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/memtable"
)

// someEntries makes so many entries, the first of them with a number; every fifth number
// is not used.
func someEntries(first uint64, n int) (list []objects.LogEntry) {
	newest := map[string]objects.ID{}
	if first > 1 {
		newest["refs/heads/main"] = objects.ID{7}
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
		list = append(list, linked(newest, first+uint64(i+i/5), note, moves))
	}
	return list
}

// linked gives the moves of a log their links: newest has the last entry of each ref.
func linked(newest map[string]objects.ID, seq uint64, note objects.Note, moves []objects.RefUpdate) objects.LogEntry {
	for i := range moves {
		moves[i].Prev = newest[moves[i].Name]
	}
	e := objects.NewLogEntry(seq, note, moves)
	for _, u := range moves {
		newest[u.Name] = e.Hash
	}
	return e
}

func TestLogEntriesInOneValue(t *testing.T) {
	for _, first := range []uint64{1, 300} {
		for _, n := range []int{1, 2, 256} {
			list := someEntries(first, n)
			key, value := encodeEntries(list)
			got, err := decodeEntries(key, value)
			if err != nil || !reflect.DeepEqual(got, list) {
				t.Errorf("%d entries from %d: %v", n, first, err)
			}
			if _, err := decodeEntries(logKey(first+1), value); err == nil {
				t.Errorf("%d entries are read under the key of others", n)
			}
			for bit := range 8 * min(len(value), 200) {
				bad := bytes.Clone(value)
				bad[bit/8] ^= 1 << (bit % 8)
				if _, err := decodeEntries(key, bad); err == nil {
					t.Errorf("bit %d of %d entries is wrong and nobody notices", bit, n)
				}
			}
		}
	}
}

// TestLogEntriesWithRandomFields have refs that come and go, and gaps between their numbers.
func TestLogEntriesWithRandomFields(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.Map(rapid.Byte(), func(b byte) objects.ID { return objects.ID{b} })
		text := rapid.SampledFrom([]string{"", "ada", "commit", "refs/heads/main", "refs/tags/\xff"})
		newest, seq := map[string]objects.ID{"ada": id.Draw(t, "before")}, rapid.Uint64Range(1, 1<<40).Draw(t, "sequence")
		var list []objects.LogEntry
		for range rapid.IntRange(2, 30).Draw(t, "entries") {
			note := objects.Note{
				Time: time.UnixMilli(rapid.Int64Range(-1<<50, 1<<50).Draw(t, "time")), Author: text.Draw(t, "author"), Command: text.Draw(t, "command"),
				Group: objects.Group{rapid.Byte().Draw(t, "group")}, Continues: rapid.Bool().Draw(t, "continues"), Reverts: objects.Group{rapid.Byte().Draw(t, "reverts")},
			}
			var moves []objects.RefUpdate
			for _, name := range rapid.SliceOfNDistinct(text, 0, 4, rapid.ID[string]).Draw(t, "names") {
				moves = append(moves, objects.RefUpdate{Name: name, Old: id.Draw(t, "old"), New: id.Draw(t, "new")})
			}
			list = append(list, linked(newest, seq, note, moves))
			seq += rapid.Uint64Range(1, 300).Draw(t, "gap")
		}
		key, value := encodeEntries(list)
		got, err := decodeEntries(key, value)
		if err != nil || !reflect.DeepEqual(got, list) {
			t.Fatalf("%v: %+v, want %+v", err, got, list)
		}
	})
}

func FuzzLogEntries(f *testing.F) {
	for _, list := range [][]objects.LogEntry{someEntries(1, 20), someEntries(9, 2)} {
		_, value := encodeEntries(list)
		b, err := inflate(nil, value[checksumSize+1:])
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := parseEntries(b)
		if err != nil {
			return
		}
		again, err := decodeEntries(encodeEntries(got))
		if err != nil || !reflect.DeepEqual(again, got) {
			t.Errorf("%+v, %v; want %+v", again, err, got)
		}
	})
}

// TestCheckpointVerifiesLogEntries checks that a checkpoint refuses a log entry of which a byte has
// changed.
func TestCheckpointVerifiesLogEntries(t *testing.T) {
	const alone = 16
	var log []memtable.Entry
	for _, e := range someEntries(1, alone) {
		log = append(log, memtable.Entry{Key: logKey(e.Seq), Value: encodeEntry(e)})
	}
	key, value := encodeEntries(someEntries(200, 4))
	log = append(log, memtable.Entry{Key: key, Value: value})
	list, err := packLog(log)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := decodeEntries(list[0].Key, list[0].Value); err != nil || len(got) != alone+4 {
		t.Errorf("%d entries, %v", len(got), err)
	}
	for i := range log {
		for at := range log[i].Value {
			log[i].Value[at] ^= 1
			if _, err := packLog(log); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("log entry %x", log[i].Key)) {
				t.Errorf("byte %d of entry %d has changed: %v", at, i, err)
			}
			log[i].Value[at] ^= 1
		}
	}
	log[2].Key = logKey(77)
	if _, err := packLog(log); err == nil {
		t.Error("one is taken under the number of another")
	}
}

// TestInvalidLogEntriesAreRefused checks that invalid log entries are refused although their
// checksum is right.
func TestInvalidLogEntriesAreRefused(t *testing.T) {
	list := someEntries(1, 3)
	raw := func(list ...objects.LogEntry) (b []byte) {
		for _, e := range list {
			b = append(binary.AppendUvarint(b, uint64(len(e.Record()))), e.Record()...)
		}
		return b
	}
	sound := raw(list[0], objects.NewLogEntry(9, objects.Note{}, nil))
	if _, err := parseEntries(sound); err != nil {
		t.Fatal(err)
	}
	for name, all := range map[string][]byte{
		"nothing": nil, "cut off": sound[:len(sound)-1], "noise": bytes.Repeat([]byte{0xff}, 200), "more": append(bytes.Clone(sound), 0),
		"twice": raw(list[0], list[0]), "backwards": raw(list[1], list[0]), "a link twice": raw(list[0], list[1]),
	} {
		key := logKey(1)
		if got, err := decodeEntries(key, withChecksum(key, compression.CompressBest([]byte{byte(codecZstd)}, all))); err == nil {
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
