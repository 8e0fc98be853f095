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
	"github.com/tract-vcs/tract/llm/llmtest"
)

// demoPace is the time between two words of an answer, for an eye to follow.
const demoPace = 25 * time.Millisecond

func newDemo(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "demo [DIR]", Short: "See it work, without a key",
		Long: `See it work, without a key: a conversation of three turns with a model that is a
recording, played by a server of tract's own on this machine. Everything else is
real: the requests, the streams, the store. It is made in DIR, or in a new
temporary folder, and stays there for you to look around.`,
		Example: "  tract demo\n  tract demo ~/tract-demo",
		Args:    cobra.MaximumNArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.demo(cmd.Context(), args) },
	}
}

// demo is one showing.
type demo struct {
	a    *app
	dir  string
	base string
}

func (a *app) demo(ctx context.Context, args []string) error {
	dir, err := demoFolder(args)
	if err != nil {
		return err
	}
	pace := time.Duration(0)
	if isTerminal(a.out) {
		pace = demoPace
	}
	server, err := llmtest.Serve(demoScript(pace)...)
	if err != nil {
		return err
	}
	defer server.Close() //nolint:errcheck // nothing is lost with it
	d := &demo{a: a, dir: dir, base: server.URL()}
	if err := d.show(ctx); err != nil {
		return err
	}
	if err := server.Err(); err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	d.printNextSteps()
	return nil
}

// demoFolder is a folder for the store of the demo, in which there is none yet.
func demoFolder(args []string) (string, error) {
	if len(args) == 0 {
		return os.MkdirTemp("", "tract-demo-")
	}
	dir, err := filepath.Abs(args[0])
	if err != nil {
		return "", err
	}
	if isFolder(filepath.Join(dir, folder)) {
		return "", withHint(fmt.Errorf("demo: there is a store in %s already", dir), "tract demo without a folder makes a new one")
	}
	return dir, os.MkdirAll(dir, 0o777)
}

// show is the conversation and the look back at it.
func (d *demo) show(ctx context.Context) error {
	tools := filepath.Join(d.dir, "tools.json")
	if err := newFile(tools, demoTools+"\n"); err != nil {
		return withHint(fmt.Errorf("demo: %w", err), "tract demo without a folder makes a new one")
	}
	d.heading("The model is a recording, played by a server on this machine; no key is needed. All else is real.")
	for _, step := range []struct {
		say      string
		provider string
		args     []string
	}{
		{"A store, and an instruction.", "", []string{"init", d.dir}},
		{"", "", []string{"system", "You are a physicist. Be brief."}},
		{"Turn 1: the thought is streamed, shown and committed before the answer.", "messages", []string{"chat", demoQuestion}},
		{"Turn 2: the model thinks and calls a tool. Its thought is signed.", "messages", []string{"chat", demoAsk, "--tools", tools}},
		{"The result goes back with the signed thought, byte for byte: the server would refuse it otherwise.", "", []string{"tool-result", demoCall, demoForecast}},
		{"", "messages", []string{"generate", "--tools", tools}},
		{"Turn 3: another kind of server, OpenAI-compatible, on the same history.", "chat", []string{"chat", demoLast}},
		{"Look back. Every block is a commit that never changes:", "", []string{"log", "--oneline"}},
		{"What the model would get next. The thoughts stay in the history, and out of the prompt:", "", []string{"compile"}},
		{"Why is each block in it, or not?", "", []string{"compile", "--explain"}},
		{"Leave the weather out from now on, and see how the prompt changes:", "", []string{"skip", demoCall, "-m", "the weather will change"}},
		{"", "", []string{"diff", "HEAD~1", "HEAD"}},
	} {
		if step.say != "" {
			d.heading(step.say)
		}
		if err := d.run(ctx, step.provider, step.args); err != nil {
			return err
		}
	}
	return nil
}

// newFile writes a file that must not exist.
func newFile(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// heading is a line of the teller.
func (d *demo) heading(text string) {
	p := d.a.printer()
	p.Text("\n" + p.Accent("# "+text) + "\n")
}

// run runs one command as a person would type it. What only the demo needs is
// not shown.
func (d *demo) run(ctx context.Context, provider string, args []string) error {
	shown := make([]string, len(args))
	for i, arg := range args {
		shown[i] = strings.ReplaceAll(arg, d.dir+string(filepath.Separator), "")
		if strings.ContainsAny(arg, " ?°") {
			shown[i] = `"` + shown[i] + `"`
		}
	}
	p := d.a.printer()
	p.Text(p.Dim("$ tract "+strings.Join(shown, " ")) + "\n")
	args = append(args, "--no-pager", "--color", d.a.screen.color)
	if args[0] != "init" {
		args = append(args, "--dir", d.dir)
	}
	if provider != "" {
		args = append(args, "--provider", provider, "--model", demoModel, "--base-url", d.base+"/v1")
	}
	if code := run(ctx, args, strings.NewReader(""), d.a.out, d.a.out); code != codeOK {
		return &failure{code: code, kind: "demo", cause: errors.New("demo: that did not work"), hint: "please tell us: it should"}
	}
	return nil
}

// printNextSteps says what to try.
func (d *demo) printNextSteps() {
	p := d.a.printer()
	p.Text("\n" + p.Accent("# The store stays. Go on with it:") + "\n")
	p.Line("  cd " + shellQuote(d.dir))
	p.Table([][]string{
		{"  tract log -p", "the whole content, reasoning too"},
		{"  tract show " + demoCall + " --prompt", "what the model saw when it made that call"},
		{"  tract compile --include-reasoning", "the prompt with past reasoning"},
		{"  tract undo", "undo the newest operation on the branch"},
		{"  tract switch -c try-2 '" + demoCall + "^{message}~1'", "fork the conversation before the tool call"},
	})
	p.Text("With a model of your own: tract init, tract config set provider anthropic, tract chat \"…\"\n")
}
