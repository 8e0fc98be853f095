package tract

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/tract-vcs/tract/internal/history"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/objects"
)

// AsOperation returns a context under which all calls are one [Operation]: [Repo.Undo]
// takes them back together. Without it each call is an operation. The ref log names the
// operation by command, a word such as "import" without arguments; when it is empty, by
// what each call does.
func AsOperation(ctx context.Context, command string) context.Context {
	return history.AsOperation(ctx, command)
}

// Operation is everything that one command did to refs. Its number is that of its newest
// entry in the ref log; its Refs are all moves of the operation.
type Operation struct {
	objects.LogEntry
	Parts  []uint64 // numbers of its other entries in the ref log, newest first
	Of     uint64   // the operation that an undo or a redo undid or redid; else 0
	Redo   bool     // Of was redone
	Undone bool     // it is undone at present; never of an undo or a redo

	begun   bool          // its oldest entry was read
	reverts objects.Group // the group of the entry that Of is the number of; zero: it is known
	split   []string      // refs that another operation moved between two of its entries
}

// moves reports whether the operation moved a ref.
func (op *Operation) moves(ref string) bool {
	return slices.ContainsFunc(op.Refs, func(u objects.RefUpdate) bool { return u.Name == ref })
}

// addEarlier adds an earlier entry of the same operation.
func (op *Operation) addEarlier(e objects.LogEntry) {
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
		o := operationReader{undone: map[objects.Group]bool{}}
		for e, err := range refs.Log(ctx, r.store, "") {
			if err != nil {
				yield(Operation{}, err)
				return
			}
			o.add(e)
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

// operationReader forms operations from the entries of the ref log, which it reads from the
// newest on.
type operationReader struct {
	open   []*Operation           // not yielded yet: the newest first
	undone map[objects.Group]bool // the groups that an operation which is not undone itself took back
}

// add adds the next entry.
func (o *operationReader) add(e objects.LogEntry) {
	group := e.Note.Group
	if group.IsZero() || isRescue(e) {
		o.open = append(o.open, &Operation{LogEntry: e, begun: true})
		return
	}
	at := slices.IndexFunc(o.open, func(op *Operation) bool { return op.Note.Group == group && !isRescue(op.LogEntry) })
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
		o.open[at].addEarlier(e)
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

// isRescue reports whether an entry only makes rescue refs: there is nothing in that to
// undo.
func isRescue(e objects.LogEntry) bool {
	for _, u := range e.Refs {
		if !strings.HasPrefix(u.Name, refs.Rescued) || !u.Old.IsZero() {
			return false
		}
	}
	return true
}
