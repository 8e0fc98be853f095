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

// How operations are found. The ref log has one entry for each batch that moves refs. The
// entries of one command share a group, and an entry that is not the first of its group is
// marked as continuing. operationReader reads the log from the newest entry to the oldest and
// joins the entries of a group into an Operation, which is complete when its first entry was
// read. An undo is an operation of its own whose note names the group that it reverts; a redo
// reverts the group of an undo. Following these links tells which operation an undo or a redo
// belongs to, and whether an operation is undone at present. An entry that only creates
// rescue refs is an operation of its own, which Undo never selects.

// AsOperation returns a context under which all calls are one [Operation]: [Repo.Undo]
// takes them back together. Without it each call is an operation of its own. command is the
// operation's name in the ref log, a word such as "import" without arguments; when it is
// empty, the ref log has the name of each call.
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
	Undone bool     // the operation is undone at present; never true of an undo or a redo

	begun   bool          // its oldest entry was read
	reverts objects.Group // the group of operation Of, while Of is not known yet; otherwise zero
	split   []string      // refs that another operation moved between two of its entries
}

// moves reports whether the operation moved a ref.
func (op *Operation) moves(ref string) bool {
	return slices.ContainsFunc(op.Refs, func(u objects.RefUpdate) bool { return u.Name == ref })
}

// addEarlierEntry adds an entry of the same operation that is earlier in the log.
func (op *Operation) addEarlierEntry(e objects.LogEntry) {
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

// operationReader groups the entries of the ref log, from the newest to the oldest, into
// operations.
type operationReader struct {
	open   []*Operation           // not yielded yet, newest first
	undone map[objects.Group]bool // the groups that are undone by an operation which is not undone itself
}

// add adds the next entry.
func (o *operationReader) add(e objects.LogEntry) {
	group := e.Note.Group
	if group.IsZero() || onlyCreatesRescues(e) {
		o.open = append(o.open, &Operation{LogEntry: e, begun: true})
		return
	}
	at := slices.IndexFunc(o.open, func(op *Operation) bool { return op.Note.Group == group && !onlyCreatesRescues(op.LogEntry) })
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
		o.open[at].addEarlierEntry(e)
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

// onlyCreatesRescues reports whether an entry only creates rescue refs. Such an entry is never undone.
func onlyCreatesRescues(e objects.LogEntry) bool {
	for _, u := range e.Refs {
		if !strings.HasPrefix(u.Name, refs.Rescued) || !u.Old.IsZero() {
			return false
		}
	}
	return true
}
