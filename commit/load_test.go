package commit

import (
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
)

// TestAnErasedChunkIsOfItsContentAlone erases a piece of a long text: what is read in the
// same run keeps its words.
func TestAnErasedChunkIsOfItsContentAlone(t *testing.T) {
	store := objects.Memory()
	commits, put, err := Write(nil, Draft{Block: content.User(strings.Repeat("long ", 1<<19))}, Draft{Block: content.User("short")})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Apply(t.Context(), objects.Batch{Put: put}); err != nil {
		t.Fatal(err)
	}
	ids := []objects.ID{commits[0].Content, commits[1].Content}
	run := make([]objects.Object, len(ids))
	for i, id := range ids {
		if run[i], err = objects.Read(t.Context(), store, id); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := objects.Erase(t.Context(), store, []objects.Tombstone{{ID: run[0].Links[0], Time: time.UnixMilli(0), Why: "gone"}}, nil); err != nil {
		t.Fatal(err)
	}
	var runs iter.Seq2[[]objects.Object, error] = func(yield func([]objects.Object, error) bool) { yield(run, nil) }
	w, err := read(t.Context(), store, ids, runs)
	if err != nil || len(w.Erased) != 1 || w.Erased[0] == nil || w.Blocks[0] != nil || w.Blocks[1] == nil || w.Blocks[1].String() != "short" {
		t.Errorf("%+v, %v", w, err)
	}
}
