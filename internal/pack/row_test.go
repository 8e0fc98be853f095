package pack

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tract-vcs/tract/objects"
)

// TestRows encodes objects with all sorts of edges, near and far, few and many, and
// compares each row with its object.
func TestRows(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(2, seed))
	for range 20 {
		list := tangled(r, 1+r.IntN(500))
		ids, table, body := EncodeTable(list, 0)
		s, err := ParseTable(len(list), ids, table, nil)
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
			if s.Parent(i) != place(o.Parents) || s.Link(i) != place(o.Links) {
				t.Fatalf("seed %d: object %d: parent %d, link %d; want %d, %d", seed, i, s.Parent(i), s.Link(i), place(o.Parents), place(o.Links))
			}
			var room []objects.ID
			parents, links := s.Edges(i, &room)
			if !slices.Equal(parents, o.Parents) || !slices.Equal(links, o.Links) {
				t.Fatalf("seed %d: object %d refers to %v and %v, want %v and %v", seed, i, parents, links, o.Parents, o.Links)
			}
			from, size := s.Data(i)
			if size != len(o.Data) || o.Kind == objects.KindContent && string(body[from:from+size]) != string(o.Data) {
				t.Fatalf("seed %d: the data of object %d is not %d bytes at %d", seed, i, size, from)
			}
		}
	}
}

// tangled makes objects that refer to some of those before them, to others, or to none.
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
