package objectstest

import (
	"errors"
	"iter"
	"maps"
	"slices"
	"testing"

	"github.com/tract-vcs/tract/objects"
)

// bulks compare objects.ChainRuns and objects.Load with Chain and Get, whether the engine
// is an objects.BulkReader or not.
var bulks = []promise{
	{"Bulk/ChainRuns is Chain in runs", bulkLine},
	{"Bulk/Load is Get, with spots and without", bulkLoad},
	{"Bulk/a hole ends it", bulkHole},
	{"Bulk/a loop may end early and may use the store", bulkLoops},
}

// flat copies the commits of runs, which are valid for a moment only.
func flat(runs iter.Seq2[objects.CommitRun, error]) (list []objects.Object, err error) {
	for run, err := range runs {
		if err != nil {
			return list, err
		}
		for _, o := range run.Objects {
			list = append(list, o.Clone())
		}
	}
	return list, nil
}

// Locators returns the known locators of the first links of the commits of a run, by id.
func Locators(run *objects.CommitRun) map[objects.ID]objects.Locator {
	known := map[objects.ID]objects.Locator{}
	for i, o := range run.Objects {
		if spot := run.Locator(i); spot != (objects.Locator{}) {
			known[o.Links[0]] = spot
		}
	}
	return known
}

// spotsOf returns the spots of the content of a line.
func spotsOf(t *testing.T, s objects.Store, tip objects.ID) map[objects.ID]objects.Locator {
	t.Helper()
	known := map[objects.ID]objects.Locator{}
	for run, err := range objects.ChainRuns(soon(t), s, tip, 0) {
		if err != nil {
			t.Fatal(err)
		}
		maps.Copy(known, Locators(&run))
	}
	return known
}

// loaded returns what Load gives for each place. What it gave must stay as it is.
func loaded(t *testing.T, s objects.Store, ids []objects.ID, spots map[objects.ID]objects.Locator) ([]objects.Object, error) {
	t.Helper()
	given := make([]objects.Object, len(ids))
	times := make([]int, len(ids))
	err := objects.Load(soon(t), s, objects.LoadRequest{
		Len: len(ids),
		At:  func(i int) (objects.ID, objects.Locator) { return ids[i], spots[ids[i]] },
		Give: func(i int, o *objects.Object, err error) error {
			given[i] = *o
			times[i]++
			return err
		},
	})
	for i, n := range times {
		if n > 1 || n == 0 && !given[i].ID.IsZero() {
			t.Errorf("place %d was given %d times", i, n)
		}
	}
	return given, err
}

func bulkLine(t *testing.T, s objects.Store) {
	h := grow(objects.ID{}, "line", 5000)
	for part := range slices.Chunk(h.all(), 900) { // some of it is sealed, some is not
		put(t, s, part...)
	}
	for _, limit := range []int{0, 1, 9, 300, 4999, 5000, 6000} {
		got, err := flat(objects.ChainRuns(soon(t), s, h.tip(), limit))
		if err != nil {
			t.Fatalf("limit %d: %v", limit, err)
		}
		want := h.commits
		if limit > 0 {
			want = h.commits[:min(limit, len(h.commits))]
		}
		wantObjects(t, got, want)
	}
	got, err := flat(objects.ChainRuns(soon(t), s, h.tip(), 0, h.commits[7].ID))
	if err != nil {
		t.Fatal(err)
	}
	wantObjects(t, got, h.commits[:7])
	if got, err := flat(objects.ChainRuns(soon(t), s, objects.ID{}, 0)); err != nil || len(got) != 0 {
		t.Errorf("the line of nothing: %d commits, %v", len(got), err)
	}
}

func bulkLoad(t *testing.T, s objects.Store) {
	h := grow(objects.ID{}, "line", 3000)
	for part := range slices.Chunk(h.all(), 900) {
		put(t, s, part...)
	}
	known := spotsOf(t, s, h.tip())
	var ids []objects.ID
	for i, c := range slices.Backward(h.contents) {
		if i%3 != 0 {
			ids = append(ids, c.ID)
		}
	}
	missing := content("never put")
	ids = append(ids, h.contents[0].ID, ids[4], missing.ID, h.tip())
	for _, ids := range [][]objects.ID{ids, ids[:1], ids[:40], slices.SortedFunc(slices.Values(ids), objects.ID.Compare), nil} {
		for _, spots := range []map[objects.ID]objects.Locator{known, nil} {
			wantLoaded(t, s, ids, spots)
		}
	}
}

// wantLoaded holds Load to what Get gives.
func wantLoaded(t *testing.T, s objects.Store, ids []objects.ID, spots map[objects.ID]objects.Locator) {
	t.Helper()
	got, err := loaded(t, s, ids, spots)
	if err != nil {
		t.Fatal(err)
	}
	list, err := collect(s.Get(soon(t), ids))
	if err != nil {
		t.Fatal(err)
	}
	there := map[objects.ID]objects.Object{}
	for _, o := range list {
		there[o.ID] = o
	}
	want := make([]objects.Object, len(ids))
	for i, id := range ids {
		want[i] = there[id]
	}
	wantObjects(t, got, want)
}

func bulkHole(t *testing.T, s objects.Store) {
	h := grow(objects.ID{}, "line", 2000)
	hole := h.commits[1500]
	put(t, s, slices.DeleteFunc(h.all(), func(o objects.Object) bool { return o.ID == hole.ID })...)
	got, err := flat(objects.ChainRuns(soon(t), s, h.tip(), 0))
	if none := (*objects.NotFoundError)(nil); !errors.As(err, &none) || none.ID != hole.ID {
		t.Errorf("a hole in a line is %v", err)
	}
	wantObjects(t, got, h.commits[:1500])
}

func bulkLoops(t *testing.T, s objects.Store) {
	h := grow(objects.ID{}, "line", 4000)
	put(t, s, h.all()...)
	n, runs := 0, 0
	for run, err := range objects.ChainRuns(soon(t), s, h.tip(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		first := run.Objects[0].ID
		put(t, s, content("put by the body of a loop over "+first.String()))
		if _, err := flat(objects.ChainRuns(soon(t), s, h.tip(), 50)); err != nil {
			t.Fatal(err)
		}
		if again := run.Objects[0].ID; again != first || again != h.commits[n].ID {
			t.Fatal("a run changed while it was used")
		}
		n += len(run.Objects)
		if runs++; n > 2000 || runs == 100 { // a store that is no BulkReader gives one at a time
			break
		}
	}
}
