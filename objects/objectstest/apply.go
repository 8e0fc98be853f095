package objectstest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/tract-vcs/tract/objects"
)

var applies = []promise{
	{"Apply/all refs or none", applyAllOrNone},
	{"Apply/a conflict says where the ref is", applyConflict},
	{"Apply/a batch may be repeated", applyRepeat},
	{"Apply/putting again does nothing", applyPutAgain},
	{"Apply/creates, moves and deletes", applyMoves},
	{"Apply/refuses a bad batch whole", applyBad},
	{"Apply/of concurrent compare-and-swaps one wins", applyRace},
	{"Apply/of different refs at once", applyMany},
}

func wantConflict(t *testing.T, err error, ref string, want, have objects.ID) {
	t.Helper()
	var c *objects.ConflictError
	if !errors.As(err, &c) {
		t.Fatalf("%v, want a ConflictError", err)
	}
	if c.Ref != ref || c.Want != want || c.Have != have {
		t.Fatalf("conflict %+v, want ref %s, expected %s, at %s", c, ref, want.Short(), have.Short())
	}
}

func applyAllOrNone(t *testing.T, s objects.Store) {
	a, b := content("a"), content("b")
	apply(t, s, move("refs/heads/a", objects.ID{}, a))
	err := s.Apply(t.Context(), objects.Batch{
		Put: []objects.Object{b},
		Refs: []objects.RefUpdate{
			{Name: "refs/heads/new", New: b.ID},
			{Name: "refs/heads/a", Old: b.ID, New: b.ID}, // counts as moved only if it is at b
			{Name: "refs/heads/other", New: b.ID},
		},
	})
	wantConflict(t, err, "refs/heads/a", b.ID, a.ID)
	got, err := s.Refs(t.Context(), objects.RefQuery{})
	if err != nil || len(got) != 1 || got[0].Target != a.ID {
		t.Errorf("refs after a conflict: %v, %v; want only refs/heads/a as it was", got, err)
	}
	if entries := log(t, s, "", 0, 0); len(entries) != 1 {
		t.Errorf("%d log entries after a conflict, want 1", len(entries))
	}
}

func applyConflict(t *testing.T, s objects.Store) {
	a, b, c := content("a"), content("b"), content("c")
	err := s.Apply(t.Context(), move(branch, a.ID, b))
	wantConflict(t, err, branch, a.ID, objects.ID{})
	apply(t, s, move(branch, objects.ID{}, a))
	err = s.Apply(t.Context(), move(branch, objects.ID{}, b))
	wantConflict(t, err, branch, objects.ID{}, a.ID)
	err = s.Apply(t.Context(), move(branch, c.ID, b))
	wantConflict(t, err, branch, c.ID, a.ID)
	err = s.Apply(t.Context(), move(branch, c.ID, objects.Object{}))
	wantConflict(t, err, branch, c.ID, a.ID)
}

func applyRepeat(t *testing.T, s objects.Store) {
	a, b := content("a"), content("b")
	create, advance := move(branch, objects.ID{}, a), move(branch, a.ID, b)
	for range 3 {
		apply(t, s, create)
	}
	for range 3 {
		apply(t, s, advance)
	}
	if got := target(t, s, branch); got != b.ID {
		t.Errorf("the ref is at %s, want %s", got.Short(), b.ID.Short())
	}
	remove := move(branch, b.ID, objects.Object{})
	apply(t, s, remove)
	apply(t, s, remove) // nowhere is where it should be
	if n := len(log(t, s, branch, 0, 0)); n != 3 {
		t.Errorf("%d log entries of three moves, each applied again and again", n)
	}
	both := advance
	both.Refs = append([]objects.RefUpdate{{Name: "refs/tags/b", New: b.ID}}, remove.Refs...)
	apply(t, s, both) // one of the two is there already: only the other is logged
	if e := log(t, s, "", 0, 1)[0]; len(e.Refs) != 1 || e.Refs[0].Name != "refs/tags/b" {
		t.Errorf("logged %v, want only what moved", e.Refs)
	}
}

func applyPutAgain(t *testing.T, s objects.Store) {
	a, b := content("a"), content("b")
	put(t, s, a, b, a, a)
	put(t, s, b, content("c"), a)
	for _, want := range []objects.Object{a, b, content("c")} {
		got, err := objects.Read(t.Context(), s, want.ID)
		if err != nil {
			t.Fatal(err)
		}
		wantObjects(t, []objects.Object{got}, []objects.Object{want})
	}
	if got, err := s.Find(t.Context(), 0, "", 0); err != nil || len(got) != 3 {
		t.Errorf("%d objects, %v; want 3", len(got), err)
	}
	apply(t, s, objects.Batch{}) // an empty batch is no error
	if n := len(log(t, s, "", 0, 0)); n != 0 {
		t.Errorf("%d log entries although no ref moved", n)
	}
}

func applyMoves(t *testing.T, s objects.Store) {
	a, b := content("a"), content("b")
	apply(t, s, move(branch, objects.ID{}, a))
	apply(t, s, move(branch, a.ID, b))
	ref, err := objects.ReadRef(t.Context(), s, branch)
	if err != nil || ref.Target != b.ID || ref.Version != 2 || !ref.Updated.Equal(noon) || ref.Name != branch {
		t.Errorf("after two moves: %+v, %v", ref, err)
	}
	apply(t, s, move(branch, b.ID, objects.Object{}))
	if got, err := s.GetRefs(t.Context(), branch); err != nil || len(got) != 0 {
		t.Errorf("after deletion: %v, %v", got, err)
	}
	if _, err := objects.Read(t.Context(), s, b.ID); err != nil {
		t.Errorf("deleting a ref took the object: %v", err)
	}
	apply(t, s, move(branch, objects.ID{}, b))
	if got := target(t, s, branch); got != b.ID {
		t.Errorf("created again at %s, want %s", got.Short(), b.ID.Short())
	}
}

func applyBad(t *testing.T, s objects.Store) {
	good := content("good")
	big := objects.New(objects.KindChunk, nil, nil, make([]byte, objects.MaxSize+1))
	wide := objects.New(objects.KindCommit, make([]objects.ID, objects.MaxEdges+1), nil, nil)
	linked := objects.New(objects.KindCommit, nil, make([]objects.ID, objects.MaxEdges+1), nil)
	odd := objects.New(objects.Kind(99), nil, nil, nil)
	wrong := content("wrong")
	wrong.Data = []byte("other bytes")
	ref := func(names ...string) (updates []objects.RefUpdate) {
		for _, name := range names {
			updates = append(updates, objects.RefUpdate{Name: name, New: good.ID})
		}
		return updates
	}
	for name, c := range map[string]struct {
		bad  objects.Batch
		want error
	}{
		"over the size":        {objects.Batch{Put: []objects.Object{good, big}}, objects.ErrLimit},
		"too many parents":     {objects.Batch{Put: []objects.Object{good, wide}}, objects.ErrLimit},
		"too many links":       {objects.Batch{Put: []objects.Object{good, linked}}, objects.ErrLimit},
		"an id of other bytes": {objects.Batch{Put: []objects.Object{good, wrong}}, objects.ErrCorrupt},
		"an unknown kind":      {objects.Batch{Put: []objects.Object{good, odd}}, objects.ErrCorrupt},
		"no name":              {objects.Batch{Put: []objects.Object{good}, Refs: ref(branch, "")}, nil},
		"a name of one part":   {objects.Batch{Put: []objects.Object{good}, Refs: ref(branch, "main")}, nil},
		"a name that climbs":   {objects.Batch{Put: []objects.Object{good}, Refs: ref(branch, "refs/heads/../x")}, nil},
		"one ref twice":        {objects.Batch{Put: []objects.Object{good}, Refs: ref(branch, branch)}, nil},
	} {
		for how, do := range map[string]func() error{
			"apply": func() error { return s.Apply(t.Context(), c.bad) },
			"update": func() error {
				return s.Update(t.Context(), branch, func(objects.ID) (objects.Batch, error) { return c.bad, nil })
			},
		} {
			err := do()
			if err == nil || c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("%s of a batch with %s: %v, want %v", how, name, err, c.want)
			}
		}
	}
	if err := s.Update(t.Context(), "main", func(objects.ID) (objects.Batch, error) { return objects.Batch{}, nil }); err == nil {
		t.Error("update of a ref with a bad name was no error")
	}
	if got, err := s.Missing(t.Context(), []objects.ID{good.ID}); err != nil || len(got) != 1 {
		t.Errorf("the good half of a bad batch was put: %v", err)
	}
	if got, err := s.Refs(t.Context(), objects.RefQuery{}); err != nil || len(got) != 0 {
		t.Errorf("a bad batch moved refs: %v, %v", got, err)
	}
}

func applyRace(t *testing.T, s objects.Store) {
	const rounds, racers = 150, 8
	var at objects.ID
	for round := range rounds {
		var wg sync.WaitGroup
		next, errs := make([]objects.Object, racers), make([]error, racers)
		for i := range racers {
			next[i] = content(fmt.Sprint("round ", round, " racer ", i))
			wg.Go(func() { errs[i] = s.Apply(t.Context(), move(branch, at, next[i])) })
		}
		wg.Wait()
		winner := -1
		for i, err := range errs {
			switch {
			case err != nil:
			case winner >= 0:
				t.Fatalf("round %d: racers %d and %d both won", round, winner, i)
			default:
				winner = i
			}
		}
		if winner < 0 {
			t.Fatalf("round %d: nobody won: %v", round, errs)
		}
		for i, err := range errs {
			if i != winner {
				wantConflict(t, err, branch, at, next[winner].ID)
			}
		}
		if at = target(t, s, branch); at != next[winner].ID {
			t.Fatalf("round %d: the ref is not where the winner put it", round)
		}
	}
	if n := len(log(t, s, branch, 0, 0)); n != rounds {
		t.Errorf("%d log entries of %d moves", n, rounds)
	}
}

func applyMany(t *testing.T, s objects.Store) {
	const writers, moves = 32, 5
	ctx := soon(t)
	errs := atOnce(writers, func(i int) error { return walkRef(ctx, s, fmt.Sprint("refs/heads/w", i), moves) })
	for i, err := range errs {
		if err != nil {
			t.Errorf("writer %d: %v", i, err)
		}
	}
	wantLinked(t, log(t, s, "", 0, 0), writers*moves)
}

// walkRef moves a ref n times, as its only writer.
func walkRef(ctx context.Context, s objects.Store, name string, n int) error {
	var tip objects.ID
	for range n {
		next := commit(tip, objects.Hash([]byte(name)))
		if err := s.Apply(ctx, move(name, tip, next)); err != nil {
			return err
		}
		tip = next.ID
		if ref, err := objects.ReadRef(ctx, s, name); err != nil || ref.Target != tip {
			return fmt.Errorf("acknowledged at %s, read at %s, %w", tip.Short(), ref.Target.Short(), err)
		}
	}
	return nil
}

// atOnce runs f n times at once.
func atOnce(n int, f func(i int) error) []error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = f(i) })
	}
	wg.Wait()
	return errs
}
