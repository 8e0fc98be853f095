package main

import (
	"context"
	"errors"
	"slices"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/objects"
)

// followStartCommits is how many of the last commits log --follow prints first.
const followStartCommits = 10

// follow prints the last commits of a branch, oldest first, and then each new one until
// the command is interrupted.
func (a *app) follow(ctx context.Context, o *logOptions, args []string) error {
	a.catchSignals()
	branch, err := a.followedBranch(ctx, args)
	if err != nil {
		return err
	}
	tip, err := branch.Tip(ctx)
	if err != nil {
		return err
	}
	if !tip.IsZero() {
		start := *o
		if start.limit == 0 {
			start.limit = followStartCommits
		}
		w := &logWalk{app: a, o: &start}
		last, err := collectUntilError(w.commitsNewestFirst(ctx, tip.String()))
		for _, c := range slices.Backward(last) {
			if err == nil {
				err = a.printNewCommit(o.LogStyle, o.jsonl, c)
			}
		}
		if err != nil {
			return err
		}
	}
	for change, err := range branch.Follow(ctx, tip) {
		if ctx.Err() != nil {
			break // an interrupt is the normal end
		}
		if err == nil {
			err = a.showChange(ctx, o, change)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// followedBranch returns the branch that the argument names, or the current one.
func (a *app) followedBranch(ctx context.Context, args []string) (*tract.Branch, error) {
	name, err := a.branchOfFlagOrHead(ctx)
	if err != nil {
		return nil, err
	}
	if len(args) == 1 && args[0] != "HEAD" && args[0] != "@" {
		name = args[0]
	}
	if name == "" {
		return nil, withHint(errors.New("log --follow: HEAD is detached; only a branch can be followed"), "tract log --follow main")
	}
	if err := refs.Check(name); err != nil {
		return nil, &failure{code: codeUsage, kind: "usage", hint: "log --follow takes the name of a branch", cause: err}
	}
	return a.repo.Branch(name), nil
}

// showChange prints the commits that one change added to a branch.
func (a *app) showChange(ctx context.Context, o *logOptions, change tract.BranchChange) error {
	ids := change.Added
	switch change.Type {
	case tract.Deleted:
		a.info("branch %s was deleted", change.Branch)
	case tract.Moved:
		a.info("branch %s was moved to %s", change.Branch, change.New.Short())
		ids = []objects.ID{change.New}
	}
	for _, id := range ids {
		c, damaged := a.repo.Show(ctx, id.String())
		if err := a.damage.collectDamage(damaged); err != nil {
			return err
		}
		if !o.matches(c) {
			continue
		}
		if err := a.printNewCommit(o.LogStyle, o.jsonl, format.Commit{Commit: c, Level: c.Priority, Damaged: damaged}); err != nil {
			return err
		}
	}
	return nil
}

// printNewCommit prints one commit at once; as JSON on one line, with --json or jsonl.
func (a *app) printNewCommit(style format.LogStyle, jsonl bool, c format.Commit) error {
	if a.json || jsonl {
		return format.EncodeLine(a.out, format.CommitJSON(c))
	}
	p := a.screen.printerWithShadedReasoning(a.out)
	p.Log(c, style)
	return p.Err()
}
