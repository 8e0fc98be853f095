package tract

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/refs"
)

// The commands of an undo and a redo begin so; the number of what was taken back, or
// done again, follows.
const (
	undoPrefix = "undo "
	redoPrefix = "redo "
)

// Moves lists how a ref moved, newest first; the empty name is all refs. limit
// 0 is no limit.
func (r *Repo) Moves(ctx context.Context, ref string, limit int) ([]objects.LogEntry, error) {
	return r.store.Log(ctx, ref, 0, limit)
}

// Undo takes back the last command that moved refs and was not undone yet, and
// returns it. Its commits stay in the store. A ref that has moved since by
// other means is an *[objects.ConflictError], and nothing is undone.
func (r *Repo) Undo(ctx context.Context, opts ...Option) (objects.LogEntry, error) {
	c, err := r.call(opts)
	if err != nil {
		return objects.LogEntry{}, err
	}
	last, err := r.LastMove(ctx)
	if err != nil {
		return objects.LogEntry{}, err
	}
	c.command = undoPrefix + strconv.FormatUint(last.Seq, 10)
	if err := r.move(ctx, c, "", turned(last.Refs)...); err != nil {
		return objects.LogEntry{}, fmt.Errorf("undo: %w", err)
	}
	return last, nil
}

// turned is the moves that take moves back.
func turned(moves []objects.RefUpdate) []objects.RefUpdate {
	back := make([]objects.RefUpdate, len(moves))
	for i, u := range moves {
		back[i] = objects.RefUpdate{Name: u.Name, Old: u.New, New: u.Old}
	}
	return back
}

// Redo does again what the last Undo took back, and returns it. Once another command
// has moved a ref there is nothing to do again.
func (r *Repo) Redo(ctx context.Context, opts ...Option) (objects.LogEntry, error) {
	c, err := r.call(opts)
	if err != nil {
		return objects.LogEntry{}, err
	}
	undone, err := r.LastUndone(ctx)
	if err != nil {
		return objects.LogEntry{}, err
	}
	c.command = redoPrefix + strconv.FormatUint(undone.Seq, 10)
	if err := r.move(ctx, c, "", undone.Refs...); err != nil {
		return objects.LogEntry{}, fmt.Errorf("redo: %w", err)
	}
	return undone, nil
}

// LastMove is what Undo would take back.
func (r *Repo) LastMove(ctx context.Context) (objects.LogEntry, error) {
	for op, err := range r.Operations(ctx) {
		if err != nil {
			return objects.LogEntry{}, fmt.Errorf("undo: %w", err)
		}
		if op.Of == 0 && !op.Undone && !rescues(op.LogEntry) {
			return op.LogEntry, nil
		}
	}
	return objects.LogEntry{}, fmt.Errorf("undo: %w", &refs.UnknownError{Rev: "undo", Why: "there is nothing left to undo"})
}

// LastUndone is what Redo would do again.
func (r *Repo) LastUndone(ctx context.Context) (objects.LogEntry, error) {
	redone := map[uint64]bool{}
	for op, err := range r.Operations(ctx) {
		switch {
		case err != nil:
			return objects.LogEntry{}, fmt.Errorf("redo: %w", err)
		case op.Of == 0 && !rescues(op.LogEntry):
			return objects.LogEntry{}, errNothingToRedo()
		case op.Of == 0 || redone[op.Of]:
		case op.Redo:
			redone[op.Of] = true
		default:
			return r.Move(ctx, op.Of)
		}
	}
	return objects.LogEntry{}, errNothingToRedo()
}

func errNothingToRedo() error {
	return fmt.Errorf("redo: %w", &refs.UnknownError{Rev: "redo", Why: "nothing was undone since the last command"})
}

// Move is the entry of the log of refs with a number.
func (r *Repo) Move(ctx context.Context, seq uint64) (objects.LogEntry, error) {
	entries, err := r.store.Log(ctx, "", seq+1, 1)
	if err == nil && (len(entries) == 0 || entries[0].Seq != seq || seq == 0) {
		err = &refs.UnknownError{Rev: strconv.FormatUint(seq, 10), Why: "there is no operation of that number"}
	}
	if err != nil {
		return objects.LogEntry{}, fmt.Errorf("operation %d: %w", seq, err)
	}
	return entries[0], nil
}

// Operation is one command that moved refs.
type Operation struct {
	objects.LogEntry
	Of     uint64 // of an undo or redo: the operation that it took back, or did again; else 0
	Redo   bool   // Of was done again
	Undone bool   // it is taken back, as things stand now
}

// Operations yields the commands that moved refs, newest first. An error is the last
// element.
func (r *Repo) Operations(ctx context.Context) iter.Seq2[Operation, error] {
	return func(yield func(Operation, error) bool) {
		const page = 64
		stands := map[uint64]string{} // the last word on an operation: undo or redo
		for before := uint64(0); ; {
			entries, err := r.store.Log(ctx, "", before, page)
			if err != nil {
				yield(Operation{}, err)
				return
			}
			for _, e := range entries {
				before = e.Seq
				op := Operation{LogEntry: e, Undone: stands[e.Seq] == undoPrefix}
				for _, word := range []string{undoPrefix, redoPrefix} {
					of, is := strings.CutPrefix(e.Note.Command, word)
					seq, err := strconv.ParseUint(of, 10, 64)
					if !is || err != nil {
						continue
					}
					if op.Of, op.Redo = seq, word == redoPrefix; stands[seq] == "" {
						stands[seq] = word
					}
				}
				if !yield(op, nil) {
					return
				}
			}
			if len(entries) < page {
				return
			}
		}
	}
}

// rescues tells whether an entry only keeps what could not land: there is
// nothing in that to take back.
func rescues(e objects.LogEntry) bool {
	for _, u := range e.Refs {
		if !strings.HasPrefix(u.Name, refs.Rescued) || !u.Old.IsZero() {
			return false
		}
	}
	return true
}
