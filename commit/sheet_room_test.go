package commit

import (
	"bytes"
	"slices"
	"testing"

	"github.com/tract-vcs/tract/objects"
	"pgregory.net/rapid"
)

// TestSheetsInOneRoom reads the sheets of any history, some at a time, into the same
// memory: nothing of one is left in the next, and neither objects nor sheets lie on others.
func TestSheetsInOneRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := drawStory(t).put
		size := rapid.IntRange(1, len(list)).Draw(t, "size")
		var room objects.SheetRoom
		var sheets []*objects.Sheet
		var read [][]objects.Object
		parts := slices.Collect(slices.Chunk(list, size))
		for n, part := range parts {
			ids, table, _ := objects.LaySheet(part, 0, nil)
			s, err := objects.OpenSheet(len(part), ids, table, &room)
			if err != nil {
				t.Fatal(err)
			}
			got := make([]objects.Object, len(part))
			for i := range part {
				got[i] = room.Object(s, i)
			}
			sheets, read = append(sheets, s), append(read, got)
			if n < len(parts)-1 && rapid.Bool().Draw(t, "another beside it") {
				continue
			}
			for k, part := range parts[n+1-len(sheets) : n+1] {
				wantRead(t, part, sheets[k], read[k])
			}
			room.Reset()
			sheets, read = nil, nil
		}
	})
}

// wantRead holds a sheet, and what was read of it, to what it was made of.
func wantRead(t *rapid.T, list []objects.Object, s *objects.Sheet, got []objects.Object) {
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
