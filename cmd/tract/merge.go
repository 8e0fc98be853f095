package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/objects"
)

type mergeOptions struct {
	requestFlags
	tract.MergeOptions
	appends, ours, theirs, summarize bool
	summary, edit                    string
}

func newMerge(a *app) *cobra.Command {
	o := &mergeOptions{}
	cmd := &cobra.Command{
		Use: "merge REV", Short: "Merge another branch into this one",
		Long: `Merge another branch into this one. If this branch has no commits of its own since they
diverged, it only moves forward. Otherwise a merge is committed: prompts have the blocks of
this branch, then those of the other (the default), or a summary in their place, from a
file (--summary) or a model (--summarize, --provider). Edits and annotations are merged, too.

A block that both branches edited or annotated is a conflict. Conflicts are listed, and
nothing is changed until --ours, --theirs or --edit resolves them. --edit opens $EDITOR
for each conflict; --edit=FILE takes the text for a single one from a file.

A merge inside a tool loop is refused. tract undo undoes a merge.`,
		Example: `  tract merge try-2
  tract merge try-2 --summary notes.md
  tract merge try-2 --summarize --model claude-haiku-4-5
  tract merge try-2 --squash -m "what try-2 found"
  tract merge try-2 --no-commit
  tract merge try-2 --theirs`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.merge(cmd.Context(), o, args[0]) },
	}
	f := cmd.Flags()
	f.BoolVar(&o.appends, "append", false, "append their blocks after ours (default)")
	f.StringVar(&o.summary, "summary", "", "`file` with a summary to use instead of their blocks, or - for stdin")
	f.BoolVar(&o.summarize, "summarize", false, "let a model write the summary; implied by --provider, --model and --base-url")
	a.addSettingOverrideFlag(cmd, &o.provider, "provider", "", "provider", "provider to ask for a summary: a dialect, or a vendor such as anthropic, openai, ollama")
	a.addSettingOverrideFlag(cmd, &o.model, "model", "", "model", "model to ask for a summary")
	a.addSettingOverrideFlag(cmd, &o.baseURL, "base-url", "", "base_url", "address of the provider, if not its own")
	f.BoolVar(&o.FastForwardOnly, "ff-only", false, "refuse anything but a fast-forward")
	f.BoolVar(&o.NoFastForward, "no-ff", false, "commit a merge even if a fast-forward is possible")
	f.BoolVar(&o.Squash, "squash", false, "commit copies of their blocks and last edits, without a merge")
	f.BoolVar(&o.NoMove, "no-commit", false, "create the merge commit without moving the branch")
	f.BoolVar(&o.DryRun, "dry-run", false, "only report what would be merged")
	f.BoolVar(&o.AllowUnrelated, "allow-unrelated-histories", false, "merge a branch that has no commit in common")
	f.BoolVar(&o.ours, "ours", false, "resolve conflicts with this branch's side")
	f.BoolVar(&o.theirs, "theirs", false, "resolve conflicts with their side")
	f.StringVar(&o.edit, "edit", "", "resolve text conflicts in $EDITOR; --edit=FILE takes the text from a file")
	f.Lookup("edit").NoOptDefVal = editorWord
	f.StringVarP(&o.Label, "message", "m", "", "label of the merge: a line for people, never sent")
	f.StringVar(&o.Author, "author", "", "author of the merge")
	cmd.MarkFlagsMutuallyExclusive("ours", "theirs")
	cmd.MarkFlagsMutuallyExclusive("ff-only", "no-ff")
	cmd.MarkFlagsMutuallyExclusive("append", "summary", "summarize")
	cmd.MarkFlagsMutuallyExclusive("append", "squash")
	cmd.MarkFlagsMutuallyExclusive("no-commit", "dry-run")
	return cmd
}

// editorWord is the value of --edit without a file; it selects $EDITOR.
const editorWord = "$EDITOR"

func (a *app) merge(ctx context.Context, o *mergeOptions, rev string) error {
	if err := o.setResolverAndSummary(ctx, a); err != nil {
		return err
	}
	b, err := a.currentOrNewBranch(ctx)
	if err != nil {
		return err
	}
	if _, err := a.resolve(ctx, rev); err != nil {
		return err
	}
	r, err := b.Merge(ctx, rev, o.MergeOptions)
	if err != nil {
		return a.printMergeConflicts(err)
	}
	return a.printMerge(b, o, r)
}

// setResolverAndSummary sets the function that resolves conflicts and, if the flags ask for a
// summary, its text or the model that writes it.
func (o *mergeOptions) setResolverAndSummary(ctx context.Context, a *app) error {
	o.Resolve = func(c tract.Conflict) (*tract.Change, error) { return o.resolveByFlags(ctx, a, c) }
	if o.summary != "" {
		text, err := (&textFlags{file: o.summary}).read(ctx, a, nil, "")
		if err != nil {
			return err
		}
		if strings.TrimSpace(text) == "" {
			return tract.ErrEmpty
		}
		a.warnInvalidUTF8(text)
		o.Summary = text
		return nil
	}
	if !o.summarize && o.provider == "" && o.model == "" && o.baseURL == "" {
		return nil
	}
	client, ask, err := a.clientAndOptions(ctx, &o.requestFlags)
	o.Summarize, o.Ask = client, ask
	return err
}

// resolveByFlags returns the change that resolves a conflict according to the flags; nil if they do
// not decide it. The text of --edit=FILE is used once.
func (o *mergeOptions) resolveByFlags(ctx context.Context, a *app, c tract.Conflict) (resolution *tract.Change, err error) {
	switch {
	case o.edit == editorWord && c.Op == commit.Edit:
		text, err := a.editText(ctx, "<<<<<<< ours\n"+c.Ours.Text+"\n=======\n"+c.Theirs.Text+"\n>>>>>>> theirs\n")
		return &tract.Change{Text: text}, err
	case o.edit != "" && c.Op == commit.Edit:
		text, err := (&textFlags{file: o.edit}).read(ctx, a, nil, "")
		if o.edit = ""; err != nil { // it is the text of one conflict
			return nil, err
		}
		return &tract.Change{Text: text}, nil
	case o.ours:
		return &c.Ours, nil
	case o.theirs:
		return &c.Theirs, nil
	}
	return nil, nil
}

// printMergeConflicts prints the conflicts that stopped a merge. It returns the error with the
// conflicts, or another error of a merge with a hint.
func (a *app) printMergeConflicts(err error) (explained error) {
	var conflicts *tract.MergeConflictError
	switch {
	case errors.As(err, &conflicts):
		f := classify(err)
		p := a.stderrPrinter()
		for _, c := range conflicts.Conflicts {
			if f.conflicts = append(f.conflicts, format.ConflictJSON(c)); !a.json {
				p.Conflict(c)
			}
		}
		return f
	case errors.Is(err, tract.ErrNotFastForward):
		return withHint(err, "without --ff-only a merge is committed")
	case errors.Is(err, tract.ErrUnrelated):
		return withHint(err, "--allow-unrelated-histories merges them anyway")
	}
	return err
}

type mergeJSON struct {
	Branch    string          `json:"branch"`
	Kind      tract.MergeKind `json:"kind"`
	Done      string          `json:"done"`
	Base      objects.ID      `json:"base,omitzero"`
	Ours      objects.ID      `json:"ours,omitzero"`
	Theirs    objects.ID      `json:"theirs"`
	Tip       objects.ID      `json:"tip,omitzero"`
	Commits   []objects.ID    `json:"commits"`
	Brings    []any           `json:"brings"`
	Conflicts []any           `json:"conflicts,omitempty"`
}

func (a *app) printMerge(b *tract.Branch, o *mergeOptions, r *tract.MergeResult) error {
	done := "merged"
	switch {
	case o.DryRun:
		done = "would merge"
	case o.NoMove:
		done = "prepared"
	}
	if a.json {
		return format.Encode(a.out, mergeJSON{
			b.Name(), r.Kind, done, r.Base, r.Ours, r.Theirs, r.Tip, append([]objects.ID{}, r.Commits...),
			mapSlice(r.Incoming, func(c *commit.Commit) any { return format.CommitJSON(format.Commit{Commit: c}) }), mapSlice(r.Conflicts, format.ConflictJSON),
		})
	}
	p := a.printer()
	if o.DryRun {
		for _, c := range r.Incoming {
			p.Log(format.Commit{Commit: c}, format.LogStyle{Oneline: true})
		}
	}
	brought := count(len(r.Incoming), "commit")
	switch r.Kind {
	case tract.UpToDate:
		p.Text("Already up to date.\n")
	case tract.FastForward:
		p.Text(fmt.Sprintf("%s %s..%s\nFast-forward: %s\n", capitalize(done), shortOrDashes(r.Ours), r.Theirs.Short(), brought))
	default:
		text := fmt.Sprintf("%s %s of %s into %s", capitalize(done), brought, r.Theirs.Short(), b.Name())
		if r.Kind == tract.Squashed {
			text += ", squashed"
		}
		switch {
		case r.Kind == tract.Merged && (o.Summary != "" || o.Summarize != nil) && len(r.Commits) > 1:
			text += ": " + r.Commits[0].Short() + ", summary " + r.Commits[1].Short()
		case !r.Tip.IsZero():
			text += ": " + r.Tip.Short()
		}
		p.Line(text)
	}
	if n := len(r.Conflicts); n > 0 {
		p.Text("Resolved " + count(n, "conflict") + "\n")
	}
	if o.NoMove && r.Tip != r.Ours {
		a.info("the branch has not moved: tract diff HEAD %s shows the changes, tract reset %[1]s applies them", r.Tip.Short())
	}
	return p.Err()
}
