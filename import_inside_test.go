package tract

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
)

// TestHeadersAfterAnImport: the tips of all batches are remembered, and are what the store
// has.
func TestHeadersAfterAnImport(t *testing.T) {
	ctx := t.Context()
	repo, err := Open(ctx, "mem:", OpenOptions{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("words of a long message. ", 40_000) // two or three are a batch
	list := []ImportedMessage{{Branch: "a", Parts: []ImportedPart{{ID: "a0", Block: content.User("a0")}, {ID: "a1", Block: content.User("a1")}}}}
	for i := range 24 {
		list = append(list, ImportedMessage{Branch: "b", Parts: []ImportedPart{{ID: strconv.Itoa(i), Block: content.User(strconv.Itoa(i) + text)}}})
	}
	for _, n := range []int{1, len(list)} { // and of a branch that was there
		if n > 1 {
			list[0].Parts = append(list[0].Parts, ImportedPart{ID: "a2", Block: content.User("a2")})
		}
		if _, err := repo.Import(ctx, func(yield func(ImportedMessage, error) bool) {
			for _, f := range list[:n] {
				if !yield(f, nil) {
					return
				}
			}
		}, ImportOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	seen := 0
	for id, have := range repo.headers.byID {
		want, err := commit.Read(ctx, repo.store, id)
		if err != nil {
			t.Fatal(err)
		}
		if seen++; have.ID != id || !slices.Equal(have.Parents, want.Parents) || have.Depth != want.Depth || have.Key != want.Key || have.Size != want.Size {
			t.Errorf("%s is remembered as %+v, the store has %+v", id.Short(), have, want)
		}
	}
	if seen < 6 {
		t.Errorf("%d headers are remembered", seen)
	}
}
