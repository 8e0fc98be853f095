package compile

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
	_ "github.com/tract-vcs/tract/objects/bolt"
	"pgregory.net/rapid"
)

// told is a history as it comes about at random.
type told struct {
	put  []objects.Object
	all  []*commit.Commit
	tip  *commit.Commit
	gone []*commit.Commit // whose words are erased
}

func (h *told) write(t rapid.TB, d commit.Draft) {
	d.Key = fmt.Sprint(len(h.all)) // so that no commit comes twice
	commits, put, err := commit.Write(h.tip, d)
	if err != nil {
		t.Fatal(err)
	}
	h.put, h.tip = append(h.put, put...), commits[0]
	h.all = append(h.all, commits[0])
}

// drawTold is a history in which much is said about what was said before: edits,
// annotations, summaries, and now and then a merge.
func drawTold(t *rapid.T) *told {
	h := &told{all: []*commit.Commit{{Op: commit.Edit}}}
	tells := rapid.SampledFrom([]int{0, 0, 1, 3}).Draw(t, "tells") // of summaries and merges
	for range rapid.IntRange(60, 240).Draw(t, "commits") {
		switch what := rapid.IntRange(0, 99).Draw(t, "what"); {
		case what < tells && len(h.all) > 20:
			last := len(h.all) - rapid.IntRange(1, 15).Draw(t, "last")
			h.write(t, commit.Draft{Op: commit.Compress, Block: content.Text{Of: content.KindSummary, Text: "in short"}, First: h.all[last-4].ID, Target: h.all[last].ID})
		case what > 99-tells && len(h.all) > 20:
			tip := h.tip
			h.tip = h.all[len(h.all)-8]
			h.write(t, commit.Draft{Block: content.User("elsewhere")})
			side := h.tip
			h.tip = tip
			h.write(t, commit.Draft{Op: commit.Merge, Second: side, Brings: []*commit.Commit{side}})
		default:
			h.write(t, drawDraft(t, h.all))
		}
	}
	for range rapid.SampledFrom([]int{0, 0, 1, 3}).Draw(t, "erased") {
		if c := rapid.SampledFrom(h.all[1:]).Draw(t, "gone"); c.Op == commit.Append {
			h.gone = append(h.gone, c)
		}
	}
	return h
}

// keep puts a history into a store, most of it into packs.
func (h *told) keep(t *testing.T) objects.Store {
	t.Helper()
	s, err := objects.Open(t.Context(), filepath.Join(t.TempDir(), "store"), objects.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	cleaner, _ := objects.As[objects.Cleaner](s)
	late := len(h.put) * 9 / 10
	for _, put := range [][]objects.Object{h.put[:late], h.put[late:]} {
		if err := s.Apply(t.Context(), objects.Batch{Put: put}); err != nil {
			t.Fatal(err)
		}
		if _, err := cleaner.Sweep(t.Context(), objects.Sweep{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range h.gone {
		if _, err := objects.Erase(t.Context(), s, []objects.Tombstone{tombstoneOf(c)}, nil); err != nil {
			t.Fatal(err)
		}
	}
	return s
}
