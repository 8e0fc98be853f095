package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract/internal/demo"
)

// demoPace is the time between two words of an answer.
const demoPace = 25 * time.Millisecond

func newDemo(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "demo [DIR]", Short: "Show a conversation with a recorded model",
		Long: `Show a conversation of three turns. A local server that is part of tract plays recorded
responses of a model, so no key is needed. Everything else is real: the requests, the
streams and the store. The store is created in DIR, or in a new temporary folder, and
stays there for you to explore.`,
		Example: "  tract demo\n  tract demo ~/tract-demo",
		Args:    cobra.MaximumNArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.createDemoStore(cmd.Context(), args) },
	}
}

type demoRun struct {
	a       *app
	dir     string
	baseURL string
}

// createDemoStore creates a store in the folder that args names, or in a new temporary one, by
// running and showing the commands of the demo.
func (a *app) createDemoStore(ctx context.Context, args []string) error {
	dir, err := demoFolder(args)
	if err != nil {
		return err
	}
	pace := time.Duration(0)
	if isTerminal(a.out) {
		pace = demoPace
	}
	server, err := demo.Serve(pace)
	if err != nil {
		return err
	}
	defer server.Close() //nolint:errcheck // nothing is lost with it
	d := &demoRun{a: a, dir: dir, baseURL: server.URL()}
	if err := d.runAllSteps(ctx); err != nil {
		return err
	}
	if err := server.Err(); err != nil {
		return err
	}
	d.printNextSteps()
	return nil
}

// demoFolder returns the folder for the demo's store: the argument, which must not have a store
// yet, or a new temporary folder.
func demoFolder(args []string) (string, error) {
	if len(args) == 0 {
		return os.MkdirTemp("", "tract-demo-")
	}
	dir, err := filepath.Abs(args[0])
	if err != nil {
		return "", err
	}
	if isFolder(filepath.Join(dir, folder)) {
		return "", withHint(fmt.Errorf("demo: %s already has a store", dir), "tract demo without a folder creates a new one")
	}
	return dir, os.MkdirAll(dir, 0o777)
}

// runAllSteps runs the commands of the demo: the conversation, and then commands that inspect it.
func (d *demoRun) runAllSteps(ctx context.Context) error {
	tools := filepath.Join(d.dir, "tools.json")
	if err := createFile(tools, demo.Tools+"\n"); err != nil {
		return withHint(fmt.Errorf("demo: %w", err), "tract demo without a folder creates a new one")
	}
	d.heading("The model is a recording, played by a server on this machine; no key is needed. Everything else is real.")
	for _, step := range []struct {
		say      string
		provider string
		args     []string
	}{
		{"Create a store and commit an instruction.", "", []string{"init", d.dir}},
		{"", "", []string{"system", "You are a physicist. Be brief."}},
		{"Turn 1: the reasoning streams, and is committed before the answer.", "messages", []string{"chat", demo.First}},
		{"Turn 2: the model reasons and calls a tool. Its reasoning is signed.", "messages", []string{"chat", demo.Second, "--tools", tools}},
		{"The result is sent with the signed reasoning, byte for byte: otherwise the server would refuse it.", "", []string{"tool-result", demo.CallID, demo.Forecast}},
		{"", "messages", []string{"generate", "--tools", tools}},
		{"Turn 3: an OpenAI-compatible server continues the same history.", "chat", []string{"chat", demo.Third}},
		{"Every block is a commit that never changes:", "", []string{"log", "--oneline"}},
		{"The next prompt. The reasoning stays in the history, and out of the prompt:", "", []string{"compile"}},
		{"Why is each block included or left out?", "", []string{"compile", "--explain"}},
		{"Leave the weather out of later prompts, and compare:", "", []string{"skip", demo.CallID, "-m", "the weather will change"}},
		{"", "", []string{"diff", "HEAD~1", "HEAD"}},
	} {
		if step.say != "" {
			d.heading(step.say)
		}
		if err := d.runCommand(ctx, step.provider, step.args); err != nil {
			return err
		}
	}
	return nil
}

// createFile writes a file that must not exist.
func createFile(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// heading prints an explanation before the next commands.
func (d *demoRun) heading(text string) {
	p := d.a.printer()
	p.Text("\n" + p.Accent("# "+text) + "\n")
}

// runCommand runs and shows one command, without the flags that only the demo needs.
func (d *demoRun) runCommand(ctx context.Context, provider string, args []string) error {
	shown := make([]string, len(args))
	for i, arg := range args {
		shown[i] = strings.ReplaceAll(arg, d.dir+string(filepath.Separator), "")
		if strings.ContainsAny(arg, " ?°") {
			shown[i] = `"` + shown[i] + `"`
		}
	}
	p := d.a.printer()
	p.Text(p.Dim("$ tract "+strings.Join(shown, " ")) + "\n")
	args = append(args, "--no-pager", "--color", d.a.screen.color, "--dir", d.dir)
	if provider != "" {
		args = append(args, "--provider", provider, "--model", demo.Model, "--base-url", d.baseURL+"/v1")
	}
	if code := run(ctx, args, strings.NewReader(""), d.a.out, d.a.out); code != codeOK {
		return &failure{code: code, kind: "demo", cause: errors.New("demo: the command failed"), hint: "please report this"}
	}
	return nil
}

// printNextSteps suggests commands to try.
func (d *demoRun) printNextSteps() {
	p := d.a.printer()
	p.Text("\n" + p.Accent("# The store stays. Explore it:") + "\n")
	p.Line("  cd " + shellQuote(d.dir))
	p.Table([][]string{
		{"  tract log -p", "the whole content, with reasoning"},
		{"  tract show " + demo.CallID + " --prompt", "what the model received when it made that call"},
		{"  tract compile --include-reasoning", "the prompt with past reasoning"},
		{"  tract undo", "undo the newest operation on the branch"},
		{"  tract switch -c try-2 '" + demo.CallID + "^{message}~1'", "fork the conversation before the tool call"},
	})
	p.Text("With a model of your own: tract init, tract config set provider anthropic, tract chat \"…\"\n")
}
