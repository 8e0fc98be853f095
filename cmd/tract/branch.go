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
	"github.com/tract-vcs/tract/inspect"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/objects"
)

type branchOptions struct {
	list, all, copy, delete, move, describe, dryRun bool
	sort, contains                                  string
	limit                                           int
}

func newBranch(a *app) *cobra.Command {
	o := &branchOptions{sort: "name"}
	cmd := &cobra.Command{
		Use: "branch [NAME [REV]]", Short: "List, create, copy, rename, delete or describe branches",
		Long: `Without a name, list the branches. With a name, create a branch at a revision (default
HEAD). tract undo --any restores a deleted branch.`,
		Example: `  tract branch
  tract branch -l --sort=-time -n 20 'agents/'
  tract branch --all
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
		RunE: func(cmd *cobra.Command, args []string) error { return a.branches(cmd.Context(), o, args) },
	}
	f := cmd.Flags()
	f.BoolVarP(&o.list, "list", "l", false, "list branches whose names begin with NAME")
	f.BoolVar(&o.all, "all", false, "list all refs: branches, tags, rescued responses, descriptions, HEAD")
	f.BoolVarP(&o.copy, "copy", "c", false, "copy a branch: [OLD] NEW")
	f.BoolVarP(&o.move, "move", "m", false, "rename a branch: [OLD] NEW")
	f.BoolVarP(&o.delete, "delete", "d", false, "delete branches")
	f.BoolVar(&o.describe, "describe", false, "set the description of a branch: [NAME] TEXT")
	f.BoolVar(&o.dryRun, "dry-run", false, "only report what would be deleted")
	f.StringVar(&o.contains, "contains", "", "list the branches that contain this commit")
	a.choiceFlag(cmd, &o.sort, "sort", "order: name, or -time (most recently moved first)", "name", "-time")
	limitFlag(cmd, &o.limit, "list at most this many")
	cmd.MarkFlagsMutuallyExclusive("list", "copy", "move", "delete", "describe")
	cmd.MarkFlagsMutuallyExclusive("all", "contains", "copy", "move", "delete", "describe")
	cmd.MarkFlagsMutuallyExclusive("contains", "copy", "move", "delete", "describe")
	cmd.ValidArgsFunction = a.completeBranches
	a.completeFlag(cmd, "contains", a.completeRevisions)
	return cmd
}

func (a *app) branches(ctx context.Context, o *branchOptions, args []string) error {
	if (o.copy || o.move || o.delete || o.describe) && len(args) == 0 {
		return usageError("a branch name is required")
	}
	switch {
	case o.delete:
		return a.deleteBranches(ctx, o, args)
	case o.describe:
		return a.setBranchDescription(ctx, args[:len(args)-1], args[len(args)-1])
	case o.copy || o.move:
		return a.copyOrRenameBranch(ctx, o.copy, args)
	case o.list || o.all || o.contains != "" || len(args) == 0:
		return a.listBranches(ctx, o, args)
	}
	rev := "HEAD"
	if len(args) == 2 {
		rev = args[1]
	}
	return a.createAndPrintBranch(ctx, args[0], rev)
}

// createAndPrintBranch creates a branch at a revision and prints it.
func (a *app) createAndPrintBranch(ctx context.Context, name, rev string) error {
	at, err := a.createBranch(ctx, name, rev, "branch")
	if err != nil {
		return err
	}
	return a.printRef("branch", "made", name, at)
}

// createBranch creates a branch at a revision and returns the commit.
func (a *app) createBranch(ctx context.Context, name, rev, command string) (at objects.ID, err error) {
	if err := checkName("branch", name); err != nil {
		return at, err
	}
	repo, err := a.open(ctx, true)
	if err != nil {
		return at, err
	}
	if a.branch == name { // TRACT_BRANCH names the branch that is made here
		a.branch = ""
	}
	if at, err = a.resolve(ctx, rev); err != nil {
		return at, err
	}
	b := repo.Branch(name)
	if err := checkBranchIsNew(ctx, b); err != nil {
		return at, err
	}
	_, err = b.Fork(tract.AsOperation(ctx, command), name, at.String())
	return at, withBranchExistsHint(err)
}

// checkBranchIsNew refuses an existing branch, as git does, even at the same commit.
func checkBranchIsNew(ctx context.Context, b *tract.Branch) error {
	tip, err := b.Tip(ctx)
	if err == nil && !tip.IsZero() {
		err = withBranchExistsHint(fmt.Errorf("branch %q: %w", b.Name(), objects.ErrExists))
	}
	return err
}

// checkName returns an error for a name that a branch or a tag cannot have.
func checkName(what, name string) error {
	err := refs.Check(name)
	if err == nil {
		return nil
	}
	hint := "such as try-2 or agents/planner"
	if bad := (*refs.NameError)(nil); errors.As(err, &bad) && bad.Hint() != "" {
		hint = bad.Hint()
	}
	return &failure{code: codeUsage, kind: "usage", hint: hint, cause: fmt.Errorf("%s %w", what, err)}
}

// withBranchExistsHint adds a hint to the error for a branch that exists; other errors stay as they
// are.
func withBranchExistsHint(err error) error {
	if errors.Is(err, objects.ErrExists) {
		return withHint(err, "choose another name, or delete the branch with tract branch -d")
	}
	return err
}

func (a *app) listBranches(ctx context.Context, o *branchOptions, args []string) error {
	if _, err := a.open(ctx, false); err != nil {
		return err
	}
	h, err := a.head()
	if err != nil {
		return err
	}
	prefix := ""
	if len(args) > 0 {
		prefix = strings.TrimRight(args[0], "*")
	}
	list, err := a.refsToList(ctx, o, prefix)
	if err != nil {
		return err
	}
	rows := []branchJSON{}
	if o.all && prefix == "" {
		row, err := a.headRow(ctx, h)
		if err != nil {
			return err
		}
		rows = append(rows, row)
	}
	for _, ref := range list {
		r, err := a.branchRow(ctx, ref)
		if err != nil {
			return err
		}
		r.Current = r.Ref == refs.Heads+h.branch
		rows = append(rows, r)
	}
	if a.json {
		return format.Encode(a.out, rows)
	}
	out := a.printer()
	var table [][]string
	for _, r := range rows {
		mark, name := " ", r.Name
		if r.Current {
			mark, name = out.Accent("*"), out.Accent(format.Line(name))
		}
		updated := ""
		if r.Updated != nil {
			updated = r.Updated.Local().Format(time.DateTime)
		}
		table = append(table, []string{mark, name, shortOrDashes(r.Target), updated, firstNonEmpty(r.Description, r.line, r.Branch)})
	}
	out.Table(table)
	return out.Err()
}

// branchJSON is a branch in a list, or another ref.
type branchJSON struct {
	Name        string     `json:"name"`
	Ref         string     `json:"ref"`
	Target      objects.ID `json:"target,omitzero"`
	Current     bool       `json:"current,omitempty"`
	Branch      string     `json:"branch,omitempty"` // that HEAD is on
	Updated     *time.Time `json:"updated,omitempty"`
	Commits     uint64     `json:"commits,omitempty"`
	Summary     string     `json:"summary,omitempty"`
	Description string     `json:"description,omitempty"`

	line string // the summary, for people
}

func (a *app) headRow(ctx context.Context, h head) (r branchJSON, err error) {
	r = branchJSON{Name: "HEAD", Ref: "HEAD", Branch: h.branch, Target: h.commit}
	if h.branch != "" {
		r.Target, err = a.repo.Branch(h.branch).Tip(ctx)
	}
	return r, err
}

func (a *app) branchRow(ctx context.Context, ref objects.Ref) (r branchJSON, err error) {
	updated := ref.Updated.UTC()
	r = branchJSON{Name: shortRef(ref.Name), Ref: ref.Name, Target: ref.Target, Updated: &updated}
	if strings.HasPrefix(ref.Name, refs.Describe) { // whose target is no commit
		return r, nil
	}
	c, err := a.repo.Show(ctx, ref.Target.String())
	if err := a.damage.collectDamage(err); err != nil {
		return r, err
	}
	r.Commits, r.Summary, r.line = c.Depth+1, format.SummaryJSON(c, 0), format.SummaryOf(c, 0)
	if name, ok := strings.CutPrefix(ref.Name, refs.Heads); ok {
		r.Description, err = a.branchDescription(ctx, name)
	}
	return r, err
}

// branchDescription returns the description that tract branch --describe has set; empty if none is
// set.
func (a *app) branchDescription(ctx context.Context, branch string) (description string, err error) {
	for info, err := range a.repo.Refs(ctx, tract.RefQuery{Prefix: branch, Limit: 1, Descriptions: true}) {
		if err != nil || info.Name == branch {
			return info.Description, err
		}
	}
	return "", nil
}

// shortRef returns the name of a ref in a list: without refs/heads/ or refs/.
func shortRef(full string) string {
	return strings.TrimPrefix(strings.TrimPrefix(full, refs.Heads), "refs/")
}

// refsToList returns the refs that the flags select, of those whose names begin with prefix.
func (a *app) refsToList(ctx context.Context, o *branchOptions, prefix string) ([]objects.Ref, error) {
	q := objects.RefQuery{Prefix: refs.Heads + prefix, Newest: o.sort == "-time"}
	keep := func(objects.Ref) bool { return true }
	switch {
	case o.all:
		q.Prefix = ""
		keep = func(ref objects.Ref) bool {
			return strings.HasPrefix(ref.Name, prefix) || strings.HasPrefix(shortRef(ref.Name), prefix)
		}
	case o.contains != "":
		id, err := a.resolve(ctx, o.contains)
		if err != nil {
			return nil, err
		}
		with, err := inspect.Containing(ctx, a.repo, id.String())
		if err != nil {
			return nil, err
		}
		has := map[string]bool{}
		for _, info := range with {
			has[refs.Heads+info.Name] = true
		}
		keep = func(ref objects.Ref) bool { return has[ref.Name] }
	default:
		q.Limit = o.limit
	}
	list, err := a.repo.Store().Refs(ctx, q)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(ref objects.Ref) bool { return !keep(ref) })
	if o.limit > 0 {
		list = list[:min(o.limit, len(list))]
	}
	return list, nil
}

func (a *app) deleteBranches(ctx context.Context, o *branchOptions, names []string) error {
	h, err := a.head()
	if err != nil {
		return err
	}
	if h.branch != "" && slices.Contains(names, h.branch) {
		return withHint(errors.New("delete branch "+h.branch+": HEAD is on it"), "tract switch to another branch first")
	}
	d := &refDeletion{
		folder: refs.Heads, member: "branch", command: "branch -d", verb: "delete", past: "deleted", lineFormat: "%s branch %s (at %s)",
		names: names, dryRun: o.dryRun,
	}
	n, err := d.run(ctx, a)
	switch {
	case err != nil || o.dryRun:
		return err
	case n == 1:
		a.info("its commits stay; tract undo --any restores it")
	default:
		a.info("their commits stay; tract undo --any restores them")
	}
	return nil
}

// setBranchDescription sets the description of the named branch or, without a name, of the current
// one, and prints it.
func (a *app) setBranchDescription(ctx context.Context, names []string, description string) error {
	repo, err := a.open(ctx, true)
	if err != nil {
		return err
	}
	name, err := a.branchOfFlagOrHead(ctx)
	if err != nil {
		return err
	}
	if len(names) > 0 {
		name = names[0]
	}
	b := repo.Branch(name)
	tip, err := b.Tip(ctx)
	if err != nil {
		return err
	}
	if tip.IsZero() {
		return refs.None(refs.Heads + name)
	}
	if err := b.Describe(tract.AsOperation(ctx, "branch --describe"), description); err != nil {
		return err
	}
	return a.printRef("branch", "described", name, tip)
}

// copyOrRenameBranch copies or renames the branch that the first of two arguments names, or that of HEAD. The last
// argument is the new name.
func (a *app) copyOrRenameBranch(ctx context.Context, isCopy bool, args []string) error {
	repo, err := a.open(ctx, true)
	if err != nil {
		return err
	}
	h, err := a.head()
	if err != nil {
		return err
	}
	from, to := h.branch, args[len(args)-1]
	if len(args) == 2 {
		from = args[0]
	}
	if err := checkName("branch", to); err != nil {
		return err
	}
	switch {
	case from == "" && isCopy:
		return withHint(errors.New("copy branch: HEAD is detached"), "tract branch -c OLD NEW")
	case from == "":
		return withHint(errors.New("rename branch: HEAD is detached"), "tract branch -m OLD NEW")
	case isCopy:
		return a.createAndPrintCopy(ctx, repo.Branch(from), to)
	}
	return a.renameBranch(ctx, repo.Branch(from), to, from == h.branch)
}

// createAndPrintCopy creates a branch at the tip of another one.
func (a *app) createAndPrintCopy(ctx context.Context, from *tract.Branch, to string) error {
	tip, err := from.Tip(ctx)
	if err != nil {
		return err
	}
	if tip.IsZero() {
		return refs.None(refs.Heads + from.Name())
	}
	return a.createAndPrintBranch(ctx, to, refs.Heads+from.Name())
}

// renameBranch renames a branch. If HEAD is on it, HEAD follows.
func (a *app) renameBranch(ctx context.Context, old *tract.Branch, to string, headIsOnIt bool) error {
	tip, err := old.Tip(ctx)
	if err != nil {
		return err
	}
	if err := checkBranchIsNew(ctx, a.repo.Branch(to)); err != nil {
		return err
	}
	if _, err := old.Rename(tract.AsOperation(ctx, "branch -m"), to); err != nil {
		return withBranchExistsHint(err)
	}
	if headIsOnIt {
		if err := a.setHead(head{branch: to}); err != nil {
			return err
		}
	}
	return a.printRef("branch", "renamed", old.Name()+" to "+to, tip)
}
