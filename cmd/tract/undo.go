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

func newUndo(a *app) *cobra.Command {
	return newReversal(a, false, &cobra.Command{
		Use: "undo [OPERATION]", Short: "Undo the newest operation on the current branch",
		Long: `Undo the newest operation that moved the current branch and is not undone yet: move every
ref that it moved back. The commits stay in the store. A second undo undoes the operation
before that; tract redo reverses an undo.

An operation is everything that one command did, such as a whole import or replay. In a
chat session, each turn is one operation. OPERATION is a number from tract op log. If a
later operation has moved one of the refs, nothing is undone and the error names that
operation.`,
		Example: `  tract undo --dry-run
  tract undo
  tract undo 12
  tract undo --any`,
	}, "undo the newest operation of the store, on any branch", "only report what would be undone")
}

func newRedo(a *app) *cobra.Command {
	return newReversal(a, true, &cobra.Command{
		Use: "redo [OPERATION]", Short: "Redo what was undone last",
		Long: `Redo the operation on the current branch that was undone last: move its refs back to where
they were before tract undo. This is possible until another operation moves the branch.
OPERATION is the number of an undone operation from tract op log.`,
		Example: `  tract undo
  tract redo
  tract redo 12`,
	}, "redo the operation of the store that was undone last, on any branch", "only report what would be redone")
}

func newReversal(a *app, redo bool, cmd *cobra.Command, anyHelp, dryRunHelp string) *cobra.Command {
	anyBranch, o := false, tract.UndoOptions{}
	cmd.Args = cobra.MaximumNArgs(1)
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		switch {
		case len(args) == 1 && anyBranch:
			return usageError("both an operation and --any given: use one")
		case len(args) == 1:
			o.Operation, err = operationNumber(args[0])
		case !anyBranch:
			o.Branch, err = a.branchOfFlagOrHead(cmd.Context())
			if err == nil && o.Branch == "" {
				err = withHint(errors.New("HEAD is detached"), "tract %s --any considers the whole store, -b NAME a branch", cmd.Name())
			}
		}
		if err != nil {
			return err
		}
		return a.undoOrRedo(cmd.Context(), redo, o)
	}
	cmd.Flags().BoolVar(&anyBranch, "any", false, anyHelp)
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, dryRunHelp)
	return cmd
}

func operationNumber(text string) (uint64, error) {
	number, err := strconv.ParseUint(text, 10, 64)
	if err != nil || number == 0 {
		return 0, usageError("operation %q: want a number from tract op log", text)
	}
	return number, nil
}

// undoOrRedo undoes or redoes an operation and prints how refs moved.
func (a *app) undoOrRedo(ctx context.Context, redo bool, o tract.UndoOptions) error {
	repo, err := a.open(ctx, !o.DryRun)
	if err != nil {
		return err
	}
	run, member, did, would, to := repo.Undo, "undone", "Undid", "Would undo", "back to"
	if redo {
		run, member, did, would, to = repo.Redo, "redone", "Redid", "Would redo", "to"
	}
	op, err := run(ctx, o)
	switch moved := (*tract.MovedError)(nil); {
	case errors.As(err, &moved) && moved.By.Seq > 0:
		return withHint(err, "tract op show %d shows what moved it; undo that first", moved.By.Seq)
	case errors.Is(err, objects.ErrNotFound):
		return withHint(err, "tract op log lists the operations of the store")
	case err != nil:
		return err
	}
	moves := op.Refs
	if !redo { // back from where the operation moved them
		moves = mapSlice(op.Refs, func(u objects.RefUpdate) objects.RefUpdate {
			return objects.RefUpdate{Name: u.Name, Old: u.New, New: u.Old}
		})
	}
	if o.DryRun {
		did = would
	} else if err := a.followRenamedBranch(moves); err != nil {
		return err
	}
	return a.emit(map[string]any{member: newOpJSON(op), "dry_run": o.DryRun}, func(p *format.Printer) {
		p.Text(fmt.Sprintf("%s %q of %s\n", did, op.Note.Command, op.Note.Time.Local().Format(time.DateTime)))
		for _, u := range moves {
			p.Line(fmt.Sprintf("  %s: %s %s %s", refs.Name(u.Name), shortOrDashes(u.Old), to, shortOrDashes(u.New)))
		}
	})
}

// followRenamedBranch moves HEAD along with its branch when the branch gets its other name back.
func (a *app) followRenamedBranch(moves []objects.RefUpdate) error {
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
