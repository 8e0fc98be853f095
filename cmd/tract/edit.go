package main

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/objects"
)

type editOptions struct {
	appendFlags
	source string
}

func newEdit(a *app) *cobra.Command {
	o := &editOptions{}
	cmd := &cobra.Command{
		Use: "edit REV [TEXT|-] | edit REV --source REV", Short: "Replace the text of a block in later prompts",
		Long: `Replace the text of a block in later prompts. The old text stays in the history, because
earlier prompts contained it; tract show and tract diff show it. The block keeps its kind
and role; a seal over the old text is dropped. On a terminal, without TEXT, the block
opens in $EDITOR.

--source REV uses the text that the block had at REV. If REV is the block itself or an
edit of it, the text of that commit is used.`,
		Example: `  tract edit :/blue "Why is the sky blue at noon?"
  tract edit 'HEAD^{turn}' -F question.md
  tract edit 9198ae4
  tract edit 9198ae4 --source main@{yesterday}
  tract edit 9198ae4 --source 9198ae4     # its first text`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.editBlock(cmd.Context(), o, args[0], args[1:]) },
	}
	o.addFlags(a, cmd)
	cmd.Flags().StringVarP(&o.source, "source", "s", "", "use the text that the block has at this revision")
	cmd.MarkFlagsMutuallyExclusive("source", "text-file")
	a.completeFlag(cmd, "source", a.completeRevisions)
	return cmd
}

func (a *app) editBlock(ctx context.Context, o *editOptions, rev string, args []string) error {
	opts := o.appendOptions(a)
	b, err := a.currentOrNewBranch(ctx)
	if err != nil {
		return err
	}
	id, err := a.resolve(ctx, rev)
	if err != nil {
		return err
	}
	text, sourceRev, err := o.newTextOrSource(ctx, a, args, id)
	if err != nil {
		return err
	}
	edit, err := b.Edit(ctx, id.String(), text, tract.EditOptions{
		Source: sourceRev, Author: opts.Author, Label: opts.Label, Meta: opts.Meta, Key: opts.Key, Time: opts.Time,
	})
	if err != nil {
		return err
	}
	a.warnInvalidUTF8(text)
	return a.printEdit(ctx, b, edit)
}

// newTextOrSource returns the text that the block gets or, with --source, the id of the commit that
// has it.
func (o *editOptions) newTextOrSource(ctx context.Context, a *app, args []string, edited objects.ID) (text, sourceRev string, err error) {
	if o.source != "" {
		if len(args) > 0 {
			return "", "", usageError("both a text and --source given: use one")
		}
		at, err := a.resolve(ctx, o.source)
		return "", at.String(), err
	}
	before := ""
	if c, err := a.repo.Show(ctx, edited.String()); err == nil && c.Block != nil {
		before = c.Block.String()
	}
	text, err = o.read(ctx, a, args, before)
	return text, "", err
}

// printEdit prints an edit, and warns if it replaces what a model wrote.
func (a *app) printEdit(ctx context.Context, b *tract.Branch, edit objects.ID) error {
	c, err := a.repo.Show(ctx, edit.String())
	if err != nil {
		return err
	}
	block, err := a.repo.Show(ctx, c.Target.String())
	if err != nil {
		return err
	}
	if c.ContentID != block.ContentID && block.Origin != nil && block.Origin.Source != commit.SourceUser && block.Role == content.RoleAssistant {
		a.info("warning: %s was written by %s; prompts now show your text as its own (tract undo takes it back)", block.ID.Short(), firstNonEmpty(block.Origin.Model, "a model"))
	}
	if a.json {
		return a.printAppended(ctx, b, edit)
	}
	p := a.printer()
	p.Edited(b.Name(), edit, format.Commit{Commit: block, Level: block.Priority})
	return p.Err()
}
