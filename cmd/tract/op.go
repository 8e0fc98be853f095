package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/objects"
)

func newOp(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "op", Short: "List operations",
		Long: `List the operations of the store, newest first. An operation is everything that one command
did to refs; in a chat session, each turn is one. tract undo NUMBER undoes an operation.`,
		Example: `  tract op log -n 10
  tract op show 12`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.opLog(cmd.Context(), "", 0) },
	}
	limit := 0
	log := &cobra.Command{
		Use: "log", Short: "List the operations, newest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.opLog(cmd.Context(), "", limit) },
	}
	limitFlag(log, &limit, "show at most this many")
	show := &cobra.Command{
		Use: "show [NUMBER]", Short: "Show one operation (default: the newest)", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.opShow(cmd.Context(), args) },
	}
	cmd.AddCommand(log, show)
	return cmd
}

type opJSON struct {
	moveJSON
	Parts  []uint64 `json:"parts,omitempty"`
	Undoes uint64   `json:"undoes,omitempty"`
	Redoes uint64   `json:"redoes,omitempty"`
	Undone bool     `json:"undone,omitempty"`
	Added  []any    `json:"added,omitempty"`
}

func newOpJSON(op tract.Operation) opJSON {
	v := opJSON{moveJSON: newMoveJSON(op.LogEntry), Parts: op.Parts, Undone: op.Undone}
	if op.Redo {
		v.Redoes = op.Of
	} else {
		v.Undoes = op.Of
	}
	return v
}

// opLog lists the operations, or those that moved a ref.
func (a *app) opLog(ctx context.Context, ref string, limit int) error {
	repo, err := a.open(ctx, false)
	if err != nil {
		return err
	}
	moves, err := a.moveNumbersOf(ctx, ref)
	if err != nil {
		return err
	}
	list, rows, seen := []opJSON{}, [][]string{}, 0
	for op, err := range repo.Operations(ctx) {
		if err != nil {
			return err
		}
		row := opRow(op)
		if ref != "" {
			own := moves.ofOperation(op)
			if len(own) == 0 {
				continue
			}
			seen += len(own)
			tip, rev := moveCells(op, ref, slices.Min(own))
			row = append([]string{tip, rev}, row[1:4]...)
		}
		list, rows = append(list, newOpJSON(op)), append(rows, row)
		if len(list) == limit || ref != "" && seen == len(moves) {
			break
		}
	}
	return a.emitPage(list, func(p *format.Printer) {
		p.Table(rows)
	})
}

// moveNumbers maps the number of a ref log entry to n of REF@{n}: how often the ref has moved since.
type moveNumbers map[uint64]int

// moveNumbersOf returns the numbers of the moves of a ref; none for the empty name.
func (a *app) moveNumbersOf(ctx context.Context, ref string) (moveNumbers, error) {
	if ref == "" {
		return nil, nil
	}
	entries, err := a.repo.Store().Log(ctx, ref, 0, 0)
	if err == nil && len(entries) == 0 {
		err = &refs.UnknownError{Rev: refs.Name(ref), Why: "no ref with that name ever moved"}
	}
	moves := moveNumbers{}
	for n, e := range entries {
		moves[e.Seq] = n
	}
	return moves, err
}

// ofOperation returns the numbers of the moves that belong to an operation.
func (m moveNumbers) ofOperation(op tract.Operation) (own []int) {
	for _, seq := range append([]uint64{op.Seq}, op.Parts...) {
		if n, ok := m[seq]; ok {
			own = append(own, n)
		}
	}
	return own
}

// moveCells returns the table cells for a ref that an operation moved: the new tip, and the revision
// REF@{n} that names it.
func moveCells(op tract.Operation, ref string, n int) (tip, rev string) {
	at := slices.IndexFunc(op.Refs, func(u objects.RefUpdate) bool { return u.Name == ref })
	return shortOrDashes(op.Refs[at].New), fmt.Sprintf("%s@{%d}", refs.Name(ref), n)
}

// opRow returns the table row of an operation.
func opRow(op tract.Operation) []string {
	what := op.Note.Command
	if op.Of > 0 {
		what += " " + strconv.FormatUint(op.Of, 10)
	}
	if op.Undone {
		what += " (undone)"
	}
	var moved strings.Builder
	for i, u := range op.Refs {
		if i > 0 {
			moved.WriteString(", ")
		}
		moved.WriteString(refs.Name(u.Name) + " " + shortOrDashes(u.Old) + " -> " + shortOrDashes(u.New))
	}
	return []string{strconv.FormatUint(op.Seq, 10), op.Note.Time.Local().Format(time.DateTime), op.Note.Author, what, moved.String()}
}

func (a *app) opShow(ctx context.Context, args []string) error {
	repo, err := a.open(ctx, false)
	if err != nil {
		return err
	}
	var seq uint64
	if len(args) == 1 {
		if seq, err = operationNumber(args[0]); err != nil {
			return err
		}
	}
	for op, err := range repo.Operations(ctx) {
		if err != nil {
			return err
		}
		if seq == 0 || op.Seq == seq || slices.Contains(op.Parts, seq) {
			return a.printOperation(ctx, op)
		}
		if op.Seq < seq {
			break
		}
	}
	err = &refs.UnknownError{Rev: strconv.FormatUint(seq, 10), Why: "no operation has that number"}
	return withHint(err, "tract op log lists them")
}

func (a *app) printOperation(ctx context.Context, op tract.Operation) error {
	added := make([][]format.Commit, len(op.Refs))
	for i, u := range op.Refs {
		var err error
		if added[i], err = a.commitsAddedBy(ctx, u); err != nil {
			return err
		}
	}
	if a.json {
		v := newOpJSON(op)
		for _, list := range added {
			for _, c := range list {
				v.Added = append(v.Added, format.CommitJSON(c))
			}
		}
		return format.Encode(a.out, v)
	}
	return a.printPaged(func(p *format.Printer) {
		row := opRow(op)
		for _, line := range []string{"Operation " + row[0] + ": " + row[3], "Author:  " + row[2], "Date:    " + row[1]} {
			p.Line(line)
		}
		for i, u := range op.Refs {
			p.Text("\n")
			p.Line(fmt.Sprintf("%s: %s -> %s", refs.Name(u.Name), shortOrDashes(u.Old), shortOrDashes(u.New)))
			for _, c := range added[i] {
				p.Log(c, format.LogStyle{Oneline: true})
			}
		}
	})
}

// maxOpShown is the largest number of new commits that op show lists.
const maxOpShown = 50

// commitsAddedBy returns the commits that a move added to a branch, newest first.
func (a *app) commitsAddedBy(ctx context.Context, u objects.RefUpdate) ([]format.Commit, error) {
	if u.New.IsZero() || u.Old.IsZero() || refs.Heads+refs.Name(u.Name) != u.Name {
		return nil, nil
	}
	var list []format.Commit
	for c, damaged := range a.repo.Log(ctx, u.Old.String()+".."+u.New.String(), tract.LogOptions{Limit: maxOpShown}) {
		if err := a.damage.collectDamage(damaged); err != nil {
			return nil, err
		}
		list = append(list, format.Commit{Commit: c, Damaged: damaged})
	}
	return list, nil
}
