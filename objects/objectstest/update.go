package objectstest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/tract-vcs/tract/objects"
)

var updates = []promise{
	{"Update/many writers of one ref all succeed", updateMany},
	{"Update/many writers of many refs all succeed", updateSpread},
	{"Update/beside writers that compare and swap", updateMixed},
	{"Update/an error of f comes back as it is", updateError},
	{"Update/an empty batch writes nothing", updateEmpty},
	{"Update/f may read the store", updateReads},
	{"Update/moves other refs too", updateOthers},
	{"Update/a batch that ignores the tip is a conflict", updateStale},
}

// count reads the number that a counting commit holds, and says that the commit
// below it holds the one before.
func count(ctx context.Context, s objects.Reader, tip objects.ID) (uint64, error) {
	if tip.IsZero() {
		return 0, nil
	}
	var numbers []uint64
	for o, err := range s.Chain(ctx, tip, objects.ChainOptions{Limit: 2}) {
		if err != nil {
			return 0, err
		}
		numbers = append(numbers, binary.BigEndian.Uint64(o.Data))
	}
	if len(numbers) == 2 && numbers[0] != numbers[1]+1 {
		return 0, fmt.Errorf("number %d stands on %d", numbers[0], numbers[1])
	}
	return numbers[0], nil
}

// following returns a batch that puts the next number on tip. The numbers make a lost
// update show, and a tip that cannot be read yet; who keeps the commits of two
// writers apart, which would be one object otherwise.
func following(ctx context.Context, s objects.Reader, ref, who string, tip objects.ID) (objects.Batch, error) {
	n, err := count(ctx, s, tip)
	if err != nil {
		return objects.Batch{}, err
	}
	next := commit(tip, objects.Hash([]byte(who)))
	next = objects.New(next.Kind, next.Parents, next.Links, binary.BigEndian.AppendUint64(nil, n+1))
	return move(ref, tip, next), nil
}

// increment puts the next number on a ref.
func increment(ctx context.Context, s objects.Store, ref, who string) error {
	return s.Update(ctx, ref, func(tip objects.ID) (objects.Batch, error) { return following(ctx, s, ref, who, tip) })
}

func updateMany(t *testing.T, s objects.Store) {
	const writers, each = 64, 6
	ctx := soon(t)
	for i, err := range atOnce(writers, func(i int) error {
		for range each {
			if err := increment(ctx, s, branch, fmt.Sprint(i)); err != nil {
				return err
			}
		}
		return nil
	}) {
		if err != nil {
			t.Errorf("writer %d: %v", i, err)
		}
	}
	wantCount(t, s, branch, writers*each)
	wantLinked(t, log(t, s, branch, 0, 0), writers*each)
}

func wantCount(t *testing.T, s objects.Store, ref string, want int) {
	t.Helper()
	tip := target(t, s, ref)
	n, err := count(t.Context(), s, tip)
	if err != nil || n != uint64(want) {
		t.Fatalf("%s counts to %d, %v; want %d", ref, n, err, want)
	}
	if got := commitsOf(t, s, tip, 0); len(got) != want {
		t.Fatalf("%s has %d commits, want %d", ref, len(got), want)
	}
}

func updateSpread(t *testing.T, s objects.Store) {
	const writers, each, spread = 32, 6, 4
	ctx := soon(t)
	name := func(i int) string { return fmt.Sprint("refs/heads/", i%spread) }
	for i, err := range atOnce(writers, func(i int) error {
		for k := range each {
			if err := increment(ctx, s, name(i+k), fmt.Sprint(i)); err != nil {
				return err
			}
		}
		return nil
	}) {
		if err != nil {
			t.Errorf("writer %d: %v", i, err)
		}
	}
	total := 0
	for i := range spread {
		entries := log(t, s, name(i), 0, 0)
		total += len(entries)
		wantCount(t, s, name(i), len(entries))
	}
	if total != writers*each {
		t.Errorf("%d moves, want %d", total, writers*each)
	}
}

func updateMixed(t *testing.T, s objects.Store) {
	const writers, each = 8, 6
	ctx := soon(t)
	for i, err := range atOnce(writers, func(i int) error {
		for range each {
			if err := increment(ctx, s, branch, fmt.Sprint(i)); err != nil {
				return err
			}
			if i%2 == 0 {
				if err := incrementByHand(ctx, s, branch, fmt.Sprint(i)); err != nil {
					return err
				}
			}
		}
		return nil
	}) {
		if err != nil {
			t.Errorf("writer %d: %v", i, err)
		}
	}
	wantCount(t, s, branch, writers*each+writers/2*each)
}

// incrementByHand is increment without Update: read, apply, and again after a conflict.
func incrementByHand(ctx context.Context, s objects.Store, ref, who string) error {
	for {
		at, err := objects.ReadRef(ctx, s, ref)
		if err != nil {
			return err
		}
		b, err := following(ctx, s, ref, who, at.Target)
		if err != nil {
			return err
		}
		err = s.Apply(ctx, b)
		if c := (*objects.ConflictError)(nil); !errors.As(err, &c) {
			return err
		}
	}
}

func updateError(t *testing.T, s objects.Store) {
	mine := errors.New("mine")
	err := s.Update(t.Context(), branch, func(objects.ID) (objects.Batch, error) {
		return move(branch, objects.ID{}, content("never")), mine
	})
	if err != mine {
		t.Errorf("update: %v, want f's own error", err)
	}
	if got := target(t, s, branch); !got.IsZero() {
		t.Errorf("the ref moved although f gave an error")
	}
	apply(t, s, move(branch, objects.ID{}, content("after")))
}

func updateEmpty(t *testing.T, s objects.Store) {
	apply(t, s, move(branch, objects.ID{}, content("there")))
	calls := 0
	err := s.Update(t.Context(), branch, func(tip objects.ID) (objects.Batch, error) {
		calls++
		if tip != content("there").ID {
			t.Errorf("f was given %s", tip.Short())
		}
		return objects.Batch{}, nil
	})
	if err != nil || calls != 1 {
		t.Errorf("update with an empty batch: %v after %d calls", err, calls)
	}
	if n := len(log(t, s, "", 0, 0)); n != 1 {
		t.Errorf("%d log entries, want 1", n)
	}
}

func updateReads(t *testing.T, s objects.Store) {
	h := grow(objects.ID{}, "line", 300)
	b := move(branch, objects.ID{}, h.commits[0])
	b.Put = h.all()
	apply(t, s, b)
	ctx := soon(t)
	err := s.Update(ctx, branch, func(tip objects.ID) (objects.Batch, error) {
		if got := commitsOf(t, s, tip, 0); len(got) != 300 {
			t.Errorf("chain inside f: %d commits", len(got))
		}
		if got, err := collect(s.Get(ctx, ids(h.contents))); len(got) != 300 || err != nil {
			t.Errorf("get inside f: %d objects, %v", len(got), err)
		}
		if ref, err := objects.ReadRef(ctx, s, branch); err != nil || ref.Target != tip {
			t.Errorf("the ref inside f: %+v, %v", ref, err)
		}
		if got, err := s.Missing(ctx, []objects.ID{h.tip(), {1}}); err != nil || len(got) != 1 {
			t.Errorf("missing inside f: %v, %v", got, err)
		}
		if got, err := s.Log(ctx, "", 0, 0); err != nil || len(got) != 1 {
			t.Errorf("log inside f: %v, %v", got, err)
		}
		if got, err := s.Find(ctx, objects.KindCommit, h.tip().String()[:9], 0); err != nil || len(got) != 1 {
			t.Errorf("find inside f: %v, %v", got, err)
		}
		return move(branch, tip, commit(tip)), nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func updateOthers(t *testing.T, s objects.Store) {
	a, b := content("a"), content("b")
	apply(t, s, move("refs/tags/a", objects.ID{}, a))
	both := func(old objects.ID) func(objects.ID) (objects.Batch, error) {
		return func(tip objects.ID) (objects.Batch, error) {
			m := move(branch, tip, b)
			m.Refs = append(m.Refs, objects.RefUpdate{Name: "refs/tags/a", Old: old, New: b.ID})
			return m, nil
		}
	}
	err := s.Update(t.Context(), branch, both(content("elsewhere").ID))
	wantConflict(t, err, "refs/tags/a", content("elsewhere").ID, a.ID)
	if got := target(t, s, branch); !got.IsZero() {
		t.Error("half of the batch was applied")
	}
	if err := s.Update(t.Context(), branch, both(a.ID)); err != nil {
		t.Fatal(err)
	}
	if target(t, s, branch) != b.ID || target(t, s, "refs/tags/a") != b.ID {
		t.Error("not both refs moved")
	}
}

func updateStale(t *testing.T, s objects.Store) {
	a, b := content("a"), content("b")
	apply(t, s, move(branch, objects.ID{}, a))
	err := s.Update(soon(t), branch, func(objects.ID) (objects.Batch, error) {
		return move(branch, b.ID, content("c")), nil
	})
	wantConflict(t, err, branch, b.ID, a.ID)
}
