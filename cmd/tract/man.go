package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

func newMan(a *app) *cobra.Command {
	dir := ""
	cmd := &cobra.Command{
		Use: "man [COMMAND]", Short: "Print or write manual pages",
		Long: `Print the manual page of a command (default: of tract itself), or write it and the pages of all
commands below it into a folder. The pages are generated from the text of --help.`,
		Example: `  tract man log | man -l -
  tract man --dir ~/.local/share/man/man1`,
		Args: cobra.MaximumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error { return a.man(cmd, dir, args) },
	}
	cmd.Flags().StringVar(&dir, "dir", "", "write the pages to this folder (not the store)")
	return cmd
}

func (a *app) man(cmd *cobra.Command, dir string, args []string) error {
	found, rest, err := cmd.Root().Find(args)
	if err != nil || len(rest) > 0 {
		return usageError("unknown command %q", strings.Join(args, " "))
	}
	if dir != "" {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return err
		}
		return eachCommand(found, func(cmd *cobra.Command) error {
			return os.WriteFile(filepath.Join(dir, manName(cmd)+".1"), []byte(manPage(cmd)), 0o666)
		})
	}
	_, err = a.out.Write([]byte(manPage(found)))
	return err
}

// eachCommand calls visit for a command and all commands below it.
func eachCommand(cmd *cobra.Command, visit func(*cobra.Command) error) error {
	if err := visit(cmd); err != nil {
		return err
	}
	for _, sub := range subcommands(cmd) {
		if err := eachCommand(sub, visit); err != nil {
			return err
		}
	}
	return nil
}

// subcommands returns the commands and help topics directly below a command, by name.
func subcommands(cmd *cobra.Command) (list []*cobra.Command) {
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() || sub.IsAdditionalHelpTopicCommand() {
			list = append(list, sub)
		}
	}
	return list
}

// parentAndSubcommands returns the parent of a command and its subcommands.
func parentAndSubcommands(cmd *cobra.Command) []*cobra.Command {
	if cmd.HasParent() {
		return append([]*cobra.Command{cmd.Parent()}, subcommands(cmd)...)
	}
	return subcommands(cmd)
}

// manSection is a part of a page whose lines are printed without filling.
type manSection struct{ title, text string }

// manSectionsAfterDescription returns the sections of a command's page after its description.
func manSectionsAfterDescription(cmd *cobra.Command) []manSection {
	return []manSection{
		{"Examples", cmd.Example},
		{"Options", cmd.NonInheritedFlags().FlagUsages()},
		{"Options inherited from parent commands", cmd.InheritedFlags().FlagUsages()},
	}
}

func manName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manPage returns the page of a command for man. It has no date: a page changes only with its
// text.
func manPage(cmd *cobra.Command) string {
	cmd.InitDefaultHelpFlag()
	var b strings.Builder
	fmt.Fprintf(&b, ".TH \"%s\" \"1\" \"\" \"%s\" \"tract manual\"\n.nh\n", strings.ToUpper(manName(cmd)), escapeRoff("tract "+version))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", escapeRoff(manName(cmd)), escapeRoff(cmd.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n\\fB%s\\fP\n", escapeRoff(cmd.UseLine()))
	for _, s := range append([]manSection{{"Description", cmp.Or(cmd.Long, cmd.Short)}}, manSectionsAfterDescription(cmd)...) {
		if s.text != "" {
			fmt.Fprintf(&b, ".SH %s\n.nf\n%s\n.fi\n", strings.ToUpper(s.title), escapeRoff(strings.TrimRight(s.text, "\n")))
		}
	}
	var others []string
	for _, other := range parentAndSubcommands(cmd) {
		others = append(others, fmt.Sprintf("\\fB%s\\fP(1)", escapeRoff(manName(other))))
	}
	fmt.Fprintf(&b, ".SH SEE ALSO\n%s\n", strings.Join(others, ",\n"))
	return b.String()
}

// escapeRoff escapes text so that the formatter reads no command in it, and hyphens can be copied.
func escapeRoff(text string) string {
	lines := strings.Split(strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
