package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/refs"
)

type switchOptions struct{ create, orphan string }

func newSwitch(a *app) *cobra.Command {
	o := &switchOptions{}
	cmd := &cobra.Command{
		Use: "switch BRANCH | switch -c NAME [REV] | switch --orphan NAME", Short: "Move HEAD to a branch",
		Long: `Move HEAD to a branch. -c makes the branch first, at a revision (HEAD); --orphan
begins an empty conversation.`,
		Example: `  tract switch try-2
  tract switch -c try-3 'toolu_01^{message}~1'
  tract switch --orphan fresh`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.switchTo(cmd, o, args) },
	}
	cmd.Flags().StringVarP(&o.create, "create", "c", "", "make a branch and go to it")
	cmd.Flags().StringVar(&o.orphan, "orphan", "", "go to a branch that has no commits yet")
	cmd.MarkFlagsMutuallyExclusive("create", "orphan")
	cmd.ValidArgsFunction = a.completeBranches
	return cmd
}

func newCheckout(a *app) *cobra.Command {
	create := ""
	cmd := &cobra.Command{
		Use: "checkout BRANCH|REV | checkout -b NAME [REV]", Short: "Move HEAD to a branch or to a commit",
		Long: `Move HEAD to a branch, or to any commit to look at: there nothing can be added
until you make a branch (tract switch -c NAME).`,
		Example: `  tract checkout main
  tract checkout 3fa2c1d
  tract checkout -b try-3 'HEAD^{turn}'`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("branch") { // here -b makes a branch, as in git
				create, a.branch = a.branch, ""
				return a.switchTo(cmd, &switchOptions{create: create}, args)
			}
			return a.checkout(cmd, args)
		},
	}
	cmd.ValidArgsFunction = a.completeFirstRevision
	return cmd
}

func (a *app) switchTo(cmd *cobra.Command, o *switchOptions, args []string) error {
	ctx := cmd.Context()
	switch {
	case o.create != "":
		return a.switchToNew(ctx, o.create, orHead(args))
	case o.orphan != "":
		return a.switchToOrphan(ctx, o.orphan)
	case len(args) == 0:
		return usage(cmd, "want the name of a branch")
	}
	return a.switchToBranch(ctx, args[0])
}

func (a *app) switchToBranch(ctx context.Context, name string) error {
	repo, err := a.open(ctx, false)
	if err != nil {
		return err
	}
	if name == "-" {
		return errBefore()
	}
	if refs.Check(name) != nil {
		err := &refs.UnknownError{Rev: name, Why: "it is no name of a branch"}
		return hinted(err, "tract branch lists branches; tract checkout goes to a commit")
	}
	tip, err := repo.Branch(name).Tip(ctx)
	if err != nil {
		return err
	}
	if tip.IsZero() {
		if h, err := a.head(); err == nil && h.branch == name {
			return a.wentTo(head{branch: name}, tip)
		}
		return hinted(refs.None(refs.Heads+name), "tract switch -c %s makes it, tract branch lists branches", shellWord(name))
	}
	if err := a.setHead(head{branch: name}); err != nil {
		return err
	}
	return a.wentTo(head{branch: name}, tip)
}

// errBefore answers who wants to go back to where HEAD was, which git writes down: HEAD
// is of one working folder, and has no log.
func errBefore() error {
	err := &refs.UnknownError{Rev: "-", Why: "nothing says where HEAD was before"}
	return hinted(err, "name the branch; tract branch --sort=-time lists what moved last first")
}

func (a *app) switchToNew(ctx context.Context, name, rev string) error {
	at, err := a.forkAt(ctx, name, rev, "switch -c")
	if err != nil {
		return err
	}
	if err := a.setHead(head{branch: name}); err != nil {
		return err
	}
	return a.wentTo(head{branch: name}, at)
}

func (a *app) switchToOrphan(ctx context.Context, name string) error {
	if err := a.goToEmpty(ctx, "switch --orphan", name, false); err != nil {
		return err
	}
	return a.wentTo(head{branch: name}, objects.ID{})
}

// goToEmpty moves HEAD to a branch that has no commits yet. write makes the store
// where a first commit would.
func (a *app) goToEmpty(ctx context.Context, operation, name string, write bool) error {
	if err := checkName("branch", name); err != nil {
		return err
	}
	repo, err := a.open(ctx, write)
	if err != nil {
		return err
	}
	tip, err := repo.Branch(name).Tip(ctx)
	if err != nil {
		return err
	}
	if !tip.IsZero() {
		return branchError(fmt.Errorf("%s: branch %q: %w", operation, name, objects.ErrExists))
	}
	return a.setHead(head{branch: name})
}

// checkout goes to a branch when there is one of that name, else to a commit.
func (a *app) checkout(cmd *cobra.Command, args []string) error {
	ctx := cmd.Context()
	if len(args) == 0 {
		return usage(cmd, "want a branch or a revision")
	}
	repo, err := a.open(ctx, false)
	if err != nil {
		return err
	}
	if args[0] == "-" {
		return errBefore()
	}
	if refs.Check(args[0]) == nil {
		if tip, err := repo.Branch(args[0]).Tip(ctx); err != nil {
			return err
		} else if !tip.IsZero() {
			return a.switchToBranch(ctx, args[0])
		}
	}
	at, err := a.resolve(ctx, args[0])
	if err != nil {
		return err
	}
	if err := a.setHead(head{at: at}); err != nil {
		return err
	}
	return a.wentTo(head{at: at}, at)
}

// wentTo says where HEAD is now.
func (a *app) wentTo(h head, at objects.ID) error {
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
		p.Text("HEAD is at commit " + at.Short() + ", on no branch\n")
		a.note("look around; tract switch -c NAME makes a branch here to add to")
	case at.IsZero():
		p.Line("HEAD is on branch " + h.branch + ", which has no commits yet")
	default:
		p.Line("HEAD is on branch " + h.branch + " (at " + at.Short() + ")")
	}
	return p.Err()
}
