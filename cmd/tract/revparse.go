package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/objects"
)

func newRevParse(a *app) *cobra.Command {
	short := false
	cmd := &cobra.Command{
		Use: "rev-parse REV...", Short: "Print the ids of revisions",
		Long: `Print the ids of revisions, one per line. For a range A..B, print the id of B and then, as
git does, the id of A after a ^.`,
		Example: `  tract rev-parse HEAD~2 main@{yesterday}
  tract rev-parse --short HEAD`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := a.newResolver(cmd.Context(), args...)
			if err != nil {
				return err
			}
			lines := []string{}
			for _, rev := range args {
				from, to, err := r.Range(cmd.Context(), rev)
				if err != nil {
					return err
				}
				for _, line := range []struct {
					mark string
					id   objects.ID
				}{{"", to}, {"^", from}} {
					switch {
					case line.id.IsZero():
					case short:
						lines = append(lines, line.mark+line.id.Short())
					default:
						lines = append(lines, line.mark+line.id.String())
					}
				}
			}
			return a.emit(lines, func(p *format.Printer) { p.Text(strings.Join(lines, "\n") + "\n") })
		},
	}
	cmd.Flags().BoolVar(&short, "short", false, "print abbreviated ids")
	return cmd
}
