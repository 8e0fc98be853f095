package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/objects"
)

type switchOptions struct{ create, orphan string }

func newSwitch(a *app) *cobra.Command {
	o := &switchOptions{}
	cmd := &cobra.Command{
		Use: "switch BRANCH|REV | -c NAME [REV] | --orphan NAME", Aliases: []string{"checkout"}, Short: "Move HEAD to a branch or a commit",
		Long: `Move HEAD to a branch, or to a single commit to look at it. At a single commit, nothing can
be added until you create a branch. -c (or -b, as in git checkout) first creates the branch
at a revision (default HEAD); --orphan starts an empty conversation. checkout is an alias of
switch.`,
		Example: `  tract switch try-2
  tract switch 3fa2c1d
  tract switch -c try-3 'toolu_01^{message}~1'
  tract switch --orphan fresh`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.switchTo(cmd, o, args) },
	}
	cmd.Flags().StringVarP(&o.create, "create", "c", "", "create a branch and move HEAD to it")
	cmd.Flags().StringVar(&o.orphan, "orphan", "", "move HEAD to a new, empty branch")
	cmd.MarkFlagsMutuallyExclusive("create", "orphan")
	return cmd
}

func (a *app) switchTo(cmd *cobra.Command, o *switchOptions, args []string) error {
	ctx := cmd.Context()
	if cmd.Flags().Changed("branch") {
		if o.create != "" || o.orphan != "" {
			return usageError("-b creates a branch as -c does: use one of -b, -c and --orphan")
		}
		o.create, a.branch = a.branch, ""
	}
	switch {
	case o.create != "":
		return a.switchToNew(ctx, o.create, revOrHead(args))
	case o.orphan != "":
		return a.switchToOrphan(ctx, o.orphan)
	case len(args) == 0:
		return usageError("a branch or a revision is required")
	}
	return a.switchToBranchOrCommit(ctx, args[0])
}

// switchToBranchOrCommit moves HEAD to the branch with the name rev, if it exists, else to the commit
// of the revision rev.
func (a *app) switchToBranchOrCommit(ctx context.Context, rev string) error {
	repo, err := a.open(ctx, false)
	if err != nil {
		return err
	}
	if refs.Check(rev) == nil {
		tip, err := repo.Branch(rev).Tip(ctx)
		if err != nil {
			return err
		}
		if h, err := a.head(); !tip.IsZero() || err == nil && h.branch == rev {
			return a.setHeadAndPrint(head{branch: rev}, tip)
		}
	}
	at, err := a.resolve(ctx, rev)
	if unknown := (*refs.UnknownError)(nil); errors.As(err, &unknown) && unknown.Nearest == "" && refs.Check(rev) == nil {
		return withHint(err, "tract switch -c %s creates a branch, tract branch lists branches", shellQuote(rev))
	}
	if err != nil {
		return err
	}
	return a.setHeadAndPrint(head{commit: at}, at)
}

func (a *app) setHeadAndPrint(h head, tip objects.ID) error {
	if err := a.setHead(h); err != nil {
		return err
	}
	return a.printHead(h, tip)
}

func (a *app) switchToNew(ctx context.Context, name, rev string) error {
	at, err := a.createBranch(ctx, name, rev, "switch -c")
	if err != nil {
		return err
	}
	return a.setHeadAndPrint(head{branch: name}, at)
}

func (a *app) switchToOrphan(ctx context.Context, name string) error {
	if err := a.setHeadToEmptyBranch(ctx, "switch --orphan", name, false); err != nil {
		return err
	}
	return a.printHead(head{branch: name}, objects.ID{})
}

// setHeadToEmptyBranch moves HEAD to a branch without commits. createStore creates the personal
// store if needed.
func (a *app) setHeadToEmptyBranch(ctx context.Context, operation, name string, createStore bool) error {
	if err := checkName("branch", name); err != nil {
		return err
	}
	repo, err := a.open(ctx, createStore)
	if err != nil {
		return err
	}
	tip, err := repo.Branch(name).Tip(ctx)
	if err != nil {
		return err
	}
	if !tip.IsZero() {
		return withBranchExistsHint(fmt.Errorf("%s: branch %q: %w", operation, name, objects.ErrExists))
	}
	return a.setHead(head{branch: name})
}

func (a *app) printHead(h head, at objects.ID) error {
	if a.json {
		v := map[string]any{"head": at}
		if h.branch != "" {
			v["branch"] = h.branch
		}
		return format.Encode(a.out, v)
	}
	p := a.printer()
	switch {
	case h.branch == "":
		p.Text("HEAD is detached at " + at.Short() + "\n")
		a.info("nothing can be added here; tract switch -c NAME creates a branch")
	case at.IsZero():
		p.Line("HEAD is on branch " + h.branch + ", which has no commits yet")
	default:
		p.Line("HEAD is on branch " + h.branch + " (at " + at.Short() + ")")
	}
	return p.Err()
}
