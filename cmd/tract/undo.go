package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/objects"
)

type undoOptions struct {
	any    bool
	dryRun bool
}

func newUndo(a *app) *cobra.Command {
	o := &undoOptions{}
	cmd := &cobra.Command{
		Use: "undo [OPERATION]", Short: "Undo the newest operation on the current branch",
		Long: `Undo the newest operation that moved the current branch and is not undone yet: all
refs that it moved go back to where they were. Its commits stay in the store. A
second undo takes back the operation before that one, tract redo does again what
was undone.

An operation is all that one command did: a whole import, replay or chat. In a
session each turn is an operation. OPERATION is a number that tract op log shows.
When another operation has moved a ref of it since, nothing is undone, and the
error names that operation.`,
		Example: `  tract undo --dry-run
  tract undo
  tract undo 12
  tract undo --any`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			choice, err := a.chooseOperation(cmd, o, args)
			if err != nil {
				return err
			}
			return a.undo(cmd.Context(), choice)
		},
	}
	cmd.Flags().BoolVar(&o.any, "any", false, "undo the newest operation of the store, whatever it moved")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "only show what would be undone")
	return cmd
}

func newRedo(a *app) *cobra.Command {
	o := &undoOptions{}
	cmd := &cobra.Command{
		Use: "redo [OPERATION]", Short: "Do again what was undone last",
		Long: `Do again the operation on the current branch that was undone last: the refs go
where they were before tract undo. Once another operation has moved the branch
there is nothing to do again. OPERATION is the number of an undone operation, as
tract op log shows it.`,
		Example: `  tract undo
  tract redo
  tract redo 12`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			choice, err := a.chooseOperation(cmd, o, args)
			if err != nil {
				return err
			}
			return a.redo(cmd.Context(), choice)
		},
	}
	cmd.Flags().BoolVar(&o.any, "any", false, "redo the operation of the store that was undone last, whatever it moved")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "only show what would be done again")
	return cmd
}

// chooseOperation is the operation that the arguments of undo and redo name.
func (a *app) chooseOperation(cmd *cobra.Command, o *undoOptions, args []string) (tract.UndoOptions, error) {
	choice := tract.UndoOptions{DryRun: o.dryRun}
	switch {
	case len(args) == 1 && o.any:
		return choice, usageError(cmd, "give an operation or --any, not both")
	case len(args) == 1:
		number, err := operationNumber(cmd, args[0])
		choice.Operation = number
		return choice, err
	case o.any:
		return choice, nil
	}
	name, err := a.branchName(cmd.Context())
	if err == nil && name == "" {
		err = withHint(errors.New("HEAD is on no branch"), "tract %s --any is of the whole store, -b NAME of a branch", cmd.Name())
	}
	choice.Branch = name
	return choice, err
}

func operationNumber(cmd *cobra.Command, text string) (uint64, error) {
	number, err := strconv.ParseUint(text, 10, 64)
	if err != nil || number == 0 {
		return 0, usageError(cmd, "operation %q: want its number, as tract op log shows it", text)
	}
	return number, nil
}

func (a *app) undo(ctx context.Context, choice tract.UndoOptions) error {
	op, err := a.reverse(ctx, choice, (*tract.Repo).Undo)
	if err != nil {
		return err
	}
	moves := make([]objects.RefUpdate, len(op.Refs))
	for i, u := range op.Refs {
		moves[i] = objects.RefUpdate{Name: u.Name, Old: u.New, New: u.Old}
	}
	word := "Took back"
	if choice.DryRun {
		word = "Would take back"
	} else if err := a.followRename(moves); err != nil {
		return err
	}
	if a.json {
		return format.Encode(a.out, map[string]any{"undone": opOf(op), "dry_run": choice.DryRun})
	}
	return a.printMoves(word, "back to", op.LogEntry, moves)
}

func (a *app) redo(ctx context.Context, choice tract.UndoOptions) error {
	op, err := a.reverse(ctx, choice, (*tract.Repo).Redo)
	if err != nil {
		return err
	}
	word := "Did again"
	if choice.DryRun {
		word = "Would do again"
	} else if err := a.followRename(op.Refs); err != nil {
		return err
	}
	if a.json {
		return format.Encode(a.out, map[string]any{"redone": opOf(op), "dry_run": choice.DryRun})
	}
	return a.printMoves(word, "to", op.LogEntry, op.Refs)
}

// reverse undoes an operation or does it again.
func (a *app) reverse(ctx context.Context, choice tract.UndoOptions, do func(*tract.Repo, context.Context, tract.UndoOptions) (tract.Operation, error)) (tract.Operation, error) {
	repo, err := a.open(ctx, !choice.DryRun)
	if err != nil {
		return tract.Operation{}, err
	}
	op, err := do(repo, ctx, choice)
	if moved := (*tract.MovedError)(nil); errors.As(err, &moved) && moved.By.Seq > 0 {
		return op, withHint(err, "tract op show %d shows what moved it; undo that first", moved.By.Seq)
	}
	if errors.Is(err, objects.ErrNotFound) {
		return op, withHint(err, "tract op log lists the operations of the store")
	}
	return op, err
}

// printMoves says how refs moved.
func (a *app) printMoves(word, to string, entry objects.LogEntry, moves []objects.RefUpdate) error {
	p := a.printer()
	p.Text(fmt.Sprintf("%s %q of %s\n", word, entry.Note.Command, entry.Note.Time.Local().Format(time.DateTime)))
	for _, u := range moves {
		p.Line(fmt.Sprintf("  %s: %s %s %s", refs.Name(u.Name), shortOrDashes(u.Old), to, shortOrDashes(u.New)))
	}
	return p.Err()
}

// followRename lets HEAD go along with a branch that gets its other name back.
func (a *app) followRename(moves []objects.RefUpdate) error {
	h, err := a.head()
	if err != nil || h.branch == "" {
		return err
	}
	for _, gone := range moves {
		if gone.Name != refs.Heads+h.branch || !gone.New.IsZero() {
			continue
		}
		for _, made := range moves {
			if refs.Heads+refs.Name(made.Name) == made.Name && made.Old.IsZero() && made.New == gone.Old {
				return a.setHead(head{branch: refs.Name(made.Name)})
			}
		}
	}
	return nil
}
