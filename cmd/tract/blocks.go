package main

import (
	"fmt"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract/content"
)

// blockOptions are the options of the commands that commit one block of text.
type blockOptions struct {
	appendFlags
	name   string         // of a system block
	format content.Format // of reasoning
	source string         // of reasoning
}

func newSystem(a *app) *cobra.Command {
	o := &blockOptions{}
	cmd := newBlockCommand(a, o, "system", "Commit an instruction", `Commit an instruction to the model. It is pinned: every prompt includes it. A later
instruction with the same --name replaces it.`,
		`  tract system "You are brief."
  tract system --name style -F style.md`,
		func(text string) content.Block {
			b := content.System(text)
			b.Name = o.name
			return b
		})
	cmd.Flags().StringVar(&o.name, "name", "", "name of the instruction; a later one with this name replaces it")
	return cmd
}

func newUser(a *app) *cobra.Command {
	return newBlockCommand(a, &blockOptions{}, "user", "Commit a user message", "Commit a user message. It begins a turn.",
		`  tract user "Why is the sky blue?"
  git diff | tract user
  tract user -F question.md -m "first try"`,
		func(text string) content.Block { return content.User(text) })
}

func newAssistant(a *app) *cobra.Command {
	return newBlockCommand(a, &blockOptions{}, "assistant", "Commit an answer by hand", "Commit an answer by hand, as if a model had written it.",
		`  tract assistant "Because of Rayleigh scattering."`,
		func(text string) content.Block { return content.Assistant(text) })
}

// newReasoningAdd returns the subcommand that commits reasoning.
func newReasoningAdd(a *app) *cobra.Command {
	o := &blockOptions{format: content.FormatParsed}
	cmd := newBlockCommand(a, o, "add", "Commit reasoning by hand", `Commit the reasoning before an answer by hand. Prompts leave it out by default: see
tract compile --include-reasoning and tract pin.`,
		`  tract reasoning add "The question is about scattering, not about reflection."
  tract reasoning add --format raw --source reasoning_content -F reasoning.txt`,
		func(text string) content.Block {
			return content.Reasoning{Text: text, Format: o.format, Source: o.source}
		})
	cmd.Flags().Func("format", "form in which it was received, as a `word`: parsed (default), raw, think_tags, anthropic, …", func(text string) (err error) {
		o.format, err = content.ParseFormat(text)
		return err
	})
	cmd.Flags().StringVar(&o.source, "source", "", "field of the response that had the reasoning, such as reasoning_content")
	cmd.GroupID = ""
	return cmd
}

func newBlockCommand(a *app, o *blockOptions, name, short, long, example string, block func(text string) content.Block) *cobra.Command {
	cmd := &cobra.Command{
		Use: name + " [TEXT|-]", Short: short,
		Long: long + `

The text is the argument, a file (-F FILE), stdin (- or a pipe) or, on a terminal, what
you write in $EDITOR. It is stored byte for byte.`,
		Example: example,
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := o.read(cmd.Context(), a, args, "")
			if err != nil {
				return err
			}
			return a.commitBlock(cmd.Context(), block(text), o.appendOptions(a))
		},
	}
	o.addFlags(a, cmd)
	return cmd
}

// warnInvalidUTF8 warns that text is not valid UTF-8, and therefore cannot be sent exactly as
// stored.
func (a *app) warnInvalidUTF8(text string) {
	if !utf8.ValidString(text) {
		fmt.Fprintln(a.errOut, "tract: warning: the text is not valid UTF-8: it is stored byte for byte, and sent with U+FFFD for invalid bytes")
	}
}
