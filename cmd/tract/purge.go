package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/objects"
)

var _ = register("purge", newPurge)

type purgeOptions struct {
	where
	why               string
	secrets, dry, yes bool
}

func newPurge(a *app) *cobra.Command {
	o := &purgeOptions{}
	cmd := &cobra.Command{
		Use: "purge REV... | --secrets [REV|A..B]", Short: "Take the words of commits away, for good", GroupID: groupStore,
		Long: `Take the words and the labels of commits away, of whatever kind: from every branch
that has them, and from every file of the store, which is rewritten for that. A REV may
be a range A..B, what B has and A has not, or the id of another object with words, such
as the description of a branch (tract branch --all shows it).

The commits stay with their ids, and a tombstone says when the words went and why. What
is left is the kind, the role, and of a tool call and its result the id and the name of
the tool. In prompts a block that was purged is left out; in the place of a tool result
a placeholder is sent.

Equal words are stored once: other commits that say exactly the same lose them too, and
are named, and so are copies that a model was shown to write a summary. An edit has
words of its own: purge the edit as well, or only the edit. The same words within other
blocks, such as an answer that quotes them, are other words: tract grep finds them.

It cannot be undone, by tract undo or otherwise: it asks on a terminal, and elsewhere
refuses without --yes. It does not reach backups and other
copies of the store, remotes, and what a provider has kept: a password that was sent
somewhere has to be changed. The hash of the words stays in the commits, by which short
words can be guessed. A later import of the same words leaves them out; whoever commits
them anew brings them back.

With --secrets, what tract scan finds goes whole: every block, label, description and
definition of tools that has a secret in it, of the history of REV (HEAD) or of all.
tract scan --fix takes only the secrets out, and leaves the words around them. Where
words came from and how a model was asked is never erased; what is left is named, and
the exit code is 1 then.`,
		Example: `  tract purge :/hunter2 --dry-run
  tract purge 3fa2c1d toolu_01 -m 'a customer asked for it'
  tract purge 3fa2c1d..9198ae4 --yes
  tract purge --secrets --all --rule private-key --dry-run`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.erasureError(a.purge(cmd, o, args)) },
	}
	f := cmd.Flags()
	f.StringVarP(&o.why, "message", "m", "purged", "what the tombstone says of the reason; not the words themselves")
	f.BoolVar(&o.dry, "dry-run", false, "only say what would go")
	f.BoolVarP(&o.yes, "yes", "y", false, noQuestion)
	f.BoolVar(&o.secrets, "secrets", false, "purge what tract scan finds")
	o.flags(a, cmd, "with --secrets: look at everything that a ref leads to or ever led to", "with --secrets: only what these rules find")
	cmd.ValidArgsFunction = a.completeRevisions
	return cmd
}

// erasureError says how words are got rid of where something is damaged: to take them
// away the file is written anew, and nobody writes anew what cannot be read.
func (a *app) erasureError(err error) error {
	if !errors.Is(err, objects.ErrCorrupt) || a.place == nil {
		return err
	}
	return hinted(err, "tract recover %s NEW makes a store of what is whole, without what is damaged: take the other words away there, and remove the old one", shellWord(a.place.url))
}

type purgeJSON struct {
	Purged  bool       `json:"purged"`
	Commits []goneJSON `json:"commits"`
	Shared  []goneJSON `json:"shared"`
	Copies  []goneJSON `json:"copies"`
	Edits   []goneJSON `json:"edits"`
	Left    []any      `json:"left,omitempty"`
	erasureJSON
}

func (a *app) purge(cmd *cobra.Command, o *purgeOptions, args []string) error {
	ctx := cmd.Context()
	if err := o.check(cmd, args); err != nil {
		return err
	}
	repo, err := a.open(ctx, !o.dry)
	if err != nil {
		return err
	}
	p := tract.Purging{Why: o.why, Dry: true}
	var left []format.Secret
	if o.secrets {
		left, err = a.secretsToPurge(cmd, o, &p, args)
		args = nil
	}
	for _, rev := range args {
		if err == nil {
			err = a.toPurge(ctx, &p, rev)
		}
	}
	if err != nil {
		return err
	}
	got, err := repo.Purge(ctx, p)
	if err != nil {
		return err
	}
	done := !o.dry && (got.Bytes > 0 || len(got.Commits) > 0)
	if done {
		what := fmt.Sprintf("erase the content of %s, %d bytes", bereft(got), got.Bytes)
		if yes, err := a.sure(ctx, o.yes, what); err != nil || !yes {
			return cancelled(a, err)
		}
		step, end := a.progress("purging")
		p.Dry, p.Progress = false, step
		got, err = repo.Purge(ctx, p)
		end()
		if err != nil {
			return err
		}
	}
	p.Dry = o.dry
	if a.json {
		err = format.Encode(a.out, purgeJSON{done, gone(got.Commits), gone(got.Shared), gone(got.Copies), gone(got.Edits), secretsJSON(left), erasureOf(got.Erasure)})
	} else {
		err = a.sayPurged(got, p)
	}
	return a.leftOver(left, err)
}

// check refuses what does not go together.
func (o *purgeOptions) check(cmd *cobra.Command, args []string) error {
	switch {
	case len(o.why) > 1<<10:
		return usage(cmd, "a message of %d bytes: at most 1024", len(o.why))
	case !o.secrets && (o.all || len(o.rules) > 0):
		return usage(cmd, "--all and --rule are for --secrets")
	case !o.secrets && len(args) == 0:
		return usage(cmd, "nothing is named: give a revision, or --secrets")
	case o.secrets && len(args) > 1:
		return usage(cmd, "--secrets looks at one revision or range, have %d", len(args))
	}
	return nil
}

// secretsToPurge adds what has a secret in it, and gives what cannot be purged.
func (a *app) secretsToPurge(cmd *cobra.Command, o *purgeOptions, p *tract.Purging, args []string) (left []format.Secret, err error) {
	s, err := o.look(cmd, args)
	if err != nil {
		return nil, err
	}
	list, _, err := a.findSecrets(cmd.Context(), &s, !o.dry)
	if err != nil {
		return nil, err
	}
	for _, l := range list {
		switch {
		case !l.Erasable():
			left = append(left, leftOf([]tract.Leak{l}, false)...)
		case !slices.Contains(p.Objects, l.Object):
			p.Objects = append(p.Objects, l.Object)
		}
	}
	return left, nil
}

// toPurge adds what an argument names: a commit, a range, or another object by its id.
func (a *app) toPurge(ctx context.Context, p *tract.Purging, rev string) error {
	r, err := a.resolver(ctx, rev)
	if err != nil {
		return err
	}
	if id, err := r.Object(ctx, rev); err == nil {
		o, err := objects.Read(ctx, a.repo.Store(), id)
		if errors.Is(err, objects.ErrErased) || err == nil && o.Kind != objects.KindCommit {
			p.Objects = append(p.Objects, id)
			return nil
		}
	}
	spec, err := a.spec(ctx, rev)
	p.Revs = append(p.Revs, spec)
	return err
}

// bereft is how many blocks, and other objects, lose their words.
func bereft(got *tract.PurgeResult) string {
	return count(uint64(len(got.Commits)+len(got.Shared)+len(got.Copies)+len(got.Others)), "block")
}

// sayPurged lists the commits without their words: what is written here may stay.
func (a *app) sayPurged(got *tract.PurgeResult, asked tract.Purging) error {
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
	add(got.Shared, "says the same, and goes with it")
	add(got.Copies, "was shown to a model to write a summary, and goes with it")
	add(got.Edits, "stays: an edit has words of its own")
	p.Table(rows)
	what := "purged"
	if asked.Dry {
		what = "would be purged"
	}
	p.Text(fmt.Sprintf("%s, %d bytes, %s\n", bereft(got), got.Bytes, what))
	a.sayErased(p, got.Erasure)
	return p.Err()
}
