package main

import (
	"github.com/spf13/cobra"
)

func newCompletion(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "completion bash|zsh|fish|powershell", Short: "Print a completion script for a shell",
		Long: `Print a completion script for a shell. It completes commands, flags, branches, revisions,
kinds and settings.`,
		Example: `  tract completion bash > /etc/bash_completion.d/tract
  tract completion zsh > "${fpath[1]}/_tract"
  tract completion fish > ~/.config/fish/completions/tract.fish
  tract completion powershell | Out-String | Invoke-Expression`,
		Args:      cobra.ExactArgs(1),
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.out, true)
			case "zsh":
				return root.GenZshCompletion(a.out)
			case "fish":
				return root.GenFishCompletion(a.out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(a.out)
			}
			return usageError("shell %q: want bash, zsh, fish or powershell", args[0])
		},
	}
}
