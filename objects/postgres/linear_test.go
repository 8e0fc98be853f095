//go:build postgres

package postgres

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/tract-vcs/tract/objects"
)

// operation is one thing done with a ref: a look, or a move from one target to another.
type operation struct {
	ref      string
	look     bool
	old, new objects.ID
}

// result is what came of an operation.
type result struct {
	at      objects.ID // of a look
	moved   bool
	unknown bool // the move may have happened
}

// register is a register with compare-and-swap for each ref.
var register = porcupine.Model{
	Partition: func(history []porcupine.Operation) (parts [][]porcupine.Operation) {
		by := map[string][]porcupine.Operation{}
		for _, op := range history {
			by[op.Input.(operation).ref] = append(by[op.Input.(operation).ref], op)
		}
		for _, part := range by {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() any { return objects.ID{} },
	Step: func(state, input, output any) (bool, any) {
		at, in, out := state.(objects.ID), input.(operation), output.(result)
		switch {
		case in.look:
			return out.at == at, at
		case out.unknown: // each target is moved to once, so that a later look tells
			if at == in.old {
				return true, in.new
			}
			return true, at
		case out.moved:
			return at == in.old, in.new
		}
		return at != in.old || at == in.new, at
	},
	Equal: func(a, b any) bool { return a == b },
}

// record has goroutines over several stores look at refs and move them, and records what was
// done when.
func record(t *testing.T, stores []objects.Store, workers, each int, seed uint64) (ops []porcupine.Operation) {
	t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	begun := time.Now()
	for w := range workers {
		wg.Go(func() {
			s := stores[w%len(stores)]
			r := rand.New(rand.NewPCG(seed, uint64(w)))
			seen := map[string]objects.ID{}
			for i := range each {
				in := operation{ref: fmt.Sprint("refs/heads/", r.IntN(2)), look: r.IntN(2) == 0}
				out := result{}
				from := time.Since(begun)
				if in.look {
					ref, err := objects.ReadRef(t.Context(), s, in.ref)
					if err != nil {
						t.Error(err)
						return
					}
					out.at, seen[in.ref] = ref.Target, ref.Target
				} else {
					o := objects.New(objects.KindCommit, nil, nil, fmt.Append(nil, seed, w, i))
					in.old, in.new = seen[in.ref], o.ID
					err := s.Apply(t.Context(), objects.Batch{Put: []objects.Object{o}, Refs: []objects.RefUpdate{{Name: in.ref, Old: in.old, New: in.new}}})
					var conflict *objects.ConflictError
					out.moved, out.unknown = err == nil, objects.IsUnknown(err)
					if err != nil && !out.unknown && !errors.As(err, &conflict) {
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

// TestRefsAreLinearizable checks that there is an order in which everything can have happened
// at one moment each, over several stores, one of which loses connections.
func TestRefsAreLinearizable(t *testing.T) {
	for i := range 4 {
		url := freshURL(t)
		stores := []objects.Store{openURL(t, url), openURL(t, url), openURL(t, url)}
		stores[2] = openURL(t, newProxy(t, 25+7*i, i%2 == 0).url(url))
		ops := record(t, stores, 6, 25, uint64(i)+uint64(time.Now().UnixNano()))
		if result := porcupine.CheckOperationsTimeout(register, ops, time.Minute); result != porcupine.Ok {
			t.Fatalf("%d operations: %v", len(ops), result)
		}
		wantSound(t, stores[0])
	}
}
