package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

type manOptions struct{ format, dir string }

func newMan(a *app) *cobra.Command {
	o := &manOptions{}
	cmd := &cobra.Command{
		Use: "man [COMMAND]", Short: "Print the manual page of a command, or write them all",
		Long: `Print the manual page of a command (of tract itself when none is named), or write
the pages of all commands into a folder. They are made from the same words as
--help.`,
		Example: `  tract man log | man -l -
  tract man --dir ~/.local/share/man/man1
  tract man --format markdown --dir docs/cli`,
		Args: cobra.MaximumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error { return a.man(cmd, o, args) },
	}
	cmd.Flags().StringVar(&o.format, "format", "man", "man or markdown")
	cmd.Flags().StringVar(&o.dir, "dir", "", "folder to write all pages to")
	a.completeFlag(cmd, "format", cobra.FixedCompletions([]string{"man", "markdown"}, cobra.ShellCompDirectiveNoFileComp))
	if f := cmd.Flags().Lookup("dir"); f != nil {
		f.Usage += " (not the store)"
	}
	return cmd
}

// manual is a way to write the pages: a page, and the name of its file.
type manual struct {
	page func(*cobra.Command) string
	file func(*cobra.Command) string
}

var manuals = map[string]manual{
	"man": {page: roffPage, file: func(cmd *cobra.Command) string {
		return strings.ReplaceAll(cmd.CommandPath(), " ", "-") + ".1"
	}},
	"markdown": {page: markdownPage, file: markdownFile},
}

func (a *app) man(cmd *cobra.Command, o *manOptions, args []string) error {
	m, ok := manuals[o.format]
	if !ok {
		return usageError(cmd, "--format %q: want man or markdown", o.format)
	}
	root := cmd.Root()
	if o.dir != "" {
		if err := os.MkdirAll(o.dir, 0o777); err != nil {
			return err
		}
		return m.writeAll(root, o.dir)
	}
	page, rest, err := root.Find(args)
	if err != nil || len(rest) > 0 {
		return usageError(cmd, "%q is no command of tract", strings.Join(args, " "))
	}
	_, err = a.out.Write([]byte(m.page(page)))
	return err
}

// writeAll writes the pages of a command and of those below it.
func (m manual) writeAll(cmd *cobra.Command, dir string) error {
	if err := os.WriteFile(filepath.Join(dir, m.file(cmd)), []byte(m.page(cmd)), 0o666); err != nil {
		return err
	}
	for _, sub := range subcommands(cmd) {
		if err := m.writeAll(sub, dir); err != nil {
			return err
		}
	}
	return nil
}

// subcommands is the commands of a command, and the topics of its help, by their names.
func subcommands(cmd *cobra.Command) (list []*cobra.Command) {
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() || sub.IsAdditionalHelpTopicCommand() {
			list = append(list, sub)
		}
	}
	return list
}
