package commit

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
)

// web is commits that hang together at random.
type web struct {
	store   objects.Store
	commits []*Commit
	above   map[objects.ID]map[objects.ID]bool // what each has before it, and itself
}

func (w *web) add(t *testing.T, parent, second *Commit) *Commit {
	t.Helper()
	d := Draft{Block: content.User("x"), Time: time.UnixMilli(int64(len(w.commits) / 10))} // many at once
	if second != nil {
		d = Draft{Op: Merge, SecondParent: second, Time: d.Time}
	}
	c, put, err := Write(parent, d)
	if err == nil {
		err = w.store.Apply(t.Context(), objects.Batch{Put: put})
	}
	if err != nil {
		t.Fatal(err)
	}
	all := map[objects.ID]bool{c[0].ID: true}
	for _, id := range c[0].Parents {
		for before := range w.above[id] {
			all[before] = true
		}
	}
	w.above[c[0].ID], w.commits = all, append(w.commits, c[0])
	return c[0]
}

func newWeb(t *testing.T, r *rand.Rand, size int) *web {
	w := &web{store: objects.Memory(), above: map[objects.ID]map[objects.ID]bool{}}
	for len(w.commits) < size {
		if len(w.commits) == 0 || r.IntN(12) == 0 {
			w.add(t, nil, nil)
			continue
		}
		a, b := w.commits[r.IntN(len(w.commits))], w.commits[r.IntN(len(w.commits))]
		if r.IntN(3) > 0 {
			a = w.commits[len(w.commits)-1]
		}
		if r.IntN(3) > 0 || w.above[a.ID][b.ID] {
			b = nil
		}
		w.add(t, a, b)
	}
	return w
}

func pick[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

// TestHistoriesOfMerges holds walks over histories with merges to what plain sets of
// ancestors say.
func TestHistoriesOfMerges(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 2))
		w := newWeb(t, r, 30)
		some := func(n int) (list []objects.ID) {
			for range n {
				list = append(list, w.commits[r.IntN(len(w.commits))].ID)
			}
			return list
		}
		tips, without := some(1+r.IntN(4)), some(r.IntN(3))
		want := map[objects.ID]bool{}
		for _, tip := range tips {
			for id := range w.above[tip] {
				want[id] = true
			}
		}
		for _, tip := range without {
			for id := range w.above[tip] {
				delete(want, id)
			}
		}
		shown := map[objects.ID]bool{}
		var order []objects.ID
		maxGap := pick[uint64](r, defaultMaxDepthGap, 1, 3)
		for c, err := range history(t.Context(), w.store, tips, without, maxGap) {
			if err != nil {
				t.Fatal(err)
			}
			if shown[c.ID] || !want[c.ID] {
				t.Fatalf("seed %d: %s is shown twice, or is not of the history", seed, c.ID.Short())
			}
			for _, parent := range c.Parents {
				if shown[parent] {
					t.Fatalf("seed %d: %s comes after its parent %s", seed, c.ID.Short(), parent.Short())
				}
			}
			shown[c.ID], order = true, append(order, c.ID)
		}
		if len(shown) != len(want) {
			t.Fatalf("seed %d: %d commits of %d", seed, len(shown), len(want))
		}
		slices.Reverse(tips)
		for c, err := range history(t.Context(), w.store, tips, without, maxGap) {
			if err != nil || len(order) == 0 || c.ID != order[0] {
				t.Fatalf("seed %d: from the same tips, told in another order, another one comes: %v", seed, err)
			}
			order = order[1:]
		}
		a, b := w.commits[r.IntN(len(w.commits))].ID, w.commits[r.IntN(len(w.commits))].ID
		bases, err := MergeBases(t.Context(), w.store, a, b)
		if err != nil {
			t.Fatal(err)
		}
		w.checkBases(t, seed, a, b, bases)
		if other, err := MergeBases(t.Context(), w.store, b, a); err != nil || !slices.Equal(other, bases) {
			t.Fatalf("seed %d: the bases come in another order from the other side: %v", seed, err)
		}
		w.checkLine(t, seed, a)
	}
}

// checkBases: a base is an ancestor of both and of no other that is.
func (w *web) checkBases(t *testing.T, seed uint64, a, b objects.ID, bases []objects.ID) {
	t.Helper()
	best := 0
	for id := range w.above[a] {
		if !w.above[b][id] {
			continue
		}
		last := true
		for other := range w.above[a] {
			last = last && (other == id || !w.above[b][other] || !w.above[other][id])
		}
		if last {
			best++
		}
		if last != slices.Contains(bases, id) {
			t.Fatalf("seed %d: %s is a base of %s and %s: want %v", seed, id.Short(), a.Short(), b.Short(), last)
		}
	}
	if best != len(bases) {
		t.Fatalf("seed %d: %d bases, want %d", seed, len(bases), best)
	}
}

// checkLine holds Line to its definition, said the slow way.
func (w *web) checkLine(t *testing.T, seed uint64, tip objects.ID) {
	t.Helper()
	byID := map[objects.ID]*Commit{}
	for _, c := range w.commits {
		byID[c.ID] = c
	}
	var slow func(id objects.ID) []objects.ID
	slow = func(id objects.ID) []objects.ID {
		if id.IsZero() {
			return nil
		}
		c := byID[id]
		line := slow(c.Parent())
		for _, brought := range slow(c.SecondParent()) {
			if !slices.Contains(line, brought) {
				line = append(line, brought)
			}
		}
		return append(line, id)
	}
	line, err := Linearize(t.Context(), w.store, tip)
	if err != nil {
		t.Fatal(err)
	}
	var got []objects.ID
	for _, c := range line {
		got = append(got, c.ID)
	}
	if !slices.Equal(got, slow(tip)) {
		t.Fatalf("seed %d: the line of %s is not that of its definition", seed, tip.Short())
	}
	c := byID[tip]
	second := byID[c.SecondParent()]
	if second == nil {
		return
	}
	if want := max(byID[c.Parent()].Depth, second.Depth) + 1; c.Depth != want {
		t.Fatalf("seed %d: a merge has depth %d, want %d", seed, c.Depth, want)
	}
	brings, err := IncomingCommits(t.Context(), w.store, c.Parent(), c.SecondParent())
	if err != nil {
		t.Fatal(err)
	}
	have := map[objects.ID]bool{}
	for _, b := range brings {
		have[b.ID] = true
	}
	for id := range w.above[c.SecondParent()] {
		if have[id] == w.above[c.Parent()][id] {
			t.Fatalf("seed %d: a merge brings %s: %t", seed, id.Short(), have[id])
		}
	}
}
