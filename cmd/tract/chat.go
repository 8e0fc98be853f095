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
	requestFlags
	system  string
	attach  []string
	newName string
	resume  bool
}

// newNameDefault is the value of --new without a name, as the help shows it.
const newNameDefault = "chat-TIME"

func newChat(a *app) *cobra.Command {
	o := &chatOptions{}
	cmd := &cobra.Command{
		Use: "chat [TEXT|-]", Short: "Send a message and commit the response",
		Long: `Commit a user message, ask the model, and commit its response. Text from a pipe is put
before TEXT. If the request fails, the message stays committed: tract generate asks again.

Without TEXT, on a terminal, chat starts an interactive session; /help lists its commands.`,
		Example: `  tract chat "Why is the sky blue?" --provider anthropic --model claude-sonnet-4-5
  git diff | tract chat "Write a commit message"
  tract chat -a sky.png -s "You are a physicist." "What colour is this?"
  tract chat --new=research "Let us start over"
  tract chat`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return a.chat(cmd, o, args) },
	}
	o.requestFlags.addFlags(a, cmd)
	f := cmd.Flags()
	f.StringVarP(&o.system, "system", "s", "", "instruction; replaces an earlier one given with this flag")
	f.StringArrayVarP(&o.attach, "attach", "a", nil, "image or file to attach, as a path or a URL")
	f.StringVar(&o.newName, "new", "", "start an empty conversation on a new branch and move HEAD there; with --branch, use that branch and leave HEAD")
	f.BoolVarP(&o.resume, "continue", "c", false, "continue the conversation that moved last")
	f.Lookup("new").NoOptDefVal = newNameDefault
	cmd.MarkFlagsMutuallyExclusive("new", "continue")
	return cmd
}

func (a *app) chat(cmd *cobra.Command, o *chatOptions, args []string) error {
	ctx := cmd.Context()
	if len(args) == 0 && isTerminal(a.in) && isTerminal(a.out) && !a.json && !o.jsonl {
		return a.runSession(cmd, o)
	}
	blocks, err := a.chatBlocks(ctx, o, args)
	if err != nil {
		return err
	}
	client, opts, err := a.clientAndOptions(ctx, &o.requestFlags)
	if err != nil {
		return err
	}
	if err := a.selectBranch(cmd, o); err != nil {
		return err
	}
	if o.dryRun {
		return a.printChatDryRun(ctx, o, client, blocks, opts)
	}
	b, err := a.currentOrNewBranch(ctx)
	if err != nil {
		return err
	}
	if err := a.commitInstruction(ctx, b, o.system); err != nil {
		return err
	}
	_, err = a.ask(ctx, &o.requestFlags, b, client, blocks, opts)
	return err
}

// ask commits a user message, if there is one, asks the model, and shows the response. It
// reports whether it committed the message.
func (a *app) ask(ctx context.Context, o *requestFlags, b *tract.Branch, client model, message []content.Block, opts tract.AskOptions) (messageCommitted bool, err error) {
	err = a.newResponsePrinter(o).askAndPrint(b, client.Address().Provider, opts, func(opts tract.AskOptions) (*tract.Response, error) {
		if len(message) > 0 {
			if _, err := b.Append(ctx, message, tract.AppendOptions{Key: opts.Key, OnWarning: opts.OnWarning}); err != nil {
				return nil, err
			}
			messageCommitted = true
		}
		return b.Generate(ctx, client, opts)
	})
	return messageCommitted, err
}

// chatBlocks returns the blocks of a message: attachments, then text from a pipe, then TEXT.
func (a *app) chatBlocks(ctx context.Context, o *chatOptions, args []string) ([]content.Block, error) {
	if len(args) > 1 {
		return nil, usageError("%d arguments given: put quotes around the text", len(args))
	}
	var parts []string
	if len(args) == 1 && args[0] != "-" {
		piped, err := a.readPipe(ctx)
		if err != nil {
			return nil, err
		}
		parts = []string{piped, args[0]}
	} else {
		text, err := (&textFlags{}).read(ctx, a, args, "")
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
		m, err := newMediaBlock(ctx, mediaKind(path), path, "")
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, m)
	}
	text := strings.Join(said, "\n\n")
	a.warnInvalidUTF8(text)
	if text == "" && len(blocks) > 0 {
		return blocks, nil
	}
	if text == "" {
		return nil, fmt.Errorf("chat: %w", tract.ErrEmpty)
	}
	return append(blocks, content.User(text)), nil
}

// selectBranch selects the branch for --new or --continue.
func (a *app) selectBranch(cmd *cobra.Command, o *chatOptions) error {
	ctx := cmd.Context()
	switch {
	case o.resume:
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
	case o.newName == newNameDefault && cmd.Flags().Changed("branch"):
		repo, err := a.open(ctx, !o.dryRun)
		if err != nil {
			return err
		}
		a.newBranch = true
		return checkBranchIsNew(ctx, repo.Branch(a.branch))
	case o.newName != "" && o.dryRun:
		a.branch, a.newBranch = conversationName(o.newName), true
	case o.newName != "":
		return a.startConversation(ctx, conversationName(o.newName))
	}
	return nil
}

// conversationName returns the name of the branch that --new starts: its value or, if that is
// newNameDefault, a name with the present time.
func conversationName(newFlag string) string {
	if newFlag == newNameDefault {
		return timestampedName("chat")
	}
	return newFlag
}

// timestampedName returns a name for a new branch: a prefix, - and the present time.
func timestampedName(prefix string) string {
	return prefix + "-" + time.Now().Format("20060102-150405")
}

// startConversation selects a new, empty branch.
func (a *app) startConversation(ctx context.Context, name string) error {
	if err := a.setHeadToEmptyBranch(ctx, "start a conversation", name, true); err != nil {
		return err
	}
	a.branch = ""
	a.info("new conversation on branch %s", name)
	return nil
}

// chatSystem is the name of the instruction that --system commits, so that a later one replaces
// it.
const chatSystem = "chat"

// commitInstruction commits an instruction, unless the branch already has it as the current one.
func (a *app) commitInstruction(ctx context.Context, b *tract.Branch, text string) error {
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

// printChatDryRun prints the request that a chat would send.
func (a *app) printChatDryRun(ctx context.Context, o *chatOptions, client model, blocks []content.Block, opts tract.AskOptions) error {
	repo, err := a.open(ctx, false)
	if err != nil {
		return err
	}
	name, err := a.branchOfFlagOrHead(ctx)
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
		a.info("the printed request lacks --system, which would be committed first")
	}
	return a.printDryRun(ctx, rev, client, opts, blocks...)
}
