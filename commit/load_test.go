package commit

import (
	"strings"
	"testing"
	"time"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
)

// TestPurgedChunkAffectsOnlyItsContent purges a chunk of a long text: contents that are loaded with
// it are unaffected.
func TestPurgedChunkAffectsOnlyItsContent(t *testing.T) {
	store := objects.Memory()
	commits, put, err := Write(nil, Draft{Block: content.User(strings.Repeat("long ", 1<<19))}, Draft{Block: content.User("short")})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Apply(t.Context(), objects.Batch{Put: put}); err != nil {
		t.Fatal(err)
	}
	list, err := objects.Read(t.Context(), store, commits[0].ContentID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := objects.Purge(t.Context(), store, []objects.Tombstone{{ID: list.Links[0], Time: time.UnixMilli(0), Why: "gone"}}, nil); err != nil {
		t.Fatal(err)
	}
	blocks, left := make([]content.Block, 2), make([]*objects.Tombstone, 2)
	err = LoadBlocks(t.Context(), store, LoadRequest{
		Len: 2,
		Content: func(i int) (commit, content objects.ID, spot objects.Locator) {
			return commits[i].ID, commits[i].ContentID, objects.Locator{}
		},
		Put: func(i int, b content.Block, t *objects.Tombstone) { blocks[i], left[i] = b, t },
	})
	if err != nil || left[0] == nil || blocks[0] != nil || left[1] != nil || blocks[1] == nil || blocks[1].String() != "short" {
		t.Errorf("%v, %v, %v", blocks, left, err)
	}
}
