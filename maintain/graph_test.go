package maintain

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
)

// everything is the objects of a history with a fork, in the order in which they were
// made, and behind them some that are whole and make no sense.
func everything(t *testing.T) (all []objects.Object) {
	t.Helper()
	ctx := t.Context()
	repo, err := tract.Open(ctx, t.TempDir()+"/store", tract.OpenOptions{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = repo.Close() }()
	main := repo.Branch("main")
	for i := range 30 {
		if _, err := main.Append(ctx, []content.Block{content.User(fmt.Sprint("Question ", i)), content.Assistant(fmt.Sprint("Answer ", i))}, tract.AppendOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := main.Fork(ctx, "side", "HEAD~7"); err != nil {
		t.Fatal(err)
	}
	side, err := repo.Branch("side").AppendUser(ctx, "On the side.")
	if err != nil {
		t.Fatal(err)
	}
	all = allObjects(ctx, t, repo.Store())
	tip, err := objects.Read(ctx, repo.Store(), side)
	if err != nil {
		t.Fatal(err)
	}
	words := tip.Links[0]
	liar := objects.New(objects.KindCommit, []objects.ID{tip.ID}, tip.Links, tip.Data)
	return append(
		all, liar,
		objects.New(objects.KindCommit, []objects.ID{liar.ID}, tip.Links, tip.Data),
		objects.New(objects.KindCommit, []objects.ID{words}, tip.Links, tip.Data),
		objects.New(objects.KindCommit, tip.Parents, []objects.ID{all[0].ID, tip.Links[1]}, tip.Data),
		objects.New(objects.KindCommit, tip.Parents, tip.Links, []byte("no record")),
		objects.New(objects.KindContent, nil, nil, []byte("no record")),
		objects.New(objects.KindLabel, nil, nil, []byte("no record")),
	)
}

func allObjects(ctx context.Context, t *testing.T, s objects.Store) (all []objects.Object) {
	t.Helper()
	ids, err := s.Find(ctx, 0, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	known := map[objects.ID]bool{}
	var add func(id objects.ID)
	add = func(id objects.ID) {
		if known[id] {
			return
		}
		known[id] = true
		o, err := objects.Read(ctx, s, id)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range slices.Concat(o.Parents, o.Links) {
			add(id)
		}
		all = append(all, o)
	}
	for _, id := range ids {
		add(id)
	}
	return all
}

// lookedThrough is what is wrong with objects that come in such lists.
func lookedThrough(t *testing.T, lists [][]objects.Object) (wrong []string, fresh int) {
	t.Helper()
	found := map[string]bool{}
	g := newGraph(0, func(id objects.ID, what error) error {
		found[fmt.Sprint(id, " ", what)] = true
		return nil
	})
	for _, list := range lists {
		if err := g.add(list, func(*objects.Object) error { fresh++; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.checkCommits(); err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(found)), fresh
}

// TestGraphDoesNotDependOnTheOrderOfObjects adds the same objects in several orders and batches, and
// wants the same result.
func TestGraphDoesNotDependOnTheOrderOfObjects(t *testing.T) {
	all := everything(t)
	var alone [][]objects.Object
	for i := range all {
		alone = append(alone, all[i:i+1])
	}
	want, n := lookedThrough(t, alone)
	if len(want) != 7 || n != len(all) {
		t.Fatalf("%d of %d objects were new, and this is wrong:\n%q", n, len(all), want)
	}
	if got, n := lookedThrough(t, [][]objects.Object{all, all}); !slices.Equal(got, want) || n != len(all) {
		t.Errorf("all at once, twice: %d objects\n%q, want\n%q", n, got, want)
	}
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	for i := range 100 {
		var lists [][]objects.Object
		rest := slices.Clone(all)
		if i%2 == 0 {
			r.Shuffle(len(rest), func(i, k int) { rest[i], rest[k] = rest[k], rest[i] })
		}
		for len(rest) > 0 {
			k := 1 + r.IntN(min(len(rest), 20))
			lists, rest = append(lists, rest[:k]), rest[k:]
		}
		r.Shuffle(len(lists), func(i, k int) { lists[i], lists[k] = lists[k], lists[i] })
		if got, n := lookedThrough(t, lists); !slices.Equal(got, want) || n != len(all) {
			t.Fatalf("seed %d: %d objects\n%q, want\n%q", seed, n, got, want)
		}
	}
}
