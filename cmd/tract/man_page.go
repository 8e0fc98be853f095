package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func markdownFile(cmd *cobra.Command) string {
	return strings.ReplaceAll(cmd.CommandPath(), " ", "_") + ".md"
}

// markdownPage is the page of a command for docs/cli.
func markdownPage(cmd *cobra.Command) string {
	cmd.InitDefaultHelpFlag()
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n%s\n\n", cmd.CommandPath(), cmd.Short)
	if cmd.Long != "" {
		fmt.Fprintf(&b, "### Synopsis\n\n%s\n\n", cmd.Long)
	}
	fmt.Fprintf(&b, "```\n%s\n```\n\n", cmd.UseLine())
	fenced := func(title, text string) {
		if text != "" {
			fmt.Fprintf(&b, "### %s\n\n```\n%s\n```\n\n", title, strings.TrimRight(text, "\n"))
		}
	}
	fenced("Examples", cmd.Example)
	fenced("Options", cmd.NonInheritedFlags().FlagUsages())
	fenced("Options inherited from parent commands", cmd.InheritedFlags().FlagUsages())
	b.WriteString("### SEE ALSO\n\n")
	for _, other := range related(cmd) {
		fmt.Fprintf(&b, "* [%s](%s)\t - %s\n", other.CommandPath(), markdownFile(other), other.Short)
	}
	b.WriteString("\n")
	return b.String()
}

// roffPage is the page of a command for man. It has no date: a page changes only
// when its words do.
func roffPage(cmd *cobra.Command) string {
	cmd.InitDefaultHelpFlag()
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
	var b strings.Builder
	fmt.Fprintf(&b, ".TH \"%s\" \"1\" \"\" \"%s\" \"tract manual\"\n.nh\n", strings.ToUpper(name), roff("tract "+version))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(name), roff(cmd.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n\\fB%s\\fP\n", roff(cmd.UseLine()))
	b.WriteString(".SH DESCRIPTION\n")
	for i, paragraph := range strings.Split(cmp.Or(cmd.Long, cmd.Short), "\n\n") {
		if i > 0 {
			b.WriteString(".PP\n")
		}
		if strings.HasPrefix(paragraph, " ") || strings.Contains(paragraph, "\n ") { // lines that are to stay lines
			fmt.Fprintf(&b, ".nf\n%s\n.fi\n", roff(paragraph))
			continue
		}
		b.WriteString(roff(paragraph) + "\n")
	}
	roffFlags(&b, "OPTIONS", cmd.NonInheritedFlags())
	roffFlags(&b, "OPTIONS INHERITED FROM PARENT COMMANDS", cmd.InheritedFlags())
	if cmd.Example != "" {
		fmt.Fprintf(&b, ".SH EXAMPLES\n.nf\n%s\n.fi\n", roff(cmd.Example))
	}
	var others []string
	for _, other := range related(cmd) {
		others = append(others, fmt.Sprintf("\\fB%s\\fP(1)", roff(strings.ReplaceAll(other.CommandPath(), " ", "-"))))
	}
	fmt.Fprintf(&b, ".SH SEE ALSO\n%s\n", strings.Join(others, ",\n"))
	return b.String()
}

func roffFlags(b *strings.Builder, title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	fmt.Fprintf(b, ".SH %s\n", title)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Deprecated != "" {
			return
		}
		value, text := pflag.UnquoteUsage(f)
		b.WriteString(".TP\n")
		if f.Shorthand != "" {
			fmt.Fprintf(b, "\\fB%s\\fP, ", roff("-"+f.Shorthand))
		}
		fmt.Fprintf(b, "\\fB%s\\fP", roff("--"+f.Name))
		switch {
		case f.NoOptDefVal != "" && f.Value.Type() != "bool":
			fmt.Fprintf(b, "[=\\fI%s\\fP]", roff(value))
		case value != "":
			fmt.Fprintf(b, " \\fI%s\\fP", roff(value))
		}
		switch f.DefValue {
		case "", "0", "false", "[]", "0s":
		default:
			text += fmt.Sprintf(" (default %s)", f.DefValue)
		}
		b.WriteString("\n" + roff(text) + "\n")
	})
}

// related is the command above, and those below.
func related(cmd *cobra.Command) []*cobra.Command {
	if cmd.HasParent() {
		return append([]*cobra.Command{cmd.Parent()}, subcommands(cmd)...)
	}
	return subcommands(cmd)
}

// roff is text in which nothing speaks to the formatter. A hyphen is one that can
// be copied into a shell.
func roff(text string) string {
	lines := strings.Split(strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
