package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"regexp"
	"slices"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/inspect"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/objects"
)

type logOptions struct {
	format.LogStyle
	commitFilter
	graph, reverse, all, annotations, countTurns, follow, jsonl bool
	reasoning, noReasoning                                      bool
	limit                                                       int

	kind   content.Kind // zero: any
	role   *content.Role
	author *regexp.Regexp
}

func newLog(a *app) *cobra.Command {
	o := &logOptions{}
	cmd := &cobra.Command{
		Use: "log [REV|A..B]", Short: "Show the history, newest first",
		Long: `Show the commits of a revision, newest first. Reasoning is shortened to one line
unless -p is given, and annotations are shown only with --annotations.

The ~3 beside a commit means HEAD~3 or, in the log of main, main~3. The numbers count every
commit, so a number is missing where an annotation is hidden. Each new commit shifts these
numbers; ids never change.`,
		Example: `  tract log --oneline
  tract log -p -n 3
  tract log --kind tool-call --grep weather
  tract log main..try-2
  tract log --follow`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.log(cmd.Context(), o, args) },
	}
	f := cmd.Flags()
	f.BoolVar(&o.Oneline, "oneline", false, "show each commit on one line, with its ~n")
	f.BoolVarP(&o.Patch, "patch", "p", false, "show the whole content")
	f.BoolVar(&o.graph, "graph", false, "draw the graph of commits")
	f.BoolVar(&o.reverse, "reverse", false, "show the oldest commit first")
	f.BoolVar(&o.all, "all", false, "show the commits of all branches and tags")
	f.BoolVar(&o.annotations, "annotations", false, "show annotations too")
	f.BoolVar(&o.countTurns, "turns", false, "count turns, not commits, for -n")
	f.BoolVar(&o.follow, "follow", false, "keep running and print new commits")
	f.BoolVar(&o.jsonl, "jsonl", false, "write one JSON value per line")
	f.BoolVar(&o.reasoning, "reasoning", false, "show reasoning even if the settings hide it")
	f.BoolVar(&o.noReasoning, "no-reasoning", false, "hide reasoning")
	limitFlag(cmd, &o.limit, "show at most this many commits")
	f.Func("kind", "only this `kind` of block", func(text string) (err error) {
		o.kind, err = content.ParseKind(text)
		return err
	})
	f.Func("role", "only this `role`", func(text string) error {
		role, err := content.ParseRole(text)
		o.role = &role
		return err
	})
	patternFlag(cmd, &o.author, "author", "only commits whose author matches this `regexp`")
	o.addFlags(cmd, "commits")
	cmd.MarkFlagsMutuallyExclusive("reasoning", "no-reasoning")
	cmd.MarkFlagsMutuallyExclusive("graph", "reverse")
	a.completeFlag(cmd, "kind", completeWords(kindNames()...))
	return cmd
}

// matches reports whether the flags select a commit.
func (o *logOptions) matches(c *commit.Commit) bool {
	switch {
	case o.kind != 0 && (c.Kind != o.kind || c.Op == commit.Annotate), o.role != nil && c.Role != *o.role,
		o.author != nil && !o.author.MatchString(c.Author),
		!o.annotations && c.Op == commit.Annotate, o.noReasoning && c.Kind == content.KindReasoning:
		return false
	}
	return o.commitFilter.matches(c)
}

func (a *app) log(ctx context.Context, o *logOptions, args []string) error {
	repo, err := a.open(ctx, false)
	if err != nil {
		return err
	}
	if !a.json && !o.jsonl && !o.reasoning && !a.loaded.Bool("reasoning.include_in_response") {
		o.noReasoning = true
	}
	if o.follow {
		return a.follow(ctx, o, args)
	}
	w := &logWalk{app: a, o: o}
	spec := ""
	if !o.all {
		if spec, err = a.resolveRange(ctx, revOrHead(args)); err != nil {
			return err
		}
		w.revs = newRevCounter(revOrHead(args))
	}
	if w.refs, err = a.decorations(ctx, repo); err != nil {
		return err
	}
	if w.agents, err = inspect.StartedAgents(ctx, repo, maxDecorated); err != nil {
		return err
	}
	if a.json || o.jsonl {
		if err := w.loadDecisions(ctx, spec); err != nil {
			return err
		}
		return writeList(a, o.jsonl, w.commits(ctx, spec), format.CommitJSON)
	}
	return a.writePaged(func(out io.Writer, options format.Options) error {
		g := newGraph(o.graph, out, options)
		w.onHidden = g.skipCommit
		for c, err := range w.commits(ctx, spec) {
			if err != nil {
				return err
			}
			g.printCommit(c, o.LogStyle)
			if err := g.p.Err(); err != nil {
				return err
			}
		}
		return nil
	})
}

// logWalk yields the commits of a log with their decorations.
type logWalk struct {
	app      *app
	o        *logOptions
	revs     *revCounter                     // numbers the rows; nil: no numbers
	onHidden func(*commit.Commit)            // called for each commit that is not shown; may be nil
	refs     map[objects.ID][]string         // names of commits
	agents   map[objects.ID][]string         // branches of the sub-agents that a call started
	entries  map[objects.ID]*compile.Entry   // where turns and levels are counted
	changes  map[objects.ID][]*commit.Commit // edits and annotations, by the commit that they change
}

// loadDecisions computes the turn and priority of every commit below the heads, by a walk to the
// root.
func (w *logWalk) loadDecisions(ctx context.Context, spec string) error {
	heads, err := branchAndTagTips(ctx, w.app.repo)
	if !w.o.all {
		heads = make([]objects.ID, 1)
		_, heads[0], err = refs.Resolver{Store: w.app.repo.Store()}.Range(ctx, spec)
	}
	if err != nil {
		return err
	}
	w.entries = map[objects.ID]*compile.Entry{}
	for _, head := range heads {
		if w.entries[head] != nil {
			continue
		}
		entries, err := compile.Decisions(ctx, w.app.repo.Store(), head, compile.Options{Policy: w.app.loaded.Policy()})
		if err != nil && !errors.Is(err, objects.ErrCorrupt) { // the walk meets it again, and tells
			return err
		}
		for i := range entries {
			if id := entries[i].ID; w.entries[id] == nil {
				w.entries[id] = &entries[i]
			}
		}
	}
	return nil
}

// commits yields the selected commits, up to the limit.
func (w *logWalk) commits(ctx context.Context, spec string) iter.Seq2[format.Commit, error] {
	if !w.o.reverse {
		return w.commitsNewestFirst(ctx, spec)
	}
	return func(yield func(format.Commit, error) bool) {
		all, err := collectUntilError(w.commitsNewestFirst(ctx, spec))
		if err != nil {
			yield(format.Commit{}, err)
			return
		}
		for _, c := range slices.Backward(all) {
			if !yield(c, nil) {
				return
			}
		}
	}
}

func (w *logWalk) commitsNewestFirst(ctx context.Context, spec string) iter.Seq2[format.Commit, error] {
	w.changes = map[objects.ID][]*commit.Commit{}
	return func(yield func(format.Commit, error) bool) {
		shown := 0
		for c, err := range w.unfilteredCommits(ctx, spec) {
			damaged := err
			if err := w.app.damage.collectDamage(err); err != nil {
				yield(format.Commit{}, err)
				return
			}
			rev := w.revs.nextRev(c)
			w.recordChange(c)
			matches := w.o.matches(c)
			if !matches && w.onHidden != nil {
				w.onHidden(c)
			}
			if matches && !yield(w.decorate(c, rev, damaged), nil) {
				return
			}
			if w.o.countTurns && c.BeginsTurn() || !w.o.countTurns && matches {
				shown++
			}
			if w.o.limit > 0 && shown >= w.o.limit {
				return
			}
		}
	}
}

// unfilteredCommits yields the commits of which the flags select those that are shown.
func (w *logWalk) unfilteredCommits(ctx context.Context, spec string) iter.Seq2[*commit.Commit, error] {
	if !w.o.all {
		return w.app.repo.Log(ctx, spec, tract.LogOptions{})
	}
	tips, err := branchAndTagTips(ctx, w.app.repo)
	if err != nil {
		return func(yield func(*commit.Commit, error) bool) { yield(nil, err) }
	}
	return w.app.repo.Log(ctx, "", tract.LogOptions{Tips: tips})
}

// recordChange records an edit or annotation for the commit that it changes, which the walk has not
// reached yet.
func (w *logWalk) recordChange(c *commit.Commit) {
	if c.Op != commit.Append {
		w.changes[c.Target] = append([]*commit.Commit{c}, w.changes[c.Target]...)
	}
}

// decorate returns a commit with its ~n, turn, priority, refs and changes.
func (w *logWalk) decorate(c *commit.Commit, rev string, damaged error) format.Commit {
	dressed := format.Commit{Commit: c, Level: c.Priority, Rev: rev, Refs: w.refs[c.ID], Agents: w.agents[c.ID], Notes: w.changes[c.ID], Damaged: damaged}
	if e := w.entries[c.ID]; e != nil {
		dressed.Level, dressed.Why, dressed.Turn = e.Level, e.Why(), int(e.Turn)
		return dressed
	}
	for i := len(dressed.Notes) - 1; i >= 0; i-- {
		if n := dressed.Notes[i]; n.Op == commit.Annotate {
			dressed.Level = n.Priority
			break
		}
	}
	return dressed
}

// decorations returns the names of branches and tags, and HEAD, by the commit that they point to.
func (a *app) decorations(ctx context.Context, repo *tract.Repo) (map[objects.ID][]string, error) {
	h, err := a.head()
	if err != nil {
		return nil, err
	}
	names := map[objects.ID][]string{}
	if h.branch == "" {
		names[h.commit] = []string{"HEAD"}
	}
	for b, err := range repo.Refs(ctx, tract.RefQuery{Limit: maxDecorated, Newest: true}) {
		if err != nil {
			return nil, err
		}
		if b.Name == h.branch {
			names[b.Tip] = append([]string{"HEAD -> " + b.Name}, names[b.Tip]...)
			continue
		}
		names[b.Tip] = append(names[b.Tip], b.Name)
	}
	for t, err := range repo.Refs(ctx, tract.RefQuery{Tags: true, Limit: maxDecorated, Newest: true}) {
		if err != nil {
			return nil, err
		}
		names[t.Tip] = append(names[t.Tip], fmt.Sprintf("tag: %s", t.Name))
	}
	return names, nil
}

// maxDecorated is the number of branches, and of tags, that a log shows beside commits: the newest
// ones.
const maxDecorated = 1000
