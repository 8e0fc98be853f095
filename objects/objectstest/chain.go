package objectstest

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"

	"github.com/tract-vcs/tract/objects"
)

var chains = []promise{
	{"Chain/from the tip to the root", chainAll},
	{"Chain/at most Limit commits", chainLimit},
	{"Chain/by first parents only", chainFirstParents},
	{"Chain/ends at a Stop", chainStop},
	{"Chain/ends where a Stop diverges", chainDiverged},
	{"Chain/of several Stops the nearest counts", chainStops},
	{"Chain/unrelated histories share nothing", chainUnrelated},
	{"Chain/a hole ends it", chainHole},
}

// ChainWithContent yields the commits of a chain, each followed by what its first link names,
// or by the error of reading that.
func ChainWithContent(ctx context.Context, r objects.Reader, tip objects.ID) iter.Seq2[objects.Object, error] {
	return func(yield func(objects.Object, error) bool) {
		for o, err := range r.Chain(ctx, tip, objects.ChainOptions{}) {
			if !yield(o, err) || err != nil {
				return
			}
			if len(o.Links) > 0 && !yield(objects.Read(ctx, r, o.Links[0])) {
				return
			}
		}
	}
}

func commitsOf(t *testing.T, s objects.Reader, tip objects.ID, limit int) []objects.Object {
	t.Helper()
	got, err := collect(s.Chain(soon(t), tip, objects.ChainOptions{Limit: limit}))
	if err != nil {
		t.Fatalf("chain: %v", err)
	}
	return got
}

func chainAll(t *testing.T, s objects.Store) {
	h := grow(objects.ID{}, "line", 1300)
	put(t, s, h.all()...)
	wantObjects(t, commitsOf(t, s, h.tip(), 0), h.commits)
	root := h.commits[len(h.commits)-1]
	wantObjects(t, commitsOf(t, s, root.ID, 0), []objects.Object{root})
	if got := commitsOf(t, s, objects.ID{}, 0); len(got) != 0 {
		t.Errorf("the chain of nothing has %d commits", len(got))
	}
}

func chainLimit(t *testing.T, s objects.Store) {
	h := grow(objects.ID{}, "line", 600)
	put(t, s, h.all()...)
	for _, limit := range []int{1, 2, 7, 255, 256, 257, 599, 600, 601} {
		wantObjects(t, commitsOf(t, s, h.tip(), limit), h.commits[:min(limit, 600)])
	}
}

func chainFirstParents(t *testing.T, s objects.Store) {
	ours, theirs := grow(objects.ID{}, "ours", 5), grow(objects.ID{}, "theirs", 5)
	merge := objects.New(objects.KindCommit, []objects.ID{ours.tip(), theirs.tip()}, nil, []byte("merge"))
	put(t, s, slices.Concat(ours.all(), theirs.all(), []objects.Object{merge})...)
	wantObjects(t, commitsOf(t, s, merge.ID, 0), append([]objects.Object{merge}, ours.commits...))
}

func chainStop(t *testing.T, s objects.Store) {
	h := grow(objects.ID{}, "line", 700)
	put(t, s, h.all()...)
	for _, n := range []int{0, 1, 2, 10, 300, 699} {
		got, err := collect(s.Chain(t.Context(), h.tip(), objects.ChainOptions{Stop: []objects.ID{{}, h.commits[n].ID}}))
		if err != nil {
			t.Fatalf("stop %d below the tip: %v", n, err)
		}
		wantObjects(t, got, h.commits[:n])
	}
	got, err := collect(s.Chain(t.Context(), h.tip(), objects.ChainOptions{Stop: []objects.ID{h.commits[20].ID}, Limit: 5}))
	if err != nil || len(got) != 5 {
		t.Errorf("five commits above a stop: %d objects, %v", len(got), err)
	}
}

func chainDiverged(t *testing.T, s objects.Store) {
	trunk := grow(objects.ID{}, "trunk", 300)
	ours, theirs := grow(trunk.tip(), "ours", 30), grow(trunk.tip(), "theirs", 290)
	put(t, s, slices.Concat(trunk.all(), ours.all(), theirs.all())...)
	for _, above := range [][2]history{{ours, theirs}, {theirs, ours}} {
		got, err := collect(s.Chain(t.Context(), above[0].tip(), objects.ChainOptions{Stop: []objects.ID{above[1].tip()}}))
		wantDiverged(t, err, trunk.tip())
		wantObjects(t, got, above[0].commits)
	}
	// A tip that went back to below the stop has nothing that is new.
	got, err := collect(s.Chain(t.Context(), trunk.tip(), objects.ChainOptions{Stop: []objects.ID{ours.tip()}}))
	wantDiverged(t, err, trunk.tip())
	if len(got) != 0 {
		t.Errorf("a tip below its stop yields %d commits", len(got))
	}
}

func wantDiverged(t *testing.T, err error, base objects.ID) {
	t.Helper()
	var diverged *objects.DivergedError
	if !errors.As(err, &diverged) {
		t.Fatalf("the chain ended with %v, want a DivergedError", err)
	}
	if diverged.Base != base {
		t.Fatalf("the histories part at %s, want %s", diverged.Base.Short(), base.Short())
	}
}

func chainStops(t *testing.T, s objects.Store) {
	h := grow(objects.ID{}, "line", 50)
	fork := grow(h.commits[20].ID, "fork", 5)
	put(t, s, append(h.all(), fork.all()...)...)
	for _, c := range []struct {
		name  string
		stops []objects.ID
		want  int
		base  objects.ID
	}{
		{"two ancestors", []objects.ID{h.commits[30].ID, h.commits[10].ID}, 10, objects.ID{}},
		{"a near ancestor and a far fork", []objects.ID{fork.tip(), h.commits[10].ID}, 10, objects.ID{}},
		{"a far ancestor and a near fork", []objects.ID{h.commits[30].ID, fork.tip()}, 20, h.commits[20].ID},
		{"the fork point and the fork", []objects.ID{fork.tip(), h.commits[20].ID}, 20, objects.ID{}},
	} {
		for range 2 {
			got, err := collect(s.Chain(t.Context(), h.tip(), objects.ChainOptions{Stop: c.stops}))
			if len(got) != c.want {
				t.Errorf("%s: %d commits, want %d", c.name, len(got), c.want)
			}
			if !c.base.IsZero() {
				wantDiverged(t, err, c.base)
			} else if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			slices.Reverse(c.stops)
		}
	}
}

func chainUnrelated(t *testing.T, s objects.Store) {
	ours, theirs := grow(objects.ID{}, "ours", 12), grow(objects.ID{}, "theirs", 3)
	put(t, s, append(ours.all(), theirs.all()...)...)
	got, err := collect(s.Chain(t.Context(), ours.tip(), objects.ChainOptions{Stop: []objects.ID{theirs.tip()}}))
	wantDiverged(t, err, objects.ID{})
	wantObjects(t, got, ours.commits)
}

func chainHole(t *testing.T, s objects.Store) {
	h := grow(objects.ID{}, "line", 300)
	put(t, s, append(h.commits[:280:280], h.commits[281:]...)...)
	got, err := collect(s.Chain(t.Context(), h.tip(), objects.ChainOptions{}))
	wantNotFound(t, err, h.commits[280].ID)
	wantObjects(t, got, h.commits[:280])
	_, err = collect(s.Chain(t.Context(), h.commits[280].ID, objects.ChainOptions{}))
	wantNotFound(t, err, h.commits[280].ID)
	_, err = collect(s.Chain(t.Context(), h.tip(), objects.ChainOptions{Stop: []objects.ID{h.commits[290].ID}}))
	wantNotFound(t, err, h.commits[280].ID)
}

func wantNotFound(t *testing.T, err error, id objects.ID) {
	t.Helper()
	var missing *objects.NotFoundError
	if !errors.As(err, &missing) || missing.ID != id || !errors.Is(err, objects.ErrNotFound) {
		t.Fatalf("%v, want that %s is not found", err, id.Short())
	}
}
