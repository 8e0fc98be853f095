package bolt

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tract-vcs/tract/internal/compression"
	"github.com/tract-vcs/tract/objects"
)

// speech is what people and models say: few words often and many seldom.
func speech(r *rand.Rand) string {
	var b strings.Builder
	for size := 300 + r.IntN(600); b.Len() < size; {
		x := r.Float64()
		n := int(x * x * x * 4000)
		fmt.Fprintf(&b, "%s%s ", []string{"the", "con", "re", "pro", "ment", "at", "un", "per"}[n%8], strings.Repeat([]string{"ing", "ta", "o", "er", "li"}[n/8%5], n/800))
		if n%50 == 7 {
			fmt.Fprintf(&b, "%d. ", n*n)
		}
	}
	return b.String()
}

// TestSizeOfAStore holds the bytes of a history, each commit of which came alone, to
// what it says: as it is, and in zstd with its ids when it is packed closely.
func TestSizeOfAStore(t *testing.T) {
	s, path := fresh(t)
	r := rand.New(rand.NewPCG(1, 2))
	const commits = 3000
	var said []byte
	var tip objects.ID
	for i := range commits {
		text := speech(r)
		said = append(said, text...)
		c := object(text)
		k := objects.New(objects.KindCommit, parentsOf(tip), []objects.ID{c.ID}, fmt.Appendf(nil, "commit %08d of ada at %d", i, 1795262400+7*i))
		b := objects.Batch{Put: []objects.Object{c, k}, Refs: []objects.RefUpdate{{Name: "refs/heads/main", Old: tip, New: k.ID}}}
		if err := s.Apply(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		tip = k.ID
	}
	_ = s.Close()
	s = mustOpen(t, path, objects.Options{})
	got := sweep(t, s, objects.Sweep{})
	if most := int64(len(said)) * 17 / 10; got.SizeBefore > most {
		t.Errorf("%d bytes of words take %d bytes as they are, want at most %d", len(said), got.SizeBefore, most)
	}
	words := len(compression.CompressFast(nil, said))
	if most := int64(words + commits*(2*idSize+2*8+60)); got.SizeAfter > most {
		t.Errorf("%d bytes of words, %d in zstd, take %d bytes in a store that is packed, want at most %d", len(said), words, got.SizeAfter, most)
	}
	t.Logf("words %d, in zstd %d; the store %d, packed closely %d", len(said), words, got.SizeBefore, got.SizeAfter)
}

func parentsOf(tip objects.ID) []objects.ID {
	if tip.IsZero() {
		return nil
	}
	return []objects.ID{tip}
}
