package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/maintain"
	"github.com/tract-vcs/tract/objects"
)

type purgeOptions struct {
	maintain.PurgeOptions
	olderThanText   string // the flag; after setAuthorAgeAndRevs the effective age
	dryRunFlag, yes bool
}

// defaultPurgeAge is the default of --older-than without reasoning.ttl.
const defaultPurgeAge = "7d"

func newPurge(a *app) *cobra.Command {
	o := &purgeOptions{}
	cmd := &cobra.Command{
		Use: "purge {REV... | --reasoning [REV...] | --secrets [REV|A..B]}", Short: "Permanently remove the content of commits",
		Long: `Permanently remove the content and the labels of commits of any kind. The content is
removed on every branch that has the commits and in every file of the store, which is
rewritten. A REV may be a range A..B (the commits that B has and A does not), or the id
of another object with content, such as the description of a branch (listed by
tract branch --all).

The commits keep their ids, and a tombstone records when the content was purged and why.
The kind and the role of a block stay; for a tool call and its result, the call id and
the tool's name stay too. Prompts omit a purged block; a placeholder replaces a purged
tool result.

Equal content is stored once. Therefore other commits with exactly the same content lose
it too, and so do copies that a model received to write a summary; purge lists them. An
edit has its own content: purge the edit as well, or only the edit. A block that only
quotes the text has different content: tract grep finds such blocks.

--reasoning purges reasoning and its seals if they are older than --older-than (default:
the setting reasoning.ttl, or 7 days), in the histories of the REVs, of the branch that
-b names, or of the whole store. The tokens of purged reasoning are still counted. Three
kinds of reasoning are spared: pinned reasoning; reasoning of a turn with tool calls
after which no new user message came, because the next request needs it; and reasoning
equal to reasoning that stays. To purge spared reasoning, name its revision. Edits of
purged reasoning are purged with it.

--secrets purges every block, label, description and tool definition in which tract scan
finds a secret: in the history of REV, of the branch that -b names, or of everything that
a ref leads to or ever led to. With --mask, only the secrets are purged: on every branch,
an edit with masked secrets replaces the block and drops its seal; the block stays as it
is while an open tool loop needs the seal. Origins, settings of requests, and the names of authors,
branches and tags are never purged. purge lists the secrets that stay, and the exit code
is then 1.

The stored bodies of recorded requests that contain purged content are purged as a whole.
A purge cannot be undone, not even by tract undo. On a terminal, purge asks first;
elsewhere it requires --yes. A purge does not reach backups and other copies of the
store, remotes, or data that a provider keeps: change a password that was sent to one.
The hash of the content stays in the commits, and short content can be guessed from it.
A later import skips the purged content; a commit of the same content restores it.`,
		Example: `  tract purge :/hunter2 --dry-run
  tract purge 3fa2c1d toolu_01 -m 'a customer asked for it'
  tract purge 3fa2c1d..9198ae4 --yes
  tract purge --reasoning --older-than 30d --dry-run
  tract purge --secrets --mask --yes
  tract purge --secrets --rule private-key main`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withRecoverHint(a.purge(cmd.Context(), o, args))
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.Reasoning, "reasoning", false, "purge reasoning that is older than --older-than")
	f.StringVar(&o.olderThanText, "older-than", "", "with --reasoning: age, such as 30d, 12h or 0 for all (default: reasoning.ttl, or "+defaultPurgeAge+")")
	f.BoolVar(&o.Secrets, "secrets", false, "purge what tract scan finds")
	f.BoolVar(&o.Mask, "mask", false, "with --secrets: only replace secrets with masks")
	a.secretRuleFlag(cmd, &o.Rules, "with --secrets: only findings of these rules")
	f.StringVarP(&o.Why, "message", "m", "", "reason recorded in the tombstone (default: none, or the age)")
	f.BoolVar(&o.dryRunFlag, "dry-run", false, "only report what would be purged")
	f.BoolVarP(&o.yes, "yes", "y", false, yesHelp)
	cmd.MarkFlagsMutuallyExclusive("reasoning", "secrets")
	cmd.ValidArgsFunction = a.completeRevisions
	a.completeFlag(cmd, "older-than", completeWords("7d", "30d", "12h", "0"))
	return cmd
}

// withRecoverHint adds a hint to an error about damage, because damaged files cannot be rewritten.
func (a *app) withRecoverHint(err error) error {
	if !errors.Is(err, objects.ErrCorrupt) || a.location == nil {
		return err
	}
	return withHint(err, "tract recover %s NEW salvages what is intact: purge there, and delete the old store", shellQuote(a.location.displayName()))
}

func (a *app) purge(ctx context.Context, o *purgeOptions, args []string) error {
	if err := o.checkFlags(args); err != nil {
		return err
	}
	repo, err := a.open(ctx, !o.dryRunFlag)
	if err != nil {
		return err
	}
	if err := o.setAuthorAgeAndRevs(ctx, a, args); err != nil {
		return err
	}
	run := func(dryRun bool) (*maintain.PurgeResult, error) {
		step, end := a.startProgress("purging")
		defer end()
		o.DryRun, o.Progress = dryRun, step
		o.Spools = []string{a.spoolFolder()}
		return maintain.Purge(ctx, repo, o.PurgeOptions)
	}
	got, err := run(true)
	if err != nil {
		return err
	}
	r := newPurgeReceipt(got)
	if !o.dryRunFlag && r.blocks > 0 {
		verb := "purge the content of"
		if o.Mask {
			verb = "mask the secrets in"
		}
		if err := a.confirm(ctx, o.yes, fmt.Sprintf("%s %s, %d bytes", verb, count(r.blocks, "block"), got.Bytes)); err != nil {
			return err
		}
		if got, err = run(false); err != nil {
			return err
		}
		r = newPurgeReceipt(got)
		r.Purged = true
	}
	if a.json {
		err = format.Encode(a.out, r)
	} else {
		err = a.printPurgeReceipt(r, got, o)
	}
	if err != nil {
		return err
	}
	return a.reportUnpurged(got.Remaining)
}

// checkFlags returns an error for flags and arguments that cannot be combined.
func (o *purgeOptions) checkFlags(args []string) error {
	switch {
	case len(o.Why) > 1<<10:
		return usageError("a message of %d bytes: at most 1024", len(o.Why))
	case !o.Reasoning && o.olderThanText != "":
		return usageError("--older-than is for --reasoning")
	case !o.Secrets && (o.Mask || len(o.Rules) > 0):
		return usageError("--mask and --rule are for --secrets")
	case !o.Reasoning && !o.Secrets && len(args) == 0:
		return usageError("nothing to purge: give a revision, --reasoning or --secrets")
	case o.Secrets && len(args) > 1:
		return usageError("--secrets looks at one revision or range, have %d", len(args))
	}
	return checkRules(o.Rules)
}

// setAuthorAgeAndRevs sets the author, age, reason and revisions of the purge from the flags,
// settings and arguments.
func (o *purgeOptions) setAuthorAgeAndRevs(ctx context.Context, a *app, revArgs []string) error {
	o.Author = author(*a.loaded)
	if o.Reasoning {
		if e := a.reasoningTTL(); e != nil && o.olderThanText == "" {
			o.olderThanText = e.TTL
		}
		o.olderThanText = firstNonEmpty(o.olderThanText, defaultPurgeAge)
		ok := false
		if o.OlderThan, ok = parseAge(o.olderThanText); !ok {
			return usageError("--older-than %q: want a time such as 30d, 12h or 0", o.olderThanText)
		}
		if o.OlderThan > 0 {
			o.Why = firstNonEmpty(o.Why, "older than "+o.olderThanText)
		}
	}
	if len(revArgs) == 0 && a.branch != "" {
		revArgs = []string{refs.Heads + a.branch}
	}
	for _, rev := range revArgs {
		spec, err := a.resolveObjectOrRange(ctx, rev)
		if err != nil {
			return err
		}
		o.Revs = append(o.Revs, spec)
	}
	return nil
}

// resolveObjectOrRange resolves an argument to a commit, a range, or another object by its id.
func (a *app) resolveObjectOrRange(ctx context.Context, arg string) (idOrRange string, err error) {
	r, err := a.newResolver(ctx, arg)
	if err != nil {
		return "", err
	}
	if id, err := r.Object(ctx, arg); err == nil {
		return id.String(), nil
	}
	return a.resolveRange(ctx, arg)
}

// purgedCommitJSON is a commit whose content is purged.
type purgedCommitJSON struct {
	Commit  objects.ID   `json:"commit"`
	Op      string       `json:"op"`
	Kind    content.Kind `json:"kind"`
	Content objects.ID   `json:"content_id,omitzero"`
	Time    time.Time    `json:"time"`
	Size    int64        `json:"size"`
}

func newPurgedCommitJSON(c *commit.Commit) purgedCommitJSON {
	return purgedCommitJSON{c.ID, c.Op.String(), c.Kind, c.ContentID, c.Time, c.Size}
}

// purgeReceipt lists what a purge has removed, or would remove.
type purgeReceipt struct {
	Purged  bool                    `json:"purged"`
	Commits []purgedCommitJSON      `json:"commits"`
	Shared  []purgedCommitJSON      `json:"shared"`
	Copies  []purgedCommitJSON      `json:"copies"`
	Edits   []purgedCommitJSON      `json:"edits"`
	Others  []objects.ID            `json:"others"`
	Masked  map[string][]objects.ID `json:"masked"`
	Spared  sparedJSON              `json:"spared"`
	Left    []any                   `json:"left"`
	Bodies  int                     `json:"bodies,omitempty"` // of recorded requests
	Objects int                     `json:"objects"`
	Bytes   int64                   `json:"bytes"`
	Before  int64                   `json:"size_before"`
	After   int64                   `json:"size_after"`

	blocks uint64 // number of purged blocks and other objects
}

// sparedJSON counts the reasoning that is not purged.
type sparedJSON struct {
	Young  int `json:"young"`
	Pinned int `json:"pinned"`
	Open   int `json:"open"`
	Shared int `json:"shared"`
}

func newPurgeReceipt(got *maintain.PurgeResult) *purgeReceipt {
	return &purgeReceipt{
		Commits: mapSlice(got.Commits, newPurgedCommitJSON), Shared: mapSlice(got.Shared, newPurgedCommitJSON),
		Copies: mapSlice(got.Copies, newPurgedCommitJSON), Edits: mapSlice(got.Edits, newPurgedCommitJSON),
		Others: append([]objects.ID{}, got.Others...), Masked: got.Masked,
		Spared: sparedJSON(got.Spared), Left: mapSlice(mapSlice(got.Remaining, unpurgedSecret), format.SecretJSON),
		Bodies: got.Bodies, Objects: got.Objects, Bytes: got.Bytes, Before: got.SizeBefore, After: got.SizeAfter,
		blocks: uint64(len(got.Commits) + len(got.Shared) + len(got.Copies) + len(got.Others)),
	}
}

// printPurgeReceipt lists the commits without their content: a receipt may be kept.
func (a *app) printPurgeReceipt(r *purgeReceipt, got *maintain.PurgeResult, o *purgeOptions) error {
	p := a.printer()
	var rows [][]string
	add := func(list []*commit.Commit, note string) {
		for _, c := range list {
			what := c.Kind.String()
			if c.Op != commit.Append {
				what = c.Op.String() + " of " + c.Target.Short()
			}
			rows = append(rows, []string{c.ID.Short(), what, fmt.Sprintf("%d bytes", c.Size), note})
		}
	}
	add(got.Commits, "")
	add(got.Shared, "has the same content, and loses it too")
	add(got.Copies, "shown to a model to write a summary, purged too")
	add(got.Edits, "kept: an edit has content of its own")
	for _, id := range got.Others {
		rows = append(rows, []string{id.Short(), "not a commit", "", ""})
	}
	p.Table(rows)
	what := "purged"
	if o.Mask {
		what = "masked"
	}
	if o.dryRunFlag {
		what = "would be " + what
	}
	p.Text(fmt.Sprintf("%s, %d bytes, %s\n", count(r.blocks, "block"), r.Bytes, what))
	if r.Bodies > 0 {
		p.Text(count(r.Bodies, "request body") + " with purged content\n")
	}
	var spared []string
	for _, s := range []struct {
		n   int
		why string
	}{
		{r.Spared.Young, "not older than " + o.olderThanText}, {r.Spared.Pinned, "pinned"}, {r.Spared.Open, "in an open turn"}, {r.Spared.Shared, "equal to reasoning that stays"},
	} {
		if s.n > 0 {
			spared = append(spared, fmt.Sprintf("%d %s", s.n, s.why))
		}
	}
	if len(spared) > 0 {
		p.Text("Spared: " + strings.Join(spared, ", ") + "\n")
	}
	for _, branch := range slices.Sorted(maps.Keys(r.Masked)) {
		p.Line(fmt.Sprintf("%s on branch %s", count(len(r.Masked[branch]), "edit"), branch))
	}
	if r.Objects > 0 {
		if r.Before > 0 {
			p.Text("The store takes " + kib(r.After) + ", and took " + kib(r.Before) + "\n")
		}
		a.info("copies of the store, remotes and providers keep their content")
	}
	return p.Err()
}

// unpurgedSecret returns a secret that stays, with the reason.
func unpurgedSecret(l maintain.Leak) format.Secret {
	s := format.Secret{Leak: l, Why: "an open tool loop needs it under its seal; purge it after the loop has ended"}
	switch {
	case l.Named():
		s.Why = "names are never purged, and the ref log keeps them: rename it (tract branch -m, tract tag -d, user.name) and change the secret"
	case !l.Purgeable():
		s.Why = "origins and requests are never purged"
	}
	return s
}

// reportUnpurged lists the secrets that stay, and returns a negative answer if there are any.
func (a *app) reportUnpurged(remaining []maintain.Leak) error {
	if len(remaining) == 0 {
		return nil
	}
	for _, s := range mapSlice(remaining, unpurgedSecret) {
		what := s.Where
		if what == "content" {
			what = s.Commit.Kind.String()
		}
		a.info("not purged: %s in %s of %s: %s", s.Rule, what, s.Commit.ID.Short(), s.Why)
	}
	return negativeAnswer()
}
