package commit

import (
	"bytes"
	"slices"
	"testing"

	"github.com/tract-vcs/tract/objects"
	"pgregory.net/rapid"
)

// TestSheetsInOneRoom reads the sheets of any history one after the other into the same
// memory: nothing of one is left in the next, and no object lies on another.
func TestSheetsInOneRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := drawStory(t).put
		size := rapid.IntRange(1, len(list)).Draw(t, "size")
		var room objects.SheetRoom
		for part := range slices.Chunk(list, size) {
			ids, table, _ := objects.LaySheet(part, 0, nil)
			s, err := objects.OpenSheet(len(part), ids, table, &room)
			if err != nil {
				t.Fatal(err)
			}
			got := make([]objects.Object, len(part))
			for i := range part {
				if err := room.Object(s, i, &got[i]); err != nil {
					t.Fatalf("object %d: %v", i, err)
				}
			}
			for i, want := range part {
				o := got[i]
				if o.Kind != objects.KindCommit {
					o.Data = want.Data
				}
				if o.Check() != nil || o.ID != want.ID || !bytes.Equal(o.Data, want.Data) {
					t.Fatalf("object %d\nhave %+v\nwant %+v", i, o, want)
				}
			}
			room.Reset()
		}
	})
}
