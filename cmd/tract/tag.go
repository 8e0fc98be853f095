package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/objects"
)

type tagOptions struct{ list, delete, dryRun bool }

func newTag(a *app) *cobra.Command {
	o := &tagOptions{}
	cmd := &cobra.Command{
		Use: "tag [NAME [REV]]", Short: "List, create or delete tags",
		Long: `Without a name, list the tags. With a name, tag a commit (default HEAD). A tag never moves.`,
		Example: `  tract tag
  tract tag good-answer :/Rayleigh
  tract tag -d good-answer`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return a.tags(cmd.Context(), o, args) },
	}
	cmd.Flags().BoolVarP(&o.list, "list", "l", false, "list tags whose names begin with NAME")
	cmd.Flags().BoolVarP(&o.delete, "delete", "d", false, "delete tags")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "only report what would be deleted")
	cmd.MarkFlagsMutuallyExclusive("list", "delete")
	cmd.ValidArgsFunction = a.completeTags
	return cmd
}

func (a *app) tags(ctx context.Context, o *tagOptions, args []string) error {
	switch {
	case o.delete && len(args) == 0:
		return usageError("a tag name is required")
	case o.delete:
		return a.deleteTags(ctx, o, args)
	case o.list || len(args) == 0:
		return a.listTags(ctx, args)
	case len(args) > 2:
		return usageError("want NAME and one revision")
	}
	if err := checkName("tag", args[0]); err != nil {
		return err
	}
	repo, err := a.open(ctx, true)
	if err != nil {
		return err
	}
	at, err := a.resolve(ctx, revOrHead(args[1:]))
	if err != nil {
		return err
	}
	there, err := objects.ReadRef(ctx, repo.Store(), refs.Tags+args[0])
	if err == nil && !there.Target.IsZero() { // even at that commit, as git does
		err = fmt.Errorf("make tag %q: %w", args[0], objects.ErrExists)
	}
	if err == nil {
		err = repo.Tag(ctx, args[0], at.String())
	}
	if errors.Is(err, objects.ErrExists) {
		return withHint(err, "choose another name, or delete the tag with tract tag -d")
	}
	if err != nil {
		return err
	}
	return a.printRef("tag", "made", args[0], at)
}

func (a *app) listTags(ctx context.Context, args []string) error {
	repo, err := a.open(ctx, false)
	if err != nil {
		return err
	}
	q := tract.RefQuery{Tags: true}
	if len(args) > 0 {
		q.Prefix = strings.TrimRight(args[0], "*")
	}
	type row struct {
		Name    string     `json:"name"`
		Target  objects.ID `json:"target"`
		Updated time.Time  `json:"updated"`
		Summary string     `json:"summary,omitempty"`
	}
	rows := []row{}
	var table [][]string
	for info, err := range repo.Refs(ctx, q) {
		if err != nil {
			return err
		}
		c, err := repo.Show(ctx, info.Tip.String())
		if err := a.damage.collectDamage(err); err != nil {
			return err
		}
		r := row{strings.TrimPrefix(info.Name, "tags/"), info.Tip, info.Updated.UTC(), format.SummaryJSON(c, 0)}
		rows = append(rows, r)
		table = append(table, []string{r.Name, info.Tip.Short(), info.Updated.Local().Format(time.DateTime), format.SummaryOf(c, 0)})
	}
	return a.emitRows(rows, table)
}

func (a *app) deleteTags(ctx context.Context, o *tagOptions, names []string) error {
	d := &refDeletion{
		folder: refs.Tags, member: "tag", command: "tag -d", verb: "delete", past: "deleted", lineFormat: "%s tag %s (at %s)",
		names: names, dryRun: o.dryRun,
	}
	_, err := d.run(ctx, a)
	if isType[*refs.UnknownError](err) {
		return withHint(err, "tract tag lists tags")
	}
	return err
}
