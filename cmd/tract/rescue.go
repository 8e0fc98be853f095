package main

import (
	"context"
	"errors"
	"path"
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

func newRescue(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "rescue", Short: "List and use responses that could not be committed",
		Long: `A response is not lost if it breaks off, or if its branch moved in the meantime: tract keeps
it under its own name. List these responses, show them, commit them to a branch, or drop
them from the list.`,
		Example: `  tract rescue list
  tract rescue show main/20261121T101500.000Z
  tract rescue take main/20261121T101500.000Z --branch late-answer --new`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.rescueList(cmd.Context()) },
	}
	dryRun, here := false, false
	list := &cobra.Command{
		Use: "list", Short: "List kept responses", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.rescueList(cmd.Context()) },
	}
	show := &cobra.Command{
		Use: "show NAME", Short: "Show a kept response", Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeFirst(rescueNames),
		RunE: func(cmd *cobra.Command, args []string) error { return a.rescueShow(cmd.Context(), args[0]) },
	}
	take := &cobra.Command{
		Use: "take NAME", Short: "Commit a kept response to a branch",
		Long: `Commit a kept response to the current branch, or to the branch that --branch names, and
drop it from the list. The branch must still be at the commit that the response answers.
Otherwise nothing is changed and the exit code is 4; choose one of these flags then:

  --branch NAME --new  creates a branch that ends in the response, right after the commit
                       that it answers
  --here               commits it at the end of the branch as it is now

tract undo undoes the commit.`,
		Example: `  tract rescue take main/20261121T101500.000Z
  tract rescue take main/20261121T101500.000Z --branch late-answer --new
  tract rescue take main/20261121T101500.000Z --here`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeFirst(rescueNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.from != "" {
				return usageError("--from: a response follows the commit that it answers; --branch NAME --new creates a branch there")
			}
			return a.takeRescueToCurrent(cmd.Context(), args[0], here)
		},
	}
	take.Flags().BoolVar(&here, "here", false, "commit it at the end of the branch as it is now")
	drop := &cobra.Command{
		Use: "drop NAME...", Short: "Drop kept responses from the list; their commits stay", Args: cobra.MinimumNArgs(1), ValidArgsFunction: a.completeFirst(rescueNames),
		RunE: func(cmd *cobra.Command, args []string) error { return a.rescueDrop(cmd.Context(), args, dryRun) },
	}
	drop.Flags().BoolVar(&dryRun, "dry-run", false, "only report what would be dropped")
	cmd.AddCommand(list, show, take, drop)
	return cmd
}

type rescueJSON struct {
	Name   string     `json:"name"`
	Branch string     `json:"branch"`
	Target objects.ID `json:"target"`
	Time   time.Time  `json:"time"`
	Blocks int        `json:"blocks"`
	Text   string     `json:"summary,omitempty"`
}

func (a *app) rescueList(ctx context.Context) error {
	repo, err := a.open(ctx, false)
	if err != nil {
		return err
	}
	rescues, err := repo.Rescues(ctx)
	if err != nil {
		return err
	}
	list, rows := []rescueJSON{}, [][]string{}
	for _, r := range rescues {
		if err := a.damage.collectDamage(r.Damage); err != nil {
			return err
		}
		last := r.Commits[len(r.Commits)-1]
		list = append(list, rescueJSON{r.Name, r.Branch, r.Tip, r.Time.UTC(), len(r.Commits), format.SummaryJSON(last, 0)})
		rows = append(rows, []string{r.Name, r.Tip.Short(), strconv.Itoa(len(r.Commits)) + " blocks", format.SummaryOf(last, 0)})
	}
	return a.emitRows(list, rows)
}

func (a *app) rescueShow(ctx context.Context, name string) error {
	repo, err := a.open(ctx, false)
	if err != nil {
		return err
	}
	rescues, err := repo.Rescues(ctx)
	if err != nil {
		return err
	}
	name = shortRescueName(name)
	at := slices.IndexFunc(rescues, func(r tract.Rescue) bool { return r.Name == name })
	if at < 0 {
		return withRescueListHint(refs.None(refs.Rescued + name))
	}
	if err := rescues[at].Damage; err != nil {
		return err
	}
	reply := mapSlice(rescues[at].Commits, plainCommit)
	return a.emitPage(mapSlice(reply, format.ShowJSON), func(p *format.Printer) {
		for _, c := range reply {
			p.Show(c)
		}
	})
}

// shortRescueName returns the name of a kept response that is given as a ref.
func shortRescueName(ref string) string {
	return strings.TrimPrefix(strings.TrimPrefix(ref, "refs/"), "rescued/")
}

// withRescueListHint adds the hint to list the names to the error for an unknown name of a kept response.
func withRescueListHint(err error) error {
	if isType[*refs.UnknownError](err) {
		return withHint(err, "tract rescue list shows their names")
	}
	return err
}

// takeRescueToCurrent commits a kept response to the current branch: at the commit that it answers or, if
// evenIfMoved is true, wherever the branch is.
func (a *app) takeRescueToCurrent(ctx context.Context, name string, evenIfMoved bool) error {
	b, err := a.currentOrNewBranch(ctx)
	if err != nil {
		return err
	}
	ids, err := b.TakeRescue(ctx, name, tract.RescueOptions{Anywhere: evenIfMoved})
	if misplaced := (*tract.MisplacedError)(nil); errors.As(err, &misplaced) {
		return a.withOwnBranchHint(ctx, misplaced, err)
	}
	if err != nil {
		return withRescueListHint(err)
	}
	return a.printAppended(ctx, b, ids...)
}

// withOwnBranchHint adds a hint with the response's own branch, if that branch is still at the
// answered commit.
func (a *app) withOwnBranchHint(ctx context.Context, misplaced *tract.MisplacedError, err error) error {
	name := strings.TrimPrefix(misplaced.Rescued, refs.Rescued)
	own := a.repo.Branch(path.Dir(name))
	if tip, tipErr := own.Tip(ctx); tipErr != nil || tip != misplaced.Answered {
		return err
	}
	return withHint(err, "tract rescue take %s --branch %s commits it where it was asked; --here at the end of the branch as it is now", shellQuote(name), shellQuote(own.Name()))
}

func (a *app) rescueDrop(ctx context.Context, names []string, dryRun bool) error {
	d := &refDeletion{
		folder: refs.Rescued, member: "name", command: "rescue drop", verb: "drop", past: "dropped",
		lineFormat: "%s rescued response %s (its commits stay, at %s)", names: mapSlice(names, shortRescueName), dryRun: dryRun,
	}
	_, err := d.run(ctx, a)
	return withRescueListHint(err)
}
