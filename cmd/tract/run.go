package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract"
)

// run executes one command line and returns its exit code. Tests call it in-process.
func run(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	return newApp(in, out, errOut).run(ctx, args)
}

func (a *app) run(ctx context.Context, args []string) int {
	ctx, a.cancel = context.WithCancel(ctx)
	defer a.cancel()
	root := newRoot(a)
	root.SetArgs(args)
	help := &errWriter{w: a.out} // cobra passes over what cannot be written
	root.SetOut(help)
	cmd, err := root.ExecuteContextC(ctx)
	err = a.damage.finalError(err)
	if err != nil && !a.running && !errors.As(err, new(*failure)) {
		err = &failure{code: codeUsage, kind: "usage", hint: "see tract --help", cause: shortenExclusive(err)}
	}
	if f := (*failure)(nil); errors.As(err, &f) && f.kind == "usage" && f.hint == "" {
		err = withHint(err, "see %s --help", cmd.CommandPath())
	}
	if err != nil && !a.running && slices.Contains(args, "--json") {
		a.json = true // it may stand behind the flag that is wrong
	}
	a.reportSecrets()
	closed := a.close()
	err = cmp.Or(err, closed, help.err)
	return a.report(ctx, err)
}

// errWriter keeps the first error of a writer.
type errWriter struct {
	w   io.Writer
	err error
}

// Write writes p unless an earlier write failed.
func (n *errWriter) Write(b []byte) (int, error) {
	if n.err != nil {
		return 0, n.err
	}
	at, err := n.w.Write(b)
	n.err = err
	return at, err
}

// shortenExclusive shortens cobra's error about mutually exclusive flags.
func shortenExclusive(err error) error {
	_, group, ok := strings.Cut(err.Error(), "; [")
	flags, _, _ := strings.Cut(group, "] were all set")
	if !ok {
		return err
	}
	return fmt.Errorf("--%s given: use one", strings.ReplaceAll(flags, " ", " and --"))
}

// newRoot returns the root command with all commands.
func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "tract",
		Short: "Version control for the context of language models",
		Long: `Tract keeps the context of language models in a content-addressed store: every block of
a conversation is an immutable commit, reasoning is committed before the answer that it
led to, and the prompt of any moment can be compiled again.`,
		Example: `  tract demo                        a conversation with a recorded model, no key needed
  tract init
  tract chat "Why is the sky blue?" --provider anthropic --model claude-sonnet-4-5
  tract log
  tract compile --explain`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.errOut)
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(flagError)
	root.AddGroup(
		&cobra.Group{ID: groupTalk, Title: "Converse:"},
		&cobra.Group{ID: groupLook, Title: "Look back:"},
		&cobra.Group{ID: groupShape, Title: "Change the history and what is sent:"},
		&cobra.Group{ID: groupStore, Title: "Store and settings:"},
		&cobra.Group{ID: groupPlumb, Title: "Plumbing:"},
	)
	a.globalFlags(root)
	for _, c := range commands() {
		cmd := c.make(a)
		cmd.GroupID = c.group
		root.AddCommand(cmd)
	}
	root.SetHelpCommand(newHelp())
	usageOf := root.UsageFunc() // no template: that would keep the linker from leaving out what nothing calls
	root.SetUsageFunc(func(cmd *cobra.Command) error {
		defer cmd.Print(exitCodeHelp)
		return usageOf(cmd)
	})
	a.addCommonBehavior(root)
	return root
}

// unknownCommandError returns the error for an unknown command, with a suggestion.
func unknownCommandError(cmd *cobra.Command, name string) error {
	cmd.SuggestionsMinimumDistance = 2
	f := classify(usageError("unknown command %q of %s", name, cmd.CommandPath()))
	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		f.hint = "did you mean " + strings.Join(near, ", ") + "?"
	}
	return f
}

// addCommonBehavior adds to a command and its subcommands what all of them need: a wrong number of arguments
// is a usage error, arguments are completed, and RunE records that the command has started, since
// earlier errors are usage errors.
func (a *app) addCommonBehavior(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			err := check(cmd, args)
			switch {
			case err == nil || errors.As(err, new(*failure)):
				return err
			case cmd.HasSubCommands():
				return unknownCommandError(cmd, args[0])
			}
			_, want, _ := strings.Cut(cmd.Use, " ")
			if want == "" {
				want = "none"
			}
			return usageError("%s given: want %s", count(len(args), "argument"), want)
		}
	}
	if cmd.ValidArgsFunction == nil && len(cmd.ValidArgs) == 0 {
		cmd.ValidArgsFunction = a.completeArguments
	}
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			a.running = true
			cmd.SetContext(tract.AsOperation(cmd.Context(), strings.TrimPrefix(cmd.CommandPath(), "tract ")))
			if isTerminal(a.out) || !slices.Contains(defaultSignals, cmd.CommandPath()) {
				a.catchSignals()
			}
			return run(cmd, args)
		}
	}
	for _, sub := range cmd.Commands() {
		a.addCommonBehavior(sub)
	}
}
