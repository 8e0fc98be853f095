package objectstest

import (
	"context"
	"errors"
	"testing"

	"github.com/tract-vcs/tract/objects"
)

func TestFaultyWithoutPlanConforms(t *testing.T) {
	Run(t, Engine{Open: func(*testing.T) objects.Store { return Faulty(objects.Memory(), nil) }})
}

func TestFaultyFailsBeforeWriting(t *testing.T) {
	s := Faulty(objects.Memory(), Plan{Apply: {2: Before}, Update: {1: Before}})
	put(t, s, content("first"))
	b := move(branch, objects.ID{}, content("second"))
	if err := s.Apply(t.Context(), b); !errors.Is(err, ErrFault) || objects.IsUnknown(err) {
		t.Errorf("second apply: %v, want a fault with a known outcome", err)
	}
	err := s.Update(t.Context(), branch, func(objects.ID) (objects.Batch, error) {
		t.Error("f was called")
		return b, nil
	})
	if !errors.Is(err, ErrFault) {
		t.Errorf("update: %v", err)
	}
	if missing, err := s.Missing(t.Context(), []objects.ID{content("second").ID}); err != nil || len(missing) != 1 {
		t.Error("a call that failed before writing has written")
	}
	apply(t, s, b)
}

func TestFaultyFailsAfterWriting(t *testing.T) {
	s := Faulty(objects.Memory(), Plan{Apply: {1: After}})
	b := move(branch, objects.ID{}, content("lost answer"))
	if err := s.Apply(t.Context(), b); !errors.Is(err, ErrFault) || !objects.IsUnknown(err) {
		t.Errorf("apply: %v, want a fault with an unknown outcome", err)
	}
	apply(t, s, b)
	if got := target(t, s, branch); got != content("lost answer").ID {
		t.Errorf("the ref is at %s", got.Short())
	}
	if n := len(log(t, s, branch, 0, 0)); n != 1 {
		t.Errorf("%d log entries: the batch landed more than once", n)
	}
	// A conflict is the store's own answer, and no fault takes its place.
	s = Faulty(objects.Memory(), Plan{Apply: {1: After}})
	err := s.Apply(t.Context(), move(branch, content("elsewhere").ID, content("x")))
	wantConflict(t, err, branch, content("elsewhere").ID, objects.ID{})
}

func TestFaultyReads(t *testing.T) {
	ctx, some := context.Background(), content("some")
	plan := Plan{}
	for _, op := range []Op{Get, Missing, Find, Chain, GetRefs, Refs, Log} {
		plan[op] = map[int]When{1: Before, 3: After}
	}
	s := Faulty(objects.Memory(), plan)
	apply(t, s, move(branch, objects.ID{}, some))
	for round := 1; round <= 4; round++ {
		for name, call := range calls(ctx, s, some) {
			if plan[Op(name)] == nil {
				continue // a write, or a second spelling of a read
			}
			if err := call(); errors.Is(err, ErrFault) != (round%2 == 1) {
				t.Errorf("%s, call %d: %v", name, round, err)
			}
		}
	}
}

func TestFaultyEndsASequenceInTheMiddle(t *testing.T) {
	h := grow(objects.ID{}, "line", 5)
	s := Faulty(objects.Memory(), Plan{Chain: {1: After}})
	put(t, s, h.all()...)
	got, err := collect(s.Chain(t.Context(), h.tip(), objects.ChainOptions{}))
	if len(got) != 1 || !errors.Is(err, ErrFault) {
		t.Errorf("%d objects, then %v; want one, then a fault", len(got), err)
	}
}

func TestFaultyKeepsOptionalPowers(t *testing.T) {
	if _, ok := objects.As[objects.Watcher](Faulty(objects.Memory(), nil)); !ok {
		t.Error("no Watcher behind the faults")
	}
}
