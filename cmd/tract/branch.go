package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/refs"
)

var _ = register("branch", newBranch)

type branchOptions struct {
	list, copy, delete, move, describe, dryRun bool
	sort, contains                             string
	limit                                      int
}

func newBranch(a *app) *cobra.Command {
	o := &branchOptions{}
	cmd := &cobra.Command{
		Use: "branch [NAME [REV]]", Short: "List, make, copy, rename, delete or describe branches", GroupID: groupShape,
		Long: `Without a name, list the branches; with one, make a branch at a revision (HEAD).
A deleted branch is brought back with tract undo --any.`,
		Example: `  tract branch
  tract branch -l --sort=-time -n 20 'agents/'
  tract branch --contains toolu_01
  tract branch try-2 'HEAD^{turn}'
  tract branch -m old new
  tract branch -c main copy-of-main
  tract branch -d try-2 try-3
  tract branch --describe try-2 "asks the larger model"`,
		Args: func(cmd *cobra.Command, args []string) error {
			if o.delete {
				return nil
			}
			return cobra.MaximumNArgs(2)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.branches(cmd, o, args) },
	}
	f := cmd.Flags()
	f.BoolVarP(&o.list, "list", "l", false, "list branches; NAME is how they begin")
	f.BoolVarP(&o.copy, "copy", "c", false, "copy a branch: [OLD] NEW")
	f.BoolVarP(&o.move, "move", "m", false, "rename a branch: [OLD] NEW")
	f.BoolVarP(&o.delete, "delete", "d", false, "delete branches")
	f.BoolVar(&o.describe, "describe", false, "say what a branch is about: [NAME] TEXT")
	f.BoolVar(&o.dryRun, "dry-run", false, "only say what would be deleted")
	f.StringVar(&o.contains, "contains", "", "list the branches that have a commit")
	f.StringVar(&o.sort, "sort", "name", "name, or -time: the last moved first")
	f.IntVarP(&o.limit, "max-count", "n", 0, "list so many")
	cmd.MarkFlagsMutuallyExclusive("list", "copy", "move", "delete", "describe")
	cmd.MarkFlagsMutuallyExclusive("contains", "copy", "move", "delete", "describe")
	cmd.ValidArgsFunction = a.completeBranches
	a.completeFlag(cmd, "contains", a.completeRevisions)
	return cmd
}

func (a *app) branches(cmd *cobra.Command, o *branchOptions, args []string) error {
	ctx := cmd.Context()
	if (o.copy || o.move || o.delete || o.describe) && len(args) == 0 {
		return usage(cmd, "want the name of a branch")
	}
	switch {
	case o.delete:
		return a.deleteBranches(ctx, o, args)
	case o.describe:
		return a.describeBranch(ctx, args)
	case o.copy || o.move:
		return a.renameBranch(ctx, o, args)
	case o.list || o.contains != "" || len(args) == 0:
		return a.listBranches(cmd, o, args)
	}
	rev := "HEAD"
	if len(args) == 2 {
		rev = args[1]
	}
	return a.makeBranch(ctx, args[0], rev)
}

// makeBranch makes a branch at a revision, and says so.
func (a *app) makeBranch(ctx context.Context, name, rev string) error {
	at, err := a.forkAt(ctx, name, rev, "branch")
	if err != nil {
		return err
	}
	return a.saidBranch("made", name, at)
}

// forkAt makes a branch at a revision, for a command, and tells which commit that is.
func (a *app) forkAt(ctx context.Context, name, rev, command string) (at objects.ID, err error) {
	if err := checkName("branch", name); err != nil {
		return at, err
	}
	repo, err := a.open(ctx, true)
	if err != nil {
		return at, err
	}
	if at, err = a.resolve(ctx, rev); err != nil {
		return at, err
	}
	return at, fork(ctx, repo.Branch(name), at, command)
}

// fork makes a branch.
func fork(ctx context.Context, b *tract.Branch, at objects.ID, command string) error {
	if err := free(ctx, b); err != nil {
		return err
	}
	_, err := b.Fork(ctx, b.Name(), at.String(), tract.Command(command))
	return branchError(err)
}

// free refuses a name that is taken, as git does, even where the branch is at
// the same commit.
func free(ctx context.Context, b *tract.Branch) error {
	tip, err := b.Tip(ctx)
	if err == nil && !tip.IsZero() {
		err = branchError(fmt.Errorf("branch %q: %w", b.Name(), objects.ErrExists))
	}
	return err
}

// checkName refuses a name that no branch and no tag can have.
func checkName(what, name string) error {
	err := refs.Check(name)
	if err == nil {
		return nil
	}
	return &failure{code: codeUsage, kind: "usage", hint: "such as try-2 or agents/planner", cause: fmt.Errorf("%s %w", what, err)}
}

func branchError(err error) error {
	if errors.Is(err, objects.ErrExists) {
		return hinted(err, "choose another name; tract branch -d takes the old one away")
	}
	return err
}

// saidBranch says what became of a branch.
func (a *app) saidBranch(what, name string, at objects.ID) error {
	if a.json {
		return format.Encode(a.out, map[string]any{"branch": name, "target": at, "done": what})
	}
	p := a.printer()
	p.Line(strings.ToUpper(what[:1]) + what[1:] + " branch " + name + " (at " + at.Short() + ")")
	return p.Err()
}

func (a *app) listBranches(cmd *cobra.Command, o *branchOptions, args []string) error {
	ctx := cmd.Context()
	if o.limit < 0 {
		return usage(cmd, "-n %d: want a number of branches", o.limit)
	}
	if o.sort != "name" && o.sort != "-time" {
		return usage(cmd, "--sort %q: want name or -time", o.sort)
	}
	repo, err := a.open(ctx, false)
	if err != nil {
		return err
	}
	h, err := a.head()
	if err != nil {
		return err
	}
	q := refs.Query{Limit: o.limit, Newest: o.sort == "-time"}
	if len(args) > 0 {
		q.Prefix = strings.TrimRight(args[0], "*")
	}
	type row struct {
		Name        string     `json:"name"`
		Target      objects.ID `json:"target"`
		Current     bool       `json:"current,omitempty"`
		Updated     time.Time  `json:"updated"`
		Commits     uint64     `json:"commits"`
		Summary     string     `json:"summary,omitempty"`
		Description string     `json:"description,omitempty"`
	}
	list, err := a.listed(ctx, o, q)
	if err != nil {
		return err
	}
	rows := []row{}
	pen := a.printer()
	var table [][]string
	var hurt damage
	for _, info := range list {
		c, err := repo.Show(ctx, info.Tip.String())
		if err := hurt.met(err); err != nil {
			return err
		}
		about, err := repo.Branch(info.Name).Description(ctx)
		if err != nil {
			return err
		}
		r := row{info.Name, info.Tip, info.Name == h.branch, info.Updated.UTC(), c.Depth + 1, format.SummaryJSON(c, 0), about}
		rows = append(rows, r)
		mark, name := " ", r.Name
		if r.Current {
			mark, name = pen.Accent("*"), pen.Accent(format.Line(name))
		}
		table = append(table, []string{mark, name, info.Tip.Short(), info.Updated.Local().Format(time.DateTime), firstOf(about, format.SummaryOf(c, 0))})
	}
	if a.json {
		return hurt.told(format.Encode(a.out, rows))
	}
	pen.Table(table)
	return hurt.told(pen.Err())
}

// listed is the branches to list.
func (a *app) listed(ctx context.Context, o *branchOptions, q refs.Query) ([]refs.Info, error) {
	var has map[string]bool
	limit := q.Limit
	if o.contains != "" {
		id, err := a.resolve(ctx, o.contains)
		if err != nil {
			return nil, err
		}
		with, err := a.repo.Containing(ctx, id.String())
		if err != nil {
			return nil, err
		}
		has, q.Limit = map[string]bool{}, 0
		for _, info := range with {
			has[info.Name] = true
		}
	}
	var list []refs.Info
	for info, err := range a.repo.Branches(ctx, q) {
		if err != nil {
			return nil, err
		}
		if has == nil || has[info.Name] {
			list = append(list, info)
		}
		if limit > 0 && len(list) == limit {
			break
		}
	}
	return list, nil
}

func (a *app) deleteBranches(ctx context.Context, o *branchOptions, names []string) error {
	h, err := a.head()
	if err != nil {
		return err
	}
	if h.branch != "" && slices.Contains(names, h.branch) {
		return hinted(errors.New("delete branch "+h.branch+": HEAD is on it"), "tract switch to another branch first")
	}
	d := &deleting{folder: refs.Heads, names: names, dry: o.dryRun}
	gone, err := d.run(ctx, a, "branch -d")
	if err != nil {
		return err
	}
	what := d.done("delete", "deleted")
	if a.json {
		return a.saidDeleted("branch", what, gone)
	}
	for _, ref := range gone {
		if err := a.saidBranch(what, ref.Name, ref.Tip); err != nil {
			return err
		}
	}
	switch {
	case o.dryRun:
	case len(gone) == 1:
		a.note("its commits stay; tract undo --any brings it back")
	default:
		a.note("their commits stay; tract undo --any brings them back")
	}
	return nil
}

func (a *app) describeBranch(ctx context.Context, args []string) error {
	repo, err := a.open(ctx, true)
	if err != nil {
		return err
	}
	name, err := a.branchName()
	if err != nil {
		return err
	}
	if len(args) == 2 {
		name = args[0]
	}
	b := repo.Branch(name)
	tip, err := b.Tip(ctx)
	if err != nil {
		return err
	}
	if tip.IsZero() {
		return refs.None(refs.Heads + name)
	}
	if err := b.Describe(ctx, args[len(args)-1], tract.Command("branch --describe")); err != nil {
		return err
	}
	return a.saidBranch("described", name, tip)
}

// renameBranch renames or copies a branch. HEAD goes along with its own.
func (a *app) renameBranch(ctx context.Context, o *branchOptions, args []string) error {
	repo, err := a.open(ctx, true)
	if err != nil {
		return err
	}
	h, err := a.head()
	if err != nil {
		return err
	}
	from, to := h.branch, args[len(args)-1]
	if err := checkName("branch", to); err != nil {
		return err
	}
	if len(args) == 2 {
		from = args[0]
	}
	if from == "" {
		return hinted(errors.New("rename branch: HEAD is at a commit"), "tract branch -m OLD NEW")
	}
	old := repo.Branch(from)
	tip, err := old.Tip(ctx)
	if err != nil {
		return err
	}
	if o.copy {
		if tip.IsZero() {
			return refs.None(refs.Heads + from)
		}
		return a.makeBranch(ctx, to, refs.Heads+from)
	}
	if err := free(ctx, repo.Branch(to)); err != nil {
		return err
	}
	if _, err := old.Rename(ctx, to, tract.Command("branch -m")); err != nil {
		return branchError(err)
	}
	if from == h.branch {
		if err := a.setHead(head{branch: to}); err != nil {
			return err
		}
	}
	return a.saidBranch("renamed", from+" to "+to, tip)
}
