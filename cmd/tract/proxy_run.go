package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"
)

func newProxyRun(a *app) *cobra.Command {
	o := &proxyOptions{}
	cmd := &cobra.Command{
		Use:   "run [flags] -- COMMAND [ARG...]",
		Short: "Run an agent and record its requests",
		Long: `Run COMMAND with its base URL set to a proxy on a free port of this machine, and record
its requests as tract proxy does. COMMAND uses the terminal and receives signals as if it
ran alone, and its exit code is returned; tract prints one line on stderr at the end.

claude, codex and gemini get the variables and arguments that they read. Any other
COMMAND gets ANTHROPIC_BASE_URL, OPENAI_BASE_URL and GOOGLE_GEMINI_BASE_URL. opencode and
pi read their base URL from files: use tract proxy and tract proxy env for them.

A base URL that is already in the environment becomes the upstream of the proxy.`,
		Example: `  tract proxy run -- claude
  tract proxy run -- codex exec "count the lines of a.txt"
  tract proxy run --name nightly -- python agent.py`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.runBehindProxy(cmd, o, args) },
	}
	cmd.Flags().SetInterspersed(false)
	o.addFlags(cmd)
	return cmd
}

// runBehindProxy runs a command behind a proxy, and returns the command's exit code as an error.
func (a *app) runBehindProxy(cmd *cobra.Command, o *proxyOptions, args []string) error {
	path, err := exec.LookPath(args[0])
	if err != nil {
		return withHint(fmt.Errorf("run %s: %w", args[0], err), "is it installed, and in PATH?")
	}
	client, _ := findClient(args[0])
	if client.file != "" {
		return withHint(fmt.Errorf("run %s: it reads its base URL from %s", client.name, client.file),
			"run tract proxy in another terminal, and tract proxy env %s for what to write", client.name)
	}
	ctx := context.WithoutCancel(cmd.Context()) // signals are the command's
	s, err := a.startProxy(ctx, o, "127.0.0.1:0", client.provider)
	if err != nil {
		return err
	}
	code, err := a.runChild(s, client, path, args)
	ended := a.stopProxy(ctx, s, o.strict)
	if err != nil {
		return err
	}
	if code != 0 {
		return &failure{code: code, kind: "command", quiet: true, cause: fmt.Errorf("%s exited with %d", args[0], code)}
	}
	return ended
}

// runChild runs the command with the terminal of this process, and returns its exit code.
func (a *app) runChild(s *proxyServer, client proxyClient, path string, args []string) (code int, err error) {
	base := s.baseURL()
	child := exec.Command(path) //nolint:noctx // it ends by itself, or by the signals that it gets
	child.Args = slices.Concat(args[:1], client.argumentsFor(base), args[1:])
	child.Env = append(os.Environ(), client.environment(base, os.LookupEnv, s.handler.IsVendor("anthropic"))...)
	child.Stdin, child.Stdout, child.Stderr = a.in, a.out, a.errOut
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	if err := child.Start(); err != nil {
		return 0, fmt.Errorf("run %s: %w", args[0], err)
	}
	ended := make(chan error, 1)
	go func() { ended <- child.Wait() }()
	for {
		select {
		case sig := <-signals:
			if sig == os.Interrupt && isTerminal(a.in) {
				continue // the terminal has sent it to the command too
			}
			_ = child.Process.Signal(sig) // the command may have ended
		case err := <-ended:
			if err != nil && !errors.As(err, new(*exec.ExitError)) {
				return 0, fmt.Errorf("run %s: %w", args[0], err)
			}
			return exitCodeOf(child.ProcessState), nil
		}
	}
}

// exitCodeOf returns the exit code of an ended process; as shells do, 128 and the number of
// the signal that ended it.
func exitCodeOf(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}
