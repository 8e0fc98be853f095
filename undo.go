package tract

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/refs"
)

// undoPrefix begins the command of an undo; the number of what it undid follows.
const undoPrefix = "undo "

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
	back := make([]objects.RefUpdate, len(last.Refs))
	for i, u := range last.Refs {
		back[i] = objects.RefUpdate{Name: u.Name, Old: u.New, New: u.Old}
	}
	c.command = undoPrefix + strconv.FormatUint(last.Seq, 10)
	if err := r.move(ctx, c, "", back...); err != nil {
		return objects.LogEntry{}, fmt.Errorf("undo: %w", err)
	}
	return last, nil
}

// LastMove is what Undo would take back.
func (r *Repo) LastMove(ctx context.Context) (objects.LogEntry, error) {
	undone := map[uint64]bool{}
	const page = 64
	for before := uint64(0); ; {
		entries, err := r.store.Log(ctx, "", before, page)
		if err != nil {
			return objects.LogEntry{}, fmt.Errorf("undo: %w", err)
		}
		for _, e := range entries {
			before = e.Seq
			if of, ok := strings.CutPrefix(e.Note.Command, undoPrefix); ok {
				if seq, err := strconv.ParseUint(of, 10, 64); err == nil {
					undone[seq] = true
				}
				continue
			}
			if !undone[e.Seq] && !rescues(e) {
				return e, nil
			}
		}
		if len(entries) < page {
			return objects.LogEntry{}, fmt.Errorf("undo: %w", &refs.UnknownError{Rev: "undo", Why: "there is nothing left to undo"})
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
