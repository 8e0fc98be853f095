package tract

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/tract-vcs/tract/internal/history"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/objects"
)

// AsOperation returns a context under which all calls are one [Operation]: what they do to
// refs is undone together. Without it each call is an operation. The ref log names the
// operation by command, a word such as "import" without arguments; when it is empty, by
// what each call does.
func AsOperation(ctx context.Context, command string) context.Context {
	return history.AsOperation(ctx, command)
}

// UndoOptions says which operation Undo takes back, or Redo does again. The zero value is
// the newest of the store.
type UndoOptions struct {
	Branch    string // the newest that moved this branch; empty: that moved any ref
	Operation uint64 // the one with this number, see [Operation]; 0: the newest
	DryRun    bool   // find it, and move nothing
}

// picks reports whether an operation is the one, where the newest is not asked for, or
// may be it.
func (o UndoOptions) picks(op *Operation) bool {
	if o.Operation > 0 {
		return op.Seq == o.Operation || slices.Contains(op.Parts, o.Operation)
	}
	return !rescues(op.LogEntry) && (o.Branch == "" || op.moves(refs.Heads+o.Branch))
}

// Undo takes back an operation that is not undone yet, and returns it: its refs go back to
// where they were before. Its commits stay in the store, and the responses that it rescued
// stay under their rescue refs. When another operation has moved a ref of it since, that
// is a *[MovedError], and nothing is undone. When there is none to undo, it is an
// [objects.ErrNotFound].
func (r *Repo) Undo(ctx context.Context, o UndoOptions) (Operation, error) {
	c := r.call()
	op, err := r.standing(ctx, o)
	if err == nil {
		back := make([]objects.RefUpdate, len(op.Refs))
		for i, u := range op.Refs {
			back[i] = objects.RefUpdate{Name: u.Name, Old: u.New, New: u.Old}
		}
		err = r.reverse(ctx, c, "undo", o, op, op.Note.Group, back)
	}
	if err != nil {
		return Operation{}, fmt.Errorf("undo: %w", err)
	}
	return op, nil
}

// Redo does the operation again that was undone last, and returns it. Once another operation has moved the branch, or with no
// branch any ref, there is nothing to do again: [objects.ErrNotFound]. When another
// operation has moved a ref of it since, that is a *[MovedError], and nothing is done.
func (r *Repo) Redo(ctx context.Context, o UndoOptions) (Operation, error) {
	c := r.call()
	op, undo, err := r.undone(ctx, o)
	if err == nil {
		err = r.reverse(ctx, c, "redo", o, op, undo, op.Refs)
	}
	if err != nil {
		return Operation{}, fmt.Errorf("redo: %w", err)
	}
	return op, nil
}

// standing finds the operation to undo.
func (r *Repo) standing(ctx context.Context, o UndoOptions) (Operation, error) {
	for op, err := range r.Operations(ctx) {
		switch {
		case err != nil:
			return op, err
		case !o.picks(&op):
		case o.Operation == 0 && (op.Undone || !op.Note.Reverts.IsZero()):
		case op.Undone:
			return op, fmt.Errorf("operation %d is undone already", op.Seq)
		case !op.Note.Reverts.IsZero():
			return op, errIsUndo(op)
		case rescues(op.LogEntry):
			return op, fmt.Errorf("operation %d only keeps a response that could not be committed", op.Seq)
		case op.Note.Group.IsZero():
			return op, fmt.Errorf("operation %d has no group, so it cannot be marked as undone", op.Seq)
		default:
			return op, nil
		}
	}
	return Operation{}, o.errNone("there is nothing left to undo")
}

// undone finds the operation to do again, and the group of the undo that took it back.
func (r *Repo) undone(ctx context.Context, o UndoOptions) (Operation, objects.Group, error) {
	undos := map[uint64]objects.Group{} // of the operations that were met so far: the newest word on each
	chosen := uint64(0)
	for op, err := range r.Operations(ctx) {
		if err != nil {
			return op, objects.Group{}, err
		}
		if _, met := undos[op.Of]; op.Of > 0 && !met {
			undos[op.Of] = objects.Group{} // done again
			if !op.Redo {
				undos[op.Of] = op.Note.Group
			}
			if !op.Redo && chosen == 0 && o.Operation == 0 && o.picks(&op) {
				chosen = op.Of
			}
		}
		switch picked := o.picks(&op); {
		case chosen > 0 && op.Seq != chosen, chosen == 0 && !picked:
		case !op.Note.Reverts.IsZero() && o.Operation == 0:
		case op.Undone:
			return op, undos[op.Seq], nil
		case !op.Note.Reverts.IsZero():
			return op, objects.Group{}, errIsUndo(op)
		case o.Operation > 0:
			return op, objects.Group{}, fmt.Errorf("operation %d is not undone", op.Seq)
		default:
			return op, objects.Group{}, o.errNone("nothing was undone since the last command")
		}
	}
	return Operation{}, objects.Group{}, o.errNone("nothing was undone since the last command")
}

func errIsUndo(op Operation) error {
	return fmt.Errorf("operation %d is an undo or a redo: name the operation that it took back or did again, %d", op.Seq, op.Of)
}

// errNone says that there is no such operation.
func (o UndoOptions) errNone(why string) error {
	switch {
	case o.Operation > 0:
		return noOperation(fmt.Sprintf("there is no operation %d", o.Operation))
	case o.Branch != "":
		return noOperation(why + " on branch " + o.Branch)
	}
	return noOperation(why)
}

// noOperation is an objects.ErrNotFound.
type noOperation string

func (e noOperation) Error() string { return string(e) }

func (e noOperation) Is(target error) bool { return target == objects.ErrNotFound }

// reverse makes the moves that undo an operation or do it again, if its refs are where
// they were left. reverts is the group that is taken back: that of the operation, or of
// its undo.
func (r *Repo) reverse(ctx context.Context, c *call, command string, o UndoOptions, op Operation, reverts objects.Group, moves []objects.RefUpdate) error {
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
			return r.errMoved(ctx, op, u.Name, reverts)
		}
	}
	if o.DryRun {
		return nil
	}
	note := c.note(ctx, command)
	note.Reverts = reverts
	err = r.store.Apply(ctx, objects.Batch{Refs: moves, Note: note})
	if moved := (*objects.ConflictError)(nil); errors.As(err, &moved) {
		return r.errMoved(ctx, op, moved.Ref, reverts)
	}
	return err
}

// errMoved names what moved a ref that belongs to a group.
func (r *Repo) errMoved(ctx context.Context, op Operation, ref string, group objects.Group) error {
	e := &MovedError{Operation: op.Seq, Ref: ref}
	for entry, err := range r.log(ctx, ref) {
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

// MovedError says that a ref of an operation is not where the operation left it, so that
// it is neither undone nor done again.
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

// Operation is all that one command did to refs. Its number is that of its newest entry
// in the log, whose Refs here are all that the operation moved.
type Operation struct {
	objects.LogEntry
	Parts  []uint64 // the numbers of its other entries, newest first
	Of     uint64   // of an undo or redo: the operation that it took back, or did again; else 0
	Redo   bool     // Of was done again
	Undone bool     // it is taken back, as things stand now; never of an undo or redo

	begun   bool          // its first entry was met
	reverts objects.Group // what has to be met before Of is known
	split   []string      // refs that another operation moved between two of its entries
}

func (op *Operation) moves(ref string) bool {
	return slices.ContainsFunc(op.Refs, func(u objects.RefUpdate) bool { return u.Name == ref })
}

// join takes in an earlier entry of the same operation.
func (op *Operation) join(e objects.LogEntry) {
	op.Parts = append(op.Parts, e.Seq)
	op.Refs = slices.Clone(op.Refs)
	for _, u := range e.Refs {
		at := slices.IndexFunc(op.Refs, func(moved objects.RefUpdate) bool { return moved.Name == u.Name })
		switch {
		case at < 0:
			op.Refs = append(op.Refs, u)
			continue
		case op.Refs[at].Old != u.New:
			op.split = append(op.split, u.Name)
		}
		op.Refs[at].Old = u.Old
	}
}

// Operations yields the operations that moved refs, newest first. An error is the last
// element.
func (r *Repo) Operations(ctx context.Context) iter.Seq2[Operation, error] {
	return func(yield func(Operation, error) bool) {
		o := operations{undone: map[objects.Group]bool{}}
		for e, err := range r.log(ctx, "") {
			if err != nil {
				yield(Operation{}, err)
				return
			}
			o.take(e)
			for len(o.open) > 0 && o.open[0].begun && o.open[0].reverts.IsZero() {
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

// log yields the entries of the log that move a ref, newest first; the empty name is all
// refs.
func (r *Repo) log(ctx context.Context, ref string) iter.Seq2[objects.LogEntry, error] {
	return func(yield func(objects.LogEntry, error) bool) {
		const page = 64
		for before := uint64(0); ; {
			entries, err := r.store.Log(ctx, ref, before, page)
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
	open   []*Operation           // not yielded yet: the newest first
	undone map[objects.Group]bool // the groups that an operation which is not undone itself took back
}

func (o *operations) take(e objects.LogEntry) {
	group := e.Note.Group
	if group.IsZero() || rescues(e) {
		o.open = append(o.open, &Operation{LogEntry: e, begun: true})
		return
	}
	at := slices.IndexFunc(o.open, func(op *Operation) bool { return op.Note.Group == group && !rescues(op.LogEntry) })
	if at < 0 {
		at = len(o.open)
		op := &Operation{LogEntry: e, reverts: e.Note.Reverts}
		switch undone := o.undone[group]; {
		case op.reverts.IsZero():
			op.Undone = undone
		case !undone:
			o.undone[op.reverts] = true
		}
		o.open = append(o.open, op)
	} else {
		o.open[at].join(e)
	}
	op := o.open[at]
	op.begun = op.begun || !e.Note.Continues
	for _, later := range o.open[:at] {
		switch {
		case later.reverts != group:
		case e.Note.Reverts.IsZero():
			later.Of, later.reverts = op.Seq, objects.Group{}
		default: // to undo an undo is to redo, and to undo that is to undo
			later.Redo, later.reverts = !later.Redo, e.Note.Reverts
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
