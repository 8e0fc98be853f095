package bolt

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/tract-vcs/tract/objects"
)

// someEntries makes a log of so many entries, the first of them with a number.
func someEntries(first uint64, n int) (list []objects.LogEntry) {
	last := objects.LogEntry{Seq: first - 1}
	if first > 1 {
		last.Hash = objects.ID{7}
	}
	for i := range n {
		note := objects.Note{Time: time.UnixMilli(int64(i)), Author: "ada", Command: "commit"}
		moves := []objects.RefUpdate{{Name: "refs/heads/main", Old: objects.ID{byte(i)}, New: objects.ID{byte(i + 1)}}}
		if i%3 == 0 {
			moves = append(moves, objects.RefUpdate{Name: fmt.Sprint("refs/tags/", i), New: objects.ID{byte(i)}})
		}
		last = objects.NewLogEntry(last, note, moves)
		list = append(list, last)
	}
	return list
}

func TestLogEntriesThatLieTogether(t *testing.T) {
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

// TestLogEntriesThatDoNotFollow are refused, though their seal is right.
func TestLogEntriesThatDoNotFollow(t *testing.T) {
	list := someEntries(1, 3)
	for name, wrong := range map[string][]objects.LogEntry{
		"a gap": {list[0], list[2]}, "twice": {list[0], list[0]}, "backwards": {list[1], list[0]},
	} {
		if got, err := decodeEntries(encodeEntries(wrong)); err == nil {
			t.Errorf("%s: %d entries", name, len(got))
		}
	}
	for name, all := range map[string][]byte{"nothing": nil, "cut off": {40, 8, 1}, "noise": {2, 0xff, 0xff}} {
		key := logKey(1)
		if got, err := decodeEntries(key, seal(key, deflate([]byte{byte(codecZstd)}, all))); err == nil {
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
