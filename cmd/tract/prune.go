package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/refs"
)

type pruneOptions struct {
	older, session, model string
	keepPinned, dry, yes  bool
}

// usualAge is how old thoughts are that are pruned when nobody says otherwise.
const usualAge = "7d"

func newPrune(a *app) *cobra.Command {
	o := &pruneOptions{}
	cmd := &cobra.Command{
		Use: "prune [REV...]", Short: "Take the words of old thoughts away, for good",
		Long: `Take the words and the seals of thoughts away that are older than --older-than, or
than the setting reasoning.ttl, or than 7 days: of revisions, of the branch that -b
names, or of the whole store. Their commits stay with their ids, and what they cost is
still counted. log, show and compile say what was pruned; tract verify answers "pruned"
for requests that sent it. The store is rewritten, so that the words are in none of its
files.

Spared are thoughts that were pinned, those of a turn in which tools were used and after
which nobody has spoken, which the next request needs, and those that say the same as a
thought that stays. An edit of a thought goes with it.

It cannot be undone, by tract undo or otherwise: it asks on a terminal, and elsewhere
refuses without --yes. Copies of the store and providers keep what they have.`,
		Example: `  tract reasoning prune --dry-run
  tract reasoning prune --older-than 30d --yes
  tract reasoning prune --session main --model 'deepseek*' --keep-pinned=false --yes`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.erasureError(a.prune(cmd, o, args)) },
	}
	f := cmd.Flags()
	f.StringVar(&o.older, "older-than", "", "age of the thoughts that go, such as 30d, 12h or 0 for all (default: reasoning.ttl, or "+usualAge+")")
	f.StringVar(&o.session, "session", "", "only thoughts that were committed on this branch")
	f.StringVar(&o.model, "model", "", "only thoughts of models of this name, in which * stands for anything")
	f.BoolVar(&o.keepPinned, "keep-pinned", true, "spare thoughts that were pinned")
	f.BoolVar(&o.dry, "dry-run", false, "only say what would go")
	f.BoolVarP(&o.yes, "yes", "y", false, noQuestion)
	cmd.ValidArgsFunction = a.completeRevisions
	a.completeFlag(cmd, "session", a.completeBranches)
	a.completeFlag(cmd, "older-than", cobra.FixedCompletions([]string{"7d", "30d", "12h", "0"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// goneJSON is a commit whose words went, or would.
type goneJSON struct {
	Commit  objects.ID   `json:"commit"`
	Op      string       `json:"op"`
	Kind    content.Kind `json:"kind"`
	Content objects.ID   `json:"content_id,omitzero"`
	Time    time.Time    `json:"time"`
	Size    int64        `json:"size"`
}

func gone(list []*commit.Commit) []goneJSON {
	all := []goneJSON{}
	for _, c := range list {
		all = append(all, goneJSON{c.ID, c.Op.String(), c.Kind, c.Content, c.Time, c.Size})
	}
	return all
}

// erasureJSON is what an erasure has come to.
type erasureJSON struct {
	Objects int   `json:"objects"`
	Bytes   int64 `json:"bytes"`
	Before  int64 `json:"size_before"`
	After   int64 `json:"size_after"`
}

func erasureOf(e tract.Erasure) erasureJSON {
	return erasureJSON{e.Objects, e.Bytes, e.SizeBefore, e.SizeAfter}
}

type pruneJSON struct {
	Pruned   bool       `json:"pruned"`
	Thoughts []goneJSON `json:"thoughts"`
	Young    int        `json:"young"`
	Pinned   int        `json:"pinned"`
	Open     int        `json:"open"`
	Shared   int        `json:"shared"`
	Copies   []goneJSON `json:"copies"`
	erasureJSON
}

// pruning reads the flags.
func (o *pruneOptions) pruning(a *app, cmd *cobra.Command, args []string) (p tract.Pruning, age string, err error) {
	ctx := cmd.Context()
	ttl, err := a.ttl()
	if err != nil {
		return p, "", err
	}
	p = tract.Pruning{Session: o.session, Model: o.model, Pinned: !o.keepPinned}
	var length time.Duration
	if age = o.older; age == "" && ttl != nil {
		age, length = ttl.TTL, ttl.length
	} else {
		age = firstOf(age, usualAge)
		if length, err = parseGrace(age); err != nil {
			return p, "", usage(cmd, "--older-than %q: want a time such as 30d, 12h or 0", age)
		}
	}
	p.Why = "older than " + age
	if length > 0 {
		p.Before = time.Now().Add(-length)
	} else {
		p.Why = "tract reasoning prune"
	}
	if len(args) == 0 && a.branch != "" {
		args = []string{refs.Heads + a.branch}
	}
	for _, rev := range args {
		id, err := a.resolve(ctx, rev)
		if err != nil {
			return p, "", err
		}
		p.Revs = append(p.Revs, id.String())
	}
	return p, age, nil
}

func (a *app) prune(cmd *cobra.Command, o *pruneOptions, args []string) error {
	ctx := cmd.Context()
	repo, err := a.open(ctx, !o.dry)
	if err != nil {
		return err
	}
	p, age, err := o.pruning(a, cmd, args)
	if err != nil {
		return err
	}
	p.Dry = true
	got, err := repo.Prune(ctx, p)
	if err != nil {
		return err
	}
	done := !o.dry && len(got.Thoughts) > 0
	if done {
		what := fmt.Sprintf("erase the content of %s, %d bytes", count(uint64(len(got.Thoughts)), "reasoning block"), got.Bytes)
		if yes, err := a.sure(ctx, o.yes, what); err != nil || !yes {
			return cancelled(a, err)
		}
		step, end := a.progress("pruning")
		p.Dry, p.Progress = false, step
		got, err = repo.Prune(ctx, p)
		end()
		if err != nil {
			return err
		}
	}
	if a.json {
		return format.Encode(a.out, pruneJSON{done, gone(got.Thoughts), got.Young, got.Pinned, got.Open, got.Shared, gone(got.Copies), erasureOf(got.Erasure)})
	}
	return a.sayPruned(got, age, o.dry)
}

// cancelled is the end of a command that was not to go on.
func cancelled(a *app, err error) error {
	if err != nil {
		return err
	}
	a.note("nothing was changed")
	return no()
}

func (a *app) sayPruned(got *tract.PruneResult, age string, dry bool) error {
	p := a.printer()
	what := "pruned"
	if dry {
		what = "would be pruned"
	}
	p.Text(fmt.Sprintf("%s, %d bytes, %s\n", count(uint64(len(got.Thoughts)), "thought"), got.Bytes, what))
	var spared []string
	for _, s := range []struct {
		n   int
		why string
	}{
		{got.Young, "not older than " + age}, {got.Pinned, "pinned"}, {got.Open, "in an open turn"}, {got.Shared, "with the words of one that stays"},
	} {
		if s.n > 0 {
			spared = append(spared, fmt.Sprintf("%d %s", s.n, s.why))
		}
	}
	if len(spared) > 0 {
		p.Text("Spared: " + strings.Join(spared, ", ") + "\n")
	}
	if len(got.Copies) > 0 {
		p.Text(count(uint64(len(got.Copies)), "request") + " for a summary had their words, and went too\n")
	}
	a.sayErased(p, got.Erasure)
	return p.Err()
}

func (a *app) sayErased(p *format.Printer, e tract.Erasure) {
	if e.Objects > 0 && e.SizeBefore > 0 {
		p.Text(fmt.Sprintf("The store takes %d KiB, and took %d KiB\n", (e.SizeAfter+1023)/1024, (e.SizeBefore+1023)/1024))
	}
	if e.Objects > 0 {
		a.note("copies of the store, remotes and providers keep what they have")
	}
}
