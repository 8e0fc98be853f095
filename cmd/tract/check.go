package main

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/llm/providers"
	"github.com/tract-vcs/tract/objects"
)

type checkOptions struct {
	promptFlags
	target string
}

func newCheck(a *app) *cobra.Command {
	o := &checkOptions{}
	cmd := &cobra.Command{
		Use: "check [REV] --for DIALECT[/MODEL]", Short: "Check whether a provider would accept the prompt",
		Long: `Check whether a provider would accept the prompt of a revision; if not, name the rule that
the prompt breaks, and the commit. --for names the dialect or provider; the default is the
provider in the settings. Nothing is sent. The
exit code is 1 if the prompt would be refused.`,
		Example: `  tract check --for anthropic/claude-sonnet-4-5
  tract check try-2 --for chat --json`,
		Args: cobra.MaximumNArgs(1),
		RunE: a.atRevision(func(ctx context.Context, id objects.ID) error { return a.check(ctx, o, id) }),
	}
	o.promptFlags.addFlags(cmd)
	cmd.Flags().StringVar(&o.target, "for", "", "DIALECT or provider, with /MODEL")
	a.completeFlag(cmd, "for", completeWords(providers.Names()...))
	return cmd
}

type checkJSON struct {
	OK       bool          `json:"ok"`
	Problems []problemJSON `json:"problems"`
}

type problemJSON struct {
	Rule    string     `json:"rule"`
	Commit  objects.ID `json:"commit,omitzero"`
	CallID  string     `json:"call_id,omitempty"`
	Path    string     `json:"path,omitempty"`
	Message string     `json:"message"`
	Warning bool       `json:"warning,omitempty"`
}

func (a *app) check(ctx context.Context, o *checkOptions, id objects.ID) error {
	target, err := parseTarget(o.target)
	if o.target == "" {
		target, err = a.client()
	}
	if err != nil {
		return err
	}
	problems, err := a.repo.Check(ctx, id.String(), target, requestOptions(withTarget(target, o.compileOptions())))
	if err != nil {
		return err
	}
	v := checkJSON{OK: true, Problems: []problemJSON{}}
	p := a.printer()
	var rows [][]string
	for _, found := range problems {
		v.OK = v.OK && found.Warning
		v.Problems = append(v.Problems, problemJSON{found.Rule, found.Commit, found.CallID, found.Path, found.Message, found.Warning})
		severity := "warning"
		if !found.Warning {
			severity = p.Warn("refused")
		}
		rows = append(rows, []string{severity, found.Rule, shortOrDashes(found.Commit), found.Message})
	}
	err = a.emit(v, func(p *format.Printer) {
		p.Table(rows)
		switch {
		case v.OK && len(rows) > 0:
			p.Text("only warnings: no known rule refuses it\n")
		case v.OK:
			p.Text("no known rule refuses it\n")
		}
	})
	if err == nil && !v.OK {
		return negativeAnswer()
	}
	return err
}

// warn prints a problem that does not stop a request.
func (a *app) warn(found tract.Problem) {
	at := ""
	if !found.Commit.IsZero() {
		at = " (" + found.Commit.Short() + ")"
	}
	a.info("warning: %s%s [%s]", found.Message, at, found.Rule)
	if found.Rule == tract.RuleUnanswered {
		undo := "tract undo"
		if a.inSession {
			undo = "/undo"
		}
		a.info("hint: to answer it after all: %s, then %s (or --abandon)", undo, a.toolResultCommandOf(found.CallID))
	}
}
