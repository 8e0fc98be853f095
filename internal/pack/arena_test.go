package pack

import (
	"bytes"
	"slices"
	"testing"

	"github.com/tract-vcs/tract/objects"
	"pgregory.net/rapid"
)

// TestTablesInOneArena parses the tables of any history, some at a time, into the same
// memory: nothing of one is left in the next, and neither objects nor tables overlap.
func TestTablesInOneArena(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := drawStory(t).put
		size := rapid.IntRange(1, len(list)).Draw(t, "size")
		var arena Arena
		var tables []*Table
		var read [][]objects.Object
		parts := slices.Collect(slices.Chunk(list, size))
		for n, part := range parts {
			ids, table, _ := EncodeTable(part, 0)
			s, err := ParseTable(len(part), ids, table, &arena)
			if err != nil {
				t.Fatal(err)
			}
			got := make([]objects.Object, len(part))
			for i := range part {
				got[i] = s.Object(i, &arena.edges)
			}
			tables, read = append(tables, s), append(read, got)
			if n < len(parts)-1 && rapid.Bool().Draw(t, "another beside it") {
				continue
			}
			for k, part := range parts[n+1-len(tables) : n+1] {
				wantRead(t, part, tables[k], read[k])
			}
			arena.Reset()
			tables, read = nil, nil
		}
	})
}

// wantRead compares a table, and the objects read from it, with those it was made from.
func wantRead(t *rapid.T, list []objects.Object, s *Table, got []objects.Object) {
	var room []objects.ID
	for i, want := range list {
		again := s.Object(i, &room)
		for _, o := range []objects.Object{got[i], again} {
			if o.Kind != objects.KindCommit {
				o.Data = want.Data
			}
			if o.Check() != nil || o.ID != want.ID || !bytes.Equal(o.Data, want.Data) {
				t.Fatalf("object %d\nhave %+v\nwant %+v", i, o, want)
			}
		}
	}
}
