package tract

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/objects"
)

// UndoOptions select the operation to undo or to redo. The zero value
// selects the newest operation of the store.
type UndoOptions struct {
	Branch    string // the newest operation that moved this branch; empty: that moved any ref
	Operation uint64 // the operation with this number; 0: the newest
	DryRun    bool   // find it, and move nothing
}

// selects reports whether an operation meets the conditions of the options. Without an
// Operation number, the newest one that meets them is the selected one.
func (o UndoOptions) selects(op *Operation) bool {
	if o.Operation > 0 {
		return op.Seq == o.Operation || slices.Contains(op.Parts, o.Operation)
	}
	return !onlyCreatesRescues(op.LogEntry) && (o.Branch == "" || op.moves(refs.Heads+o.Branch))
}

// Undo undoes an operation that is not undone yet, and returns it: its refs move back.
// Its commits stay in the store, and the responses that it rescued stay under their rescue
// refs. When another operation has moved one of its refs since, the error is a
// *[MovedError], and nothing is undone. When there is none to undo, it is an
// [objects.ErrNotFound].
func (r *Repo) Undo(ctx context.Context, o UndoOptions) (Operation, error) {
	c := r.defaultOptions()
	op, err := r.findUndoable(ctx, o)
	if err == nil {
		back := make([]objects.RefUpdate, len(op.Refs))
		for i, u := range op.Refs {
			back[i] = objects.RefUpdate{Name: u.Name, Old: u.New, New: u.Old}
		}
		err = r.applyReversal(ctx, c, "undo", o, op, op.Note.Group, back)
	}
	if err != nil {
		return Operation{}, fmt.Errorf("undo: %w", err)
	}
	return op, nil
}

// Redo does the operation again that was undone last, and returns it. When another operation
// has moved the branch (without a Branch: any ref) since then, there is nothing to redo: the
// error is an [objects.ErrNotFound]. When another operation has moved one of the refs of the
// selected operation since, the error is a *[MovedError], and nothing is done.
func (r *Repo) Redo(ctx context.Context, o UndoOptions) (Operation, error) {
	c := r.defaultOptions()
	op, undo, err := r.findRedoable(ctx, o)
	if err == nil {
		err = r.applyReversal(ctx, c, "redo", o, op, undo, op.Refs)
	}
	if err != nil {
		return Operation{}, fmt.Errorf("redo: %w", err)
	}
	return op, nil
}

// findUndoable returns the operation to undo.
func (r *Repo) findUndoable(ctx context.Context, o UndoOptions) (Operation, error) {
	for op, err := range r.Operations(ctx) {
		switch {
		case err != nil:
			return op, err
		case !o.selects(&op):
		case o.Operation == 0 && (op.Undone || !op.Note.Reverts.IsZero()):
		case op.Undone:
			return op, fmt.Errorf("operation %d is already undone", op.Seq)
		case !op.Note.Reverts.IsZero():
			return op, undoOfUndoError(op)
		case onlyCreatesRescues(op.LogEntry):
			return op, fmt.Errorf("operation %d only made a rescue ref", op.Seq)
		case op.Note.Group.IsZero():
			return op, fmt.Errorf("operation %d has no group, so it cannot be marked as undone", op.Seq)
		default:
			return op, nil
		}
	}
	return Operation{}, o.notFoundError("there is nothing left to undo")
}

// findRedoable returns the operation to do again. undoGroup is the group of the undo that took
// it back.
func (r *Repo) findRedoable(ctx context.Context, o UndoOptions) (op Operation, undoGroup objects.Group, err error) {
	undos := map[uint64]objects.Group{} // by operation: the group of its undo; zero when it was redone
	chosen := uint64(0)
	for op, err := range r.Operations(ctx) {
		if err != nil {
			return op, objects.Group{}, err
		}
		if _, met := undos[op.Of]; op.Of > 0 && !met {
			undos[op.Of] = objects.Group{} // redone
			if !op.Redo {
				undos[op.Of] = op.Note.Group
			}
			if !op.Redo && chosen == 0 && o.Operation == 0 && o.selects(&op) {
				chosen = op.Of
			}
		}
		switch picked := o.selects(&op); {
		case chosen > 0 && op.Seq != chosen, chosen == 0 && !picked:
		case !op.Note.Reverts.IsZero() && o.Operation == 0:
		case op.Undone:
			return op, undos[op.Seq], nil
		case !op.Note.Reverts.IsZero():
			return op, objects.Group{}, undoOfUndoError(op)
		case o.Operation > 0:
			return op, objects.Group{}, fmt.Errorf("operation %d is not undone", op.Seq)
		default:
			return op, objects.Group{}, o.notFoundError("nothing was undone since the last command")
		}
	}
	return Operation{}, objects.Group{}, o.notFoundError("nothing was undone since the last command")
}

// undoOfUndoError returns the error for an operation that is an undo or a redo itself.
func undoOfUndoError(op Operation) error {
	return fmt.Errorf("operation %d is an undo or a redo: name the operation that it undid or redid, %d", op.Seq, op.Of)
}

// notFoundError returns the error when no operation is selected.
func (o UndoOptions) notFoundError(why string) error {
	switch {
	case o.Operation > 0:
		return operationNotFound(fmt.Sprintf("there is no operation %d", o.Operation))
	case o.Branch != "":
		return operationNotFound(why + " on branch " + o.Branch)
	}
	return operationNotFound(why)
}

// operationNotFound is an [objects.ErrNotFound].
type operationNotFound string

func (e operationNotFound) Error() string { return string(e) }

func (e operationNotFound) Is(target error) bool { return target == objects.ErrNotFound }

// applyReversal moves the refs to undo an operation or to redo it, if they are still where
// the operation, or its undo, moved them. reverts is the group of the log entries that are
// taken back: those of the operation, or those of its undo.
func (r *Repo) applyReversal(ctx context.Context, c *callOptions, command string, o UndoOptions, op Operation, reverts objects.Group, moves []objects.RefUpdate) error {
	names := make([]string, len(moves))
	for i, u := range moves {
		names[i] = u.Name
	}
	found, err := r.store.GetRefs(ctx, names...)
	if err != nil {
		return err
	}
	at := map[string]objects.ID{}
	for _, ref := range found {
		at[ref.Name] = ref.Target
	}
	for _, u := range moves {
		if at[u.Name] != u.Old || slices.Contains(op.split, u.Name) {
			return r.movedError(ctx, op, u.Name, reverts)
		}
	}
	if o.DryRun {
		return nil
	}
	note := c.note(ctx, command)
	note.Reverts = reverts
	err = r.store.Apply(ctx, objects.Batch{Refs: moves, Note: note})
	if moved := (*objects.ConflictError)(nil); errors.As(err, &moved) {
		return r.movedError(ctx, op, moved.Ref, reverts)
	}
	return err
}

// movedError returns a *[MovedError] with the newest log entry that moved a ref and is not of
// the group.
func (r *Repo) movedError(ctx context.Context, op Operation, ref string, group objects.Group) error {
	e := &MovedError{Operation: op.Seq, Ref: ref}
	for entry, err := range refs.Log(ctx, r.store, ref) {
		if err != nil {
			return err
		}
		if entry.Note.Group != group {
			e.By = entry
			break
		}
	}
	return e
}

// MovedError is the error for an operation that cannot be undone, or done again, because
// another one has moved one of its refs since.
type MovedError struct {
	Operation uint64
	Ref       string
	By        objects.LogEntry // the entry of another operation that moved the ref last
}

// Error names the ref, and the operation that moved it since.
func (e *MovedError) Error() string {
	by := ""
	if e.By.Seq > 0 {
		by = fmt.Sprintf(" by operation %d, %q", e.By.Seq, e.By.Note.Command)
		if e.By.Note.Author != "" {
			by += " of " + e.By.Note.Author
		}
	}
	return fmt.Sprintf("operation %d: %s was moved since%s", e.Operation, refs.Name(e.Ref), by)
}
