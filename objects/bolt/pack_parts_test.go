package bolt

import (
	"fmt"
	"testing"

	"github.com/tract-vcs/tract/objects"
)

// TestAlternatingPartsOfTwoPacks reads parts of two packs of the same size in one snapshot,
// alternating between them: each part comes from its own pack.
func TestAlternatingPartsOfTwoPacks(t *testing.T) {
	const half = 40
	s, _ := fresh(t)
	m := sample{objects: map[objects.ID]objects.Object{}}
	var said [2][]objects.ID
	for i := range 2 * half {
		c := object(fmt.Sprintf("words %04d", i))
		var parents []objects.ID
		if i > 0 {
			parents = []objects.ID{m.tip}
		}
		k := objects.New(objects.KindCommit, parents, []objects.ID{c.ID}, fmt.Appendf(nil, "commit %04d", i))
		b := objects.Batch{Put: []objects.Object{c, k}, Refs: []objects.RefUpdate{{Name: "refs/heads/main", Old: m.tip, New: k.ID}}}
		if err := s.Apply(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		m.objects[c.ID], m.tip, said[i/half] = c, k.ID, append(said[i/half], c.ID)
		if i%half == half-1 {
			mustCheckpoint(t, s)
		}
	}
	in := map[uint32]bool{}
	h := walked(t, s, m.tip)
	for i, locator := range h.locators {
		a, _ := decodeLocator(locator, i)
		in[a.pack] = true
	}
	if len(in) != 2 {
		t.Fatalf("the contents lie in the packs %v", in)
	}
	var ids []objects.ID
	for i := range half {
		ids = append(ids, said[0][i], said[1][half-1-i])
	}
	got := map[objects.ID]objects.Object{}
	for o, err := range s.Get(t.Context(), ids) {
		if err != nil {
			t.Fatalf("object %s: %v", o.ID.Short(), err)
		}
		got[o.ID] = o
	}
	m.wantAll(t, seen{ids: ids}, got)
}
