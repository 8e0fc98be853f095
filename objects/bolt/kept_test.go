package bolt

import (
	"testing"

	"github.com/tract-vcs/tract/objects"
)

// TestWhoReadsManyPacksKeepsWhatLeadsThere, and no leaf, and what is kept is not memory
// that the next read uses again. Who reads a few keeps those too.
func TestWhoReadsManyPacksKeepsWhatLeadsThere(t *testing.T) {
	s, path := fresh(t)
	line(t, s, "main", 20_000) // enough for a branch above the leaves
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, many := range []bool{false, true} {
		in := inner(t, mustOpen(t, path, objects.Options{ReadOnly: true}))
		err := in.view(t.Context(), "read", func(l *look) error {
			before := map[uint64]bool{} // the file was looked at when it was opened
			for id := range l.kept.pages {
				before[id] = true
			}
			if many {
				l.scan, l.arena = &scanning{}, &arena{bytes: make([]byte, 0, 4<<20)}
			}
			last, err := l.nextPack()
			if err != nil {
				return err
			}
			for n := uint32(1); n < last; n++ {
				if _, err := l.ofPack(bodiesBucket, n); err != nil {
					return err
				}
			}
			leaves, branches := 0, 0
			for id, p := range l.kept.pages {
				switch {
				case before[id], id == l.meta.root:
				case p.leaf:
					leaves++
				default:
					branches++
				}
			}
			if branches == 0 || (leaves > 0) == many {
				t.Errorf("of %d packs %d leaves and %d branches are kept; many are read: %t", last-1, leaves, branches, many)
			}
			if many {
				clear(l.arena.bytes[:cap(l.arena.bytes)])
			}
			for id, p := range l.kept.pages {
				if err := p.begins(); err != nil || order.Uint64(p.head) != id {
					t.Errorf("page %d that is kept has changed: %v", id, err)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
