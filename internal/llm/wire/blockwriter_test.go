package wire

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/llm"
)

// TestOpenBlocksAreThoseThatHaveNotEnded begins and ends blocks in a random order.
func TestOpenBlocksAreThoseThatHaveNotEnded(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	o := &BlockWriter{yield: func(llm.Event, error) bool { return true }}
	var want []*BlockBuilder
	for range 2000 {
		if random.IntN(2) == 0 || len(want) == 0 {
			want = append(want, o.Begin(content.Assistant("x")))
		} else {
			i := random.IntN(len(want))
			o.End(want[i])
			want = slices.Delete(want, i, i+1)
		}
		if !slices.Equal(o.OpenBlocks(), want) {
			t.Fatalf("%d blocks are open, want %d", len(o.OpenBlocks()), len(want))
		}
	}
	o.EndOpen()
	if n := len(o.OpenBlocks()); n != 0 {
		t.Errorf("%d blocks are open after EndOpen", n)
	}
}
