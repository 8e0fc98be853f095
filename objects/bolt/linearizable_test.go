package bolt

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/tract-vcs/tract/objects"
)

// step is one thing done with a ref: a look, or a move from one place to another.
type step struct {
	ref      string
	old, new objects.ID // both zero: a look
	look     bool
}

// outcome is what came of a step.
type outcome struct {
	at    objects.ID // of a look
	moved bool
}

// refModel is a register with compare-and-swap for each ref.
var refModel = porcupine.Model{
	Partition: func(history []porcupine.Operation) (parts [][]porcupine.Operation) {
		by := map[string][]porcupine.Operation{}
		for _, op := range history {
			by[op.Input.(step).ref] = append(by[op.Input.(step).ref], op)
		}
		for _, part := range by {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() any { return objects.ID{} },
	Step: func(state, input, output any) (bool, any) {
		at, in, out := state.(objects.ID), input.(step), output.(outcome)
		switch {
		case in.look:
			return out.at == at, at
		case out.moved:
			return at == in.old, in.new
		case at == in.new:
			return true, at
		}
		return at != in.old, at
	},
	Equal: func(a, b any) bool { return a == b },
}

// history lets many goroutines over several stores of the same file look at refs and
// move them, and writes down when what was done.
func history(t *testing.T, stores []objects.Store, workers, each int, seed uint64) []porcupine.Operation {
	t.Helper()
	var mu sync.Mutex
	var ops []porcupine.Operation
	var wg sync.WaitGroup
	begun := time.Now()
	for w := range workers {
		wg.Go(func() {
			s := stores[w%len(stores)]
			r := rand.New(rand.NewPCG(seed, uint64(w)))
			seen := map[string]objects.ID{}
			for i := range each {
				in := step{ref: fmt.Sprint("refs/heads/", r.IntN(2)), look: r.IntN(2) == 0}
				out := outcome{}
				from := time.Since(begun)
				if in.look {
					ref, err := objects.ReadRef(t.Context(), s, in.ref)
					if err != nil {
						t.Error(err)
						return
					}
					out.at, seen[in.ref] = ref.Target, ref.Target
				} else {
					o := objects.New(objects.KindCommit, nil, nil, []byte(fmt.Sprint(seed, w, i)))
					in.old, in.new = seen[in.ref], o.ID
					err := s.Apply(t.Context(), objects.Batch{Put: []objects.Object{o}, Refs: []objects.RefUpdate{{Name: in.ref, Old: in.old, New: in.new}}})
					var conflict *objects.ConflictError
					if out.moved = err == nil; err != nil && !errors.As(err, &conflict) {
						t.Error(err)
						return
					}
					if out.moved {
						seen[in.ref] = in.new
					}
				}
				mu.Lock()
				ops = append(ops, porcupine.Operation{ClientId: w, Input: in, Call: int64(from), Output: out, Return: int64(time.Since(begun))})
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return ops
}

// TestRefsAreLinearizable checks the histories of many writers and readers against a
// model of one register: there is an order in which all of it can have happened at
// one moment each.
func TestRefsAreLinearizable(t *testing.T) {
	for i := range rounds(3, 10, 500) {
		first, path := fresh(t)
		stores := []objects.Store{first, mustOpen(t, path, objects.Options{}), mustOpen(t, path, objects.Options{})}
		ops := history(t, stores, 6, 20, uint64(i)+uint64(time.Now().UnixNano()))
		if result := porcupine.CheckOperationsTimeout(refModel, ops, 30*time.Second); result != porcupine.Ok {
			t.Fatalf("%d operations: %v", len(ops), result)
		}
		for _, s := range stores {
			_ = s.Close()
		}
	}
}

// forgetful answers looks at refs from what it saw some looks ago.
type forgetful struct {
	objects.Store
	mu  sync.Mutex
	was map[string][]objects.Ref
}

func (f *forgetful) GetRefs(ctx context.Context, names ...string) ([]objects.Ref, error) {
	refs, err := f.Store.GetRefs(ctx, names...)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.was[names[0]] = append(f.was[names[0]], refs...)
	if old := f.was[names[0]]; len(old) > 6 {
		return old[len(old)-6 : len(old)-5], err
	}
	return refs, err
}

// TestControlOfLinearizability: a store that gives old answers is found out.
func TestControlOfLinearizability(t *testing.T) {
	s, _ := fresh(t)
	old := &forgetful{Store: s, was: map[string][]objects.Ref{}}
	ops := history(t, []objects.Store{old}, 4, 40, 1)
	if result := porcupine.CheckOperationsTimeout(refModel, ops, 30*time.Second); result != porcupine.Illegal {
		t.Errorf("old answers pass: %v", result)
	}
}

// TestSixtyFourProcesses has 64 processes increment one branch.
func TestSixtyFourProcesses(t *testing.T) {
	const processes = 64
	each := rounds(1, 3, 1000)
	s, path := fresh(t)
	var wg sync.WaitGroup
	begun, waits := time.Now(), make([]time.Duration, processes)
	for i := range processes {
		wg.Go(func() {
			b, err := child(t, "write", path, "refs/heads/main", fmt.Sprint(each)).Output()
			if err == nil {
				text, _ := strings.CutPrefix(strings.TrimSpace(string(b)), "longest wait ")
				waits[i], err = time.ParseDuration(text)
			}
			if err != nil {
				t.Errorf("process %d: %v: %s", i, err, b)
			}
		})
	}
	wg.Wait()
	wantNumbers(t, s, "refs/heads/main", processes*each)
	wantClean(t, path)
	t.Logf("%d commits by %d processes in %v, the longest wait %v", processes*each, processes, time.Since(begun).Round(time.Millisecond), slices.Max(waits))
}
