package objects_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tract-vcs/tract/objects"
)

// TestRowsTellWhatTheSheetHolds lays objects with edges of every kind, near and far, few
// and so many that the columns of one stretch are long, and holds each row against what
// was laid.
func TestRowsTellWhatTheSheetHolds(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(2, seed))
	for range 20 {
		list := tangled(r, 1+r.IntN(500))
		ids, table, body := objects.LaySheet(list, 0, nil)
		s, err := objects.OpenSheet(len(list), ids, table, nil)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		at := map[objects.ID]int{}
		for i := range list {
			at[list[i].ID] = i
		}
		place := func(ids []objects.ID) int {
			if len(ids) > 0 {
				if k, ok := at[ids[0]]; ok {
					return k
				}
			}
			return -1
		}
		for i, o := range list {
			row := &s.Rows()[i]
			if row.Parent() != place(o.Parents) || row.Link() != place(o.Links) || row.Size() != len(o.Data) {
				t.Fatalf("seed %d: object %d: parent %d, link %d, %d bytes; want %d, %d, %d", seed, i,
					row.Parent(), row.Link(), row.Size(), place(o.Parents), place(o.Links), len(o.Data))
			}
			for k, id := range slices.Concat(o.Parents, o.Links) {
				if *s.ID(s.Place(i, k)) != id || k == s.Alone(row.Form()) && *s.ID(row.Apart()) != id {
					t.Fatalf("seed %d: edge %d of object %d leads to %s, want %s", seed, k, i, s.ID(s.Place(i, k)).Short(), id.Short())
				}
			}
			if from, size := s.Data(i); o.Kind == objects.KindContent && string(body[from:from+size]) != string(o.Data) {
				t.Fatalf("seed %d: the data of object %d does not lie at %d", seed, i, from)
			}
		}
	}
}

// tangled makes objects that lead to some of those before them, to others, or to nothing.
func tangled(r *rand.Rand, n int) (list []objects.Object) {
	edges := func(most int) (ids []objects.ID) {
		for range r.IntN(most + 1) {
			if k := r.IntN(len(list) + 1); k < len(list) && r.IntN(4) > 0 {
				ids = append(ids, list[max(k, len(list)-1-r.IntN(40))].ID)
			} else {
				ids = append(ids, objects.ID{1, byte(r.IntN(250))})
			}
		}
		return ids
	}
	for i := range n {
		o := objects.New(objects.KindContent, nil, nil, fmt.Append(nil, "data ", i))
		switch r.IntN(4) {
		case 0:
			o = objects.New(objects.KindCommit, edges(1), edges(3), fmt.Append(nil, "commit ", i))
		case 1:
			o = objects.New(objects.KindCommit, edges(2), edges(r.IntN(30)), nil)
		case 2:
			o = objects.New(objects.KindContent, nil, edges(1), fmt.Append(nil, "linked ", i))
		}
		if !slices.ContainsFunc(list, func(p objects.Object) bool { return p.ID == o.ID }) {
			list = append(list, o)
		}
	}
	return list
}
