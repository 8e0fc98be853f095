package tract

import (
	"context"
	"fmt"
	"iter"
	"slices"
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
			return r.operation(ctx, op.Of)
		}
	}
	return objects.LogEntry{}, errNothingToRedo()
}

func errNothingToRedo() error {
	return fmt.Errorf("redo: %w", &refs.UnknownError{Rev: "redo", Why: "nothing was undone since the last command"})
}

// operation is what an undo took back.
func (r *Repo) operation(ctx context.Context, seq uint64) (objects.LogEntry, error) {
	for op, err := range r.Operations(ctx) {
		if err != nil || op.Seq == seq {
			return op.LogEntry, err
		}
	}
	return objects.LogEntry{}, fmt.Errorf("operation %d: %w", seq, &refs.UnknownError{Rev: strconv.FormatUint(seq, 10), Why: "there is no operation of that number"})
}

// Moved is the number of the operation that moved the branch last, if it moved it to
// a commit: 0 when it is elsewhere by now.
func (b *Branch) Moved(ctx context.Context, to objects.ID) (uint64, error) {
	entries, err := b.repo.Moves(ctx, b.ref(), 1)
	if err != nil {
		return 0, fmt.Errorf("log of branch %s: %w", b.name, err)
	}
	for _, e := range entries {
		for _, u := range e.Refs {
			if u.Name != b.ref() || u.New != to {
				continue
			}
			if _, with := partOf(e); with > 0 {
				return with, nil
			}
			return e.Seq, nil
		}
	}
	return 0, nil
}

// withFormat ends the command of an entry that goes on with an earlier one.
const withFormat = " (with %d)"

// partOf gives the command of an entry, and the number of the earlier entry that it
// goes on with; 0: it is the first of its command.
func partOf(e objects.LogEntry) (command string, with uint64) {
	command, rest, ok := strings.Cut(e.Note.Command, " (with ")
	number, err := strconv.ParseUint(strings.TrimSuffix(rest, ")"), 10, 64)
	if !ok || err != nil || number == 0 || number >= e.Seq || command+fmt.Sprintf(withFormat, number) != e.Note.Command {
		return e.Note.Command, 0
	}
	return command, number
}

// Operation is one command that moved refs. When it did so several times, its entry
// of the log is the last one, with all that moved.
type Operation struct {
	objects.LogEntry
	Parts  []uint64 // the numbers of the entries before the last, newest first
	Of     uint64   // of an undo or redo: the operation that it took back, or did again; else 0
	Redo   bool     // Of was done again
	Undone bool     // it is taken back, as things stand now

	first uint64 // the number of the entry that it began with
}

// join takes in an earlier entry of the same command.
func (op *Operation) join(e objects.LogEntry) {
	op.Parts = append(op.Parts, e.Seq)
	op.Refs = slices.Clone(op.Refs)
	for _, u := range e.Refs {
		at := slices.IndexFunc(op.Refs, func(moved objects.RefUpdate) bool { return moved.Name == u.Name })
		if at < 0 {
			op.Refs = append(op.Refs, u)
		} else {
			op.Refs[at].Old = u.Old
		}
	}
}

// Operations yields the commands that moved refs, newest first. An error is the last
// element.
func (r *Repo) Operations(ctx context.Context) iter.Seq2[Operation, error] {
	return func(yield func(Operation, error) bool) {
		o := operations{stands: map[uint64]string{}}
		for e, err := range r.log(ctx) {
			if err != nil {
				yield(Operation{}, err)
				return
			}
			o.take(e)
			for len(o.open) > 0 && o.open[0].first >= e.Seq {
				op := o.open[0]
				if o.open = o.open[1:]; !yield(*op, nil) {
					return
				}
			}
		}
		for _, op := range o.open {
			if !yield(*op, nil) {
				return
			}
		}
	}
}

// log yields the entries of the log of refs, newest first.
func (r *Repo) log(ctx context.Context) iter.Seq2[objects.LogEntry, error] {
	return func(yield func(objects.LogEntry, error) bool) {
		const page = 64
		for before := uint64(0); ; {
			entries, err := r.store.Log(ctx, "", before, page)
			if err != nil {
				yield(objects.LogEntry{}, err)
				return
			}
			for _, e := range entries {
				if before = e.Seq; !yield(e, nil) {
					return
				}
			}
			if len(entries) < page {
				return
			}
		}
	}
}

// operations puts entries together, newest first.
type operations struct {
	open   []*Operation      // begun, and not yielded yet: the newest first
	stands map[uint64]string // the last word on an operation: undo or redo
}

func (o *operations) take(e objects.LogEntry) {
	var with uint64
	if e.Note.Command, with = partOf(e); rescues(e) {
		with = 0
	}
	first := e.Seq
	if with > 0 {
		first = with
	}
	for _, op := range o.open {
		if op.first == first {
			op.join(e)
			return
		}
	}
	op := &Operation{LogEntry: e, first: first, Undone: o.stands[e.Seq] == undoPrefix}
	for _, word := range []string{undoPrefix, redoPrefix} {
		of, is := strings.CutPrefix(e.Note.Command, word)
		seq, err := strconv.ParseUint(of, 10, 64)
		if !is || err != nil {
			continue
		}
		if op.Of, op.Redo = seq, word == redoPrefix; o.stands[seq] == "" {
			o.stands[seq] = word
		}
	}
	o.open = append(o.open, op)
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
