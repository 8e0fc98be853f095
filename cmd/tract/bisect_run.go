package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/objects"
)

func newBisectRun(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "run COMMAND [ARGUMENT...]", Short: "Search with a command that tests each prompt",
		Long: `Run a command on each prompt until the first bad commit is found. The command reads the
prompt from stdin or from the file that TRACT_PROMPT names. TRACT_COMMIT has the id of the
commit; tract compile "$TRACT_COMMIT" prints the prompt in other forms. Exit code 0 marks
the prompt good, 125 skips it, any other code up to 127 marks it bad; a code above 127 ends
the search.`,
		Example: `  tract bisect run grep -q deadline
  tract bisect run sh -c 'tract compile --for chat "$TRACT_COMMIT" | ./ask-and-check.sh'`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.bisectRun(cmd.Context(), args) },
	}
	cmd.Flags().SetInterspersed(false) // flags after COMMAND belong to it
	return cmd
}

// codeSkip is the exit code of a command that cannot test a prompt.
const codeSkip = 125

func (a *app) bisectRun(ctx context.Context, args []string) error {
	b, err := a.readBisection(ctx)
	if err != nil {
		return err
	}
	if b.lastMarkedBad.IsZero() || len(b.good) == 0 {
		err := errors.New("bisect run: mark a good and a bad commit first")
		return &failure{code: codeNo, kind: "bisect", cause: err, hint: "tract bisect start BAD GOOD"}
	}
	for b.next != nil {
		id := b.next.ID
		code, err := a.runOnPrompt(ctx, id, args)
		if err != nil {
			return err
		}
		word := "bad"
		switch {
		case code == codeSkip:
			word = "skip"
		case code == 0:
			word = "good"
		case code < 0 || code > 127:
			err := fmt.Errorf("bisect run: %s exited with code %d at %s", args[0], code, id.Short())
			return &failure{code: codeNo, kind: "bisect", cause: err, hint: "exit code 0 is good, 125 skips, other codes up to 127 are bad"}
		}
		a.info("%s is %s", id.Short(), word)
		b.mark(word, id)
		if err := a.chooseNextAndSave(ctx, b); err != nil {
			return err
		}
	}
	if err := a.printBisection(ctx, b); err != nil {
		return err
	}
	if !b.found {
		return negativeAnswer()
	}
	return nil
}

// runOnPrompt runs the command on the prompt of a commit and returns its exit code.
func (a *app) runOnPrompt(ctx context.Context, id objects.ID, args []string) (exitCode int, err error) {
	p, err := a.repo.Compile(ctx, id.String(), tract.CompileOptions{})
	if err != nil {
		return 0, err
	}
	var prompt bytes.Buffer
	format.New(&prompt, format.Options{Raw: true}).Prompt(p)
	file, err := writeTemp("tract-prompt-*", prompt.Bytes())
	if err != nil {
		return 0, err
	}
	defer os.Remove(file) //nolint:errcheck // nothing depends on it
	run := exec.CommandContext(ctx, args[0], args[1:]...)
	run.Stdin, run.Stdout, run.Stderr = &prompt, a.out, a.errOut
	if a.json {
		run.Stdout = a.errOut
	}
	run.Env = append(os.Environ(), "TRACT_PROMPT="+file, "TRACT_COMMIT="+id.String())
	err = run.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && ctx.Err() == nil {
		return exit.ExitCode(), nil
	}
	if err != nil && ctx.Err() != nil {
		return 0, ctx.Err()
	}
	if err != nil && run.ProcessState == nil {
		return 0, withHint(fmt.Errorf("bisect run: %w", err), "give an executable command, such as sh -c '...'")
	}
	return run.ProcessState.ExitCode(), nil // whether or not it read all of its stdin
}
