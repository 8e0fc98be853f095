package idtable_test

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/tract-vcs/tract/internal/idtable"
	"github.com/tract-vcs/tract/objects"
)

// TestTable numbers ids as a map does, also those that begin alike.
func TestTable(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for _, about := range []int{0, 10, 5000} {
		hashes := idtable.NewHashes(about)
		want := map[objects.ID]int32{}
		var all []objects.ID
		for range 5000 {
			var id objects.ID
			for i := 0; i < len(id); i += 8 {
				binary.NativeEndian.PutUint64(id[i:], r.Uint64())
			}
			switch r.IntN(4) {
			case 0: // the first 8 bytes of another
				if len(all) > 0 {
					copy(id[:8], all[r.IntN(len(all))][:8])
				}
			case 1: // and the next 8
				if len(all) > 0 {
					copy(id[:16], all[r.IntN(len(all))][:16])
				}
			case 2: // all of another
				if len(all) > 0 {
					id = all[r.IntN(len(all))]
				}
			}
			n, known := want[id]
			if got, ok := hashes.Find(id); ok != known || got != n {
				t.Fatalf("find gives %d, %t; want %d, %t", got, ok, n, known)
			}
			got, fresh := hashes.Add(id)
			if !known {
				n = int32(len(all))
				want[id], all = n, append(all, id)
			}
			if got != n || fresh == known {
				t.Fatalf("add returns %d, %t; want %d, %t", got, fresh, n, !known)
			}
		}
		for id, n := range want {
			if got, ok := hashes.Find(id); !ok || got != n {
				t.Fatalf("in the end find gives %d, %t; want %d", got, ok, n)
			}
		}
	}
}
