package main

import (
	"github.com/spf13/cobra"
)

// newHelp returns the command help. Unlike cobra's own, it returns an error for an unknown
// command.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND|TOPIC]", Short: "Show the help of a command", GroupID: groupStore,
		Long: `Show the help of a command, as --help does, or of a topic: tract help environment lists the
environment variables that tract reads.`,
		Example: "  tract help log\n  tract help config set\n  tract help environment",
		RunE: func(cmd *cobra.Command, args []string) error {
			page, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return unknownCommandError(page, rest[0])
			}
			page.InitDefaultHelpFlag()
			return page.Help()
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			var names []string
			if page, rest, err := cmd.Root().Find(args); err == nil && len(rest) == 0 {
				for _, sub := range subcommands(page) {
					names = append(names, sub.Name()+"\t"+sub.Short)
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
}
