package main

import (
	"context"
	"errors"
	"slices"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/objects"
)

// followStartCommits is how many commits a follower shows before what comes.
const followStartCommits = 10

// follow shows the last commits of a branch, oldest first, and then each as it
// comes, until the person ends it.
func (a *app) follow(ctx context.Context, o *logOptions, keep func(*commit.Commit) bool, args []string) error {
	a.catchSignals()
	branch, err := a.followedBranch(ctx, args)
	if err != nil {
		return err
	}
	tip, err := branch.Tip(ctx)
	if err != nil {
		return err
	}
	var hurt damageLog
	if !tip.IsZero() {
		if err := a.followStart(ctx, o, keep, tip, &hurt); err != nil {
			return err
		}
	}
	for change, err := range branch.Follow(ctx, tip) {
		if ctx.Err() != nil {
			break // ending a follower is no failure
		}
		if err == nil {
			err = a.showChange(ctx, o, keep, change, &hurt)
		}
		if err != nil {
			return err
		}
	}
	return hurt.result(nil)
}

// followedBranch is the branch that is named, or that of HEAD.
func (a *app) followedBranch(ctx context.Context, args []string) (*tract.Branch, error) {
	name, err := a.branchName(ctx)
	if err != nil {
		return nil, err
	}
	if len(args) == 1 && args[0] != "HEAD" && args[0] != "@" {
		name = args[0]
	}
	if name == "" {
		return nil, withHint(errors.New("log --follow: HEAD is at a commit, and only a branch can be followed"), "tract log --follow main")
	}
	if err := refs.Check(name); err != nil {
		return nil, &failure{code: codeUsage, kind: "usage", hint: "log --follow takes the name of a branch", cause: err}
	}
	return a.repo.Branch(name), nil
}

// showChange shows what came with one change of a branch.
func (a *app) showChange(ctx context.Context, o *logOptions, keep func(*commit.Commit) bool, change tract.BranchChange, hurt *damageLog) error {
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
		if err := hurt.record(damaged); err != nil {
			return err
		}
		if !keep(c) {
			continue
		}
		if err := a.showFollowed(o, format.Commit{Commit: c, Level: c.Priority, Damaged: damaged}); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) followStart(ctx context.Context, o *logOptions, keep func(*commit.Commit) bool, tip objects.ID, hurt *damageLog) error {
	before := *o
	if before.limit == 0 {
		before.limit = followStartCommits
	}
	w := &logWalk{repo: a.repo, keep: keep, o: &before}
	defer func() { _ = hurt.record(w.damage.first) }()
	var last []format.Commit
	for c, err := range w.newestFirst(ctx, tip.String()) {
		if err != nil {
			return err
		}
		last = append(last, c)
	}
	for _, c := range slices.Backward(last) {
		if err := a.showFollowed(o, c); err != nil {
			return err
		}
	}
	return nil
}

// showFollowed shows one commit at once; a program gets one line.
func (a *app) showFollowed(o *logOptions, c format.Commit) error {
	if a.json || o.jsonl {
		return format.EncodeLine(a.out, format.CommitJSON(c))
	}
	p := a.screen.shadedPrinter(a.out)
	p.Log(c, o.LogStyle)
	return p.Err()
}
