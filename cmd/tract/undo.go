package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/refs"
)

func newUndo(a *app) *cobra.Command {
	dryRun := false
	cmd := &cobra.Command{
		Use: "undo", Short: "Take back the last command that moved a ref",
		Long: `Take back the last command that moved a ref, whoever gave it: the refs go back
to where they were. Its commits stay in the store. A second undo takes back the
command before that one, tract redo does again what was taken back.`,
		Example: `  tract undo --dry-run
  tract undo`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.undo(cmd.Context(), dryRun) },
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only say what would be taken back")
	return cmd
}

func newRedo(a *app) *cobra.Command {
	dryRun := false
	cmd := &cobra.Command{
		Use: "redo", Short: "Do again what was taken back last",
		Long: `Do again what the last tract undo took back: the refs go where they were before
it. Once another command has moved a ref there is nothing to do again.`,
		Example: `  tract undo
  tract redo`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.redo(cmd.Context(), dryRun) },
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only say what would be done again")
	return cmd
}

func (a *app) undo(ctx context.Context, dryRun bool) error {
	repo, err := a.open(ctx, !dryRun)
	if err != nil {
		return err
	}
	var entry objects.LogEntry
	if dryRun {
		entry, err = repo.LastMove(ctx)
	} else {
		entry, err = repo.Undo(ctx, tract.Command("undo"))
	}
	if as[*refs.UnknownError](err) {
		return &failure{code: codeNotFound, kind: "not_found", cause: errors.New("undo: there is nothing left to take back"), hint: "tract reflog --all shows what moved"}
	}
	if err != nil {
		return err
	}
	moves := make([]objects.RefUpdate, len(entry.Refs))
	for i, u := range entry.Refs {
		moves[i] = objects.RefUpdate{Name: u.Name, Old: u.New, New: u.Old}
	}
	word := "Took back"
	if dryRun {
		word = "Would take back"
	} else if err := a.headAlong(moves); err != nil {
		return err
	}
	if a.json {
		return format.Encode(a.out, map[string]any{"undone": moveOf(entry), "dry_run": dryRun})
	}
	return a.saidMoves(word, "back to", entry, moves)
}

func (a *app) redo(ctx context.Context, dryRun bool) error {
	repo, err := a.open(ctx, !dryRun)
	if err != nil {
		return err
	}
	var entry objects.LogEntry
	if dryRun {
		entry, err = repo.LastUndone(ctx)
	} else {
		entry, err = repo.Redo(ctx, tract.Command("redo"))
	}
	if as[*refs.UnknownError](err) {
		return hinted(err, "tract op log shows what was done and taken back")
	}
	if err != nil {
		return err
	}
	word := "Did again"
	if dryRun {
		word = "Would do again"
	} else if err := a.headAlong(entry.Refs); err != nil {
		return err
	}
	if a.json {
		return format.Encode(a.out, map[string]any{"redone": moveOf(entry), "dry_run": dryRun})
	}
	return a.saidMoves(word, "to", entry, entry.Refs)
}

// saidMoves says how refs moved.
func (a *app) saidMoves(word, to string, entry objects.LogEntry, moves []objects.RefUpdate) error {
	p := a.printer()
	p.Text(fmt.Sprintf("%s %q of %s\n", word, entry.Note.Command, entry.Note.Time.Local().Format(time.DateTime)))
	for _, u := range moves {
		p.Line(fmt.Sprintf("  %s: %s %s %s", refs.Name(u.Name), shortOrGone(u.Old), to, shortOrGone(u.New)))
	}
	return p.Err()
}

// headAlong lets HEAD go along with a branch that gets its other name back.
func (a *app) headAlong(moves []objects.RefUpdate) error {
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
