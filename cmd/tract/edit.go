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

func newEdit(a *app) *cobra.Command {
	o := &adding{}
	cmd := &cobra.Command{
		Use: "edit REV [TEXT|-]", Short: "Replace the text of a block from now on",
		Long: `Replace the text of a block from now on. The old text stays in the history: it
is what earlier prompts had, and tract show and tract diff find it. The kind and
the role stay; a seal that proved the old text goes. On a terminal, without a
text, the block is opened in $EDITOR.`,
		Example: `  tract edit :/blue "Why is the sky blue at noon?"
  tract edit 'HEAD^{turn}' -F question.md
  tract edit 9198ae4`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.editBlock(cmd, o, args[0], args[1:]) },
	}
	o.flags(a, cmd)
	cmd.ValidArgsFunction = a.completeFirstRevision
	return cmd
}

func (a *app) editBlock(cmd *cobra.Command, o *adding, rev string, args []string) error {
	ctx := cmd.Context()
	opts, err := o.options(a, cmd)
	if err != nil {
		return err
	}
	b, err := a.current(ctx)
	if err != nil {
		return err
	}
	id, err := a.resolve(ctx, rev)
	if err != nil {
		return err
	}
	before := ""
	if c, err := a.repo.Show(ctx, id.String()); err == nil && c.Block != nil {
		before = c.Block.String()
	}
	text, err := o.read(ctx, a, cmd, args, before)
	if err != nil {
		return err
	}
	edited, err := b.Edit(ctx, id.String(), text, opts...)
	if err != nil {
		return err
	}
	a.warnBytes(text)
	return a.edited(ctx, b, edited)
}

// edited says what an edit has replaced, and warns when that was said by a model.
func (a *app) edited(ctx context.Context, b *tract.Branch, edit objects.ID) error {
	c, err := a.repo.Show(ctx, edit.String())
	if err != nil {
		return err
	}
	block, err := a.repo.Show(ctx, c.Target.String())
	if err != nil {
		return err
	}
	if block.From != nil && block.From.Source != commit.SourceUser && block.Role == content.RoleAssistant {
		a.note("warning: %s was said by %s: from now on prompts have your words as its own; tract undo takes them back", block.ID.Short(), firstOf(block.From.Model, "a model"))
	}
	if a.json {
		return a.added(ctx, b, edit)
	}
	p := a.printer()
	p.Edited(b.Name(), edit, format.Commit{Commit: block, Level: block.Priority})
	return p.Err()
}
