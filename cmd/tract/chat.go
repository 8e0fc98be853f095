package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/content"
)

type chatOptions struct {
	asking
	system  string
	attach  []string
	fresh   string
	goingOn bool
	auto    bool // compress
}

// unnamed is the value of --new without a name, as the help shows it.
const unnamed = "chat-TIME"

func newChat(a *app) *cobra.Command {
	o := &chatOptions{}
	cmd := &cobra.Command{
		Use: "chat [TEXT|-]", Short: "Say something and commit what the model answers",
		Long: `Commit what you say, ask the model, and commit what it answers. What comes through
a pipe is sent before the text. When asking fails what you said stays: tract
generate asks again.

Without a text, on a terminal, it is a session: /help lists its commands.`,
		Example: `  tract chat "Why is the sky blue?" --provider anthropic --model claude-sonnet-4-5
  git diff | tract chat "Write a commit message"
  tract chat -a sky.png -s "You are a physicist." "What colour is this?"
  tract chat --new=research "Let us begin anew"
  tract chat`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return a.chat(cmd, o, args) },
	}
	o.asking.flags(a, cmd)
	f := cmd.Flags()
	f.StringVarP(&o.system, "system", "s", "", "an instruction, in the place of an earlier one given so")
	f.StringArrayVarP(&o.attach, "attach", "a", nil, "an image or a file to send along, as a path or an address")
	f.StringVar(&o.fresh, "new", "", "begin an empty conversation, on a branch of this name, and go there; with --branch, there, and HEAD stays")
	f.BoolVarP(&o.goingOn, "continue", "c", false, "go on with the conversation that was moved last")
	f.BoolVar(&o.auto, "auto-compress", false, "when the prompt has passed compress.at, let the model sum up its older turns first")
	f.Lookup("new").NoOptDefVal = unnamed
	cmd.MarkFlagsMutuallyExclusive("new", "continue")
	return cmd
}

func (a *app) chat(cmd *cobra.Command, o *chatOptions, args []string) error {
	ctx := cmd.Context()
	if len(args) == 0 && isTerminal(a.in) && isTerminal(a.out) && !a.json && !o.jsonl {
		return a.session(cmd, o)
	}
	blocks, err := a.chatBlocks(cmd, o, args)
	if err != nil {
		return err
	}
	client, opts, err := a.prepare(cmd, &o.asking)
	if err != nil {
		return err
	}
	if err := a.choose(cmd, o); err != nil {
		return err
	}
	if o.dryRun {
		return a.dryChat(ctx, o, client, blocks, opts)
	}
	b, err := a.current(ctx)
	if err != nil {
		return err
	}
	if err := a.instruct(ctx, b, o.system); err != nil {
		return err
	}
	s, err := a.asker(&o.asking)
	if err != nil {
		return err
	}
	if o.auto {
		if err := a.suggest(ctx, b, client, true); err != nil {
			return err
		}
	}
	err = s.ask(b, client.Address().Provider, opts, func(opts tract.AskOptions) (*tract.Response, error) {
		return askBlocks(ctx, b, client, blocks, opts)
	})
	if err == nil && !o.auto {
		err = a.suggest(ctx, b, client, false)
	}
	return err
}

// askBlocks commits what a person says and asks the model.
func askBlocks(ctx context.Context, b *tract.Branch, client model, blocks []content.Block, opts tract.AskOptions) (*tract.Response, error) {
	if _, err := b.Append(ctx, blocks, tract.AppendOptions{Key: opts.Key, OnWarning: opts.OnWarning}); err != nil {
		return nil, err
	}
	return b.Generate(ctx, client, opts)
}

// chatBlocks is what is said: attachments, then what came through a pipe, then
// the text.
func (a *app) chatBlocks(cmd *cobra.Command, o *chatOptions, args []string) ([]content.Block, error) {
	if len(args) > 1 {
		return nil, usage(cmd, "%d texts given: put quotes around one text", len(args))
	}
	var parts []string
	if len(args) == 1 && args[0] != "-" {
		piped, err := a.piped(cmd.Context())
		if err != nil {
			return nil, err
		}
		parts = []string{piped, args[0]}
	} else {
		text, err := (&words{}).read(cmd.Context(), a, cmd, args, "")
		if err != nil {
			return nil, err
		}
		parts = []string{text}
	}
	var said []string
	for _, part := range parts {
		if part != "" {
			said = append(said, part)
		}
	}
	var blocks []content.Block
	for _, path := range o.attach {
		m, err := media(cmd.Context(), mediaKind(path), path, "")
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, m)
	}
	text := strings.Join(said, "\n\n")
	a.warnBytes(text)
	if text == "" && len(blocks) > 0 {
		return blocks, nil
	}
	if text == "" {
		return nil, fmt.Errorf("chat: %w", tract.ErrEmpty)
	}
	return append(blocks, content.User(text)), nil
}

// choose goes to the conversation that --new or --continue names.
func (a *app) choose(cmd *cobra.Command, o *chatOptions) error {
	ctx := cmd.Context()
	switch {
	case o.goingOn:
		repo, err := a.open(ctx, false)
		if err != nil {
			return err
		}
		for info, err := range repo.Refs(ctx, tract.RefQuery{Newest: true, Limit: 1}) {
			if err != nil {
				return err
			}
			a.branch = info.Name
		}
	case o.fresh == unnamed && cmd.Flags().Changed("branch"):
		repo, err := a.open(ctx, !o.dryRun)
		if err != nil {
			return err
		}
		a.fresh = true
		return free(ctx, repo.Branch(a.branch))
	case o.fresh != "" && o.dryRun:
		a.branch, a.fresh = freshName(o.fresh), true
	case o.fresh != "":
		return a.beginNew(ctx, freshName(o.fresh))
	}
	return nil
}

func freshName(name string) string {
	if name == unnamed {
		return "chat-" + time.Now().Format("20060102-150405")
	}
	return name
}

// beginNew goes to an empty branch.
func (a *app) beginNew(ctx context.Context, name string) error {
	if err := a.goToEmpty(ctx, "begin a conversation", name, true); err != nil {
		return err
	}
	a.branch = ""
	a.note("a new conversation, on branch %s", name)
	return nil
}

// chatSystem is the name of the instruction that --system gives, so that a later
// one takes its place.
const chatSystem = "chat"

// instruct commits an instruction, unless it is the one that holds already.
func (a *app) instruct(ctx context.Context, b *tract.Branch, text string) error {
	if text == "" {
		return nil
	}
	block := content.System(text)
	block.Name = chatSystem
	tip, err := b.Tip(ctx)
	if err != nil {
		return err
	}
	if !tip.IsZero() {
		p, err := a.repo.Compile(ctx, tip.String(), tract.CompileOptions{})
		if err != nil {
			return err
		}
		for _, m := range p.Messages {
			for _, said := range m.Blocks {
				if t, ok := said.(content.Text); ok && t.Of == content.KindSystem && t.Name == chatSystem && t.Text == text {
					return nil
				}
			}
		}
	}
	_, err = b.Append(ctx, []content.Block{block}, tract.AppendOptions{})
	return err
}

// dryChat prints the request that a chat would send.
func (a *app) dryChat(ctx context.Context, o *chatOptions, client model, blocks []content.Block, opts tract.AskOptions) error {
	repo, err := a.open(ctx, false)
	if err != nil {
		return err
	}
	name, err := a.branchName(ctx)
	if err != nil {
		return err
	}
	rev := ""
	if name != "" {
		tip, err := repo.Branch(name).Tip(ctx)
		if err != nil {
			return err
		}
		if !tip.IsZero() {
			rev = tip.String()
		}
	}
	if o.system != "" {
		a.note("--system is not in the request that --dry-run prints: it would be committed first")
	}
	return a.dryRun(ctx, rev, client, opts, blocks...)
}
