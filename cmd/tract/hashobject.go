package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/format"
)

func newHashObject(a *app) *cobra.Command {
	o := &textFlags{}
	kind := "user"
	cmd := &cobra.Command{
		Use: "hash-object [TEXT|-]", Short: "Print the id that a text would have as a block",
		Long: `Print the id that the content object of a block with this text would have. Nothing is
stored, and no store is needed.`,
		Example: `  tract hash-object "Hello"
  tract hash-object --kind system -F style.md`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			k, err := content.ParseKind(kind)
			if err != nil || !k.Traits().Text {
				return usageError("--kind %q: want a kind of text: %s", kind, strings.Join(textKinds(), ", "))
			}
			text, err := o.read(cmd.Context(), a, args, "")
			if err != nil {
				return err
			}
			id, err := commit.ContentID(content.Text{Of: k, Text: text})
			if err != nil {
				return err
			}
			return a.emit(map[string]any{"id": id, "kind": kind}, func(p *format.Printer) { p.Line(id.String()) })
		},
	}
	o.addFlags(cmd)
	cmd.Flags().StringVar(&kind, "kind", kind, "kind of block")
	return cmd
}
