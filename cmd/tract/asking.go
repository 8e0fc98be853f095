package main

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/llm/providers"
	"github.com/tract-vcs/tract/settings"
)

// asking is what generate and chat can say about the request.
type asking struct {
	provider, model, baseURL, effort, tools, key string
	maxTokens                                    int
	noReasoning, noStream, dryRun, jsonl, force  bool
	enforce                                      bool
}

// who adds the flags that say whom to ask.
func (o *asking) who(a *app, cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.provider, "provider", "", "who to ask: a dialect, or a vendor such as anthropic, openai, deepseek, ollama")
	f.StringVarP(&o.model, "model", "m", "", "model to ask")
	f.StringVar(&o.baseURL, "base-url", "", "where to ask, when not at the provider's own address")
	f.StringVar(&o.effort, "effort", "", "how hard to think: none, minimal, low, medium, high, xhigh, max; none asks it not to think")
	a.completeFlag(cmd, "provider", cobra.FixedCompletions(providers.Names(), cobra.ShellCompDirectiveNoFileComp))
	a.completeFlag(cmd, "effort", cobra.FixedCompletions(efforts(), cobra.ShellCompDirectiveNoFileComp))
}

func (o *asking) flags(a *app, cmd *cobra.Command) {
	o.who(a, cmd)
	f := cmd.Flags()
	f.IntVar(&o.maxTokens, "max-tokens", 0, "most tokens of the answer")
	f.StringVar(&o.tools, "tools", "", "file of what the model may call: a JSON array in OpenAI or Anthropic form")
	f.StringVar(&o.key, "key", "", "makes the command safe to repeat: what has the key is asked and committed once")
	f.BoolVar(&o.noReasoning, "no-reasoning", false, "thoughts are shown and not stored; --effort none asks not to think")
	f.BoolVar(&o.noStream, "no-stream", false, "wait for the whole answer")
	f.BoolVar(&o.force, "force", false, "ask although a rule says that the provider will refuse it: see tract check")
	f.BoolVar(&o.enforce, "enforce", false, "do not ask when reasoning.budget, or that of the model, is used up")
	f.BoolVar(&o.dryRun, "dry-run", false, "print the request, and on stderr the setting behind each field; send nothing")
	f.BoolVar(&o.jsonl, "jsonl", false, "write what comes as JSON, an event a line, and the reply at the end")
}

func efforts() []string {
	k, err := settings.Find("reasoning.effort")
	if err != nil {
		return nil
	}
	return k.Choices
}

// apply gives the settings what the flags say.
func (o *asking) apply(a *app) error {
	v, err := a.settings()
	if err != nil {
		return err
	}
	for _, f := range []struct{ key, value, flag string }{
		{"provider", o.provider, "--provider"},
		{"model", o.model, "--model"},
		{"base_url", o.baseURL, "--base-url"},
		{"reasoning.effort", o.effort, "--effort"},
		{"max_output_tokens", number(o.maxTokens), "--max-tokens"},
	} {
		if f.value == "" {
			continue
		}
		if v, err = v.Put(f.key, f.value, settings.Origin{Layer: settings.Call, Name: f.flag}); err != nil {
			return err
		}
	}
	a.values = &v
	return nil
}

func number(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// client makes the client that the settings name.
func (a *app) client() (*providers.Client, error) {
	v, err := a.settings()
	if err != nil {
		return nil, err
	}
	return a.clientOf(v.Text("provider"), v.Text("base_url"))
}

// clientOf makes the client of a provider; one of the two may be empty.
func (a *app) clientOf(name, base string) (*providers.Client, error) {
	v, err := a.settings()
	if err != nil {
		return nil, err
	}
	if name == "" && base == "" {
		err := &failure{code: codeUsage, kind: "no_provider", cause: fmt.Errorf("ask a model: no provider is named")}
		err.hint = "tract config set provider NAME, or --provider NAME; any server: --base-url URL"
		if found := providerWithKey(); found != "" {
			err.hint = "there is a key for " + found + ": tract config set provider " + found + ", or --provider " + found
		}
		return nil, err
	}
	if name == "" {
		name = "chat"
	}
	if _, known := providers.Lookup(name); !known && base == "" {
		err := &failure{code: codeUsage, kind: "no_provider", cause: fmt.Errorf("ask a model: provider %q is not known", name)}
		err.hint = "name its server with --base-url URL, or take one of " + strings.Join(providers.Names(), ", ")
		return nil, err
	}
	return providers.Open(name, providers.Config{
		Model: v.Text("model"), BaseURL: base, APIKey: apiKey(name), Headers: v.Headers(), Tags: v.Words("reasoning.tags"),
		HTTP: &http.Client{Transport: http.DefaultTransport}, // which asks the environment for a proxy
		Log:  func(line string) { a.debug("%s", line) },
	})
}

// apiKey looks a provider's key up in the environment, and nowhere else.
func apiKey(provider string) string {
	names := []string{"TRACT_API_KEY"}
	if p, known := providers.Lookup(provider); known {
		names = append(slices.Clone(p.KeyEnv), names...)
	} else {
		own := strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
				return r
			}
			return '_'
		}, strings.ToLower(provider))
		names = append([]string{strings.ToUpper(own) + "_API_KEY"}, names...)
	}
	for _, name := range names {
		if key := os.Getenv(name); key != "" {
			return key
		}
	}
	return ""
}

// providerWithKey is a provider for which the environment has a key.
func providerWithKey() string {
	for _, name := range providers.Names() {
		p, _ := providers.Lookup(name)
		if p.Name == name && slices.ContainsFunc(p.KeyEnv, func(env string) bool { return os.Getenv(env) != "" }) {
			return name
		}
	}
	return ""
}

// options is what the flags say, for the library.
func (o *asking) options(a *app, cmd *cobra.Command, client llm.Target) ([]tract.Option, error) {
	v, err := a.settings()
	if err != nil {
		return nil, err
	}
	opts := []tract.Option{tract.Settings(v), tract.Command(cmd.Name()), tract.OnWarning(a.warn), tract.OnRequest(a.debugRequest), tract.Stream(!o.noStream)}
	if o.enforce {
		opts = append(opts, tract.Enforce())
	}
	if o.key != "" {
		opts = append(opts, tract.Key(o.key))
	}
	if o.force {
		opts = append(opts, tract.Force())
	}
	if o.noReasoning {
		opts = append(opts, tract.WithReasoning(false))
	}
	if o.tools == "" {
		return opts, nil
	}
	if o.noReasoning && client.WantsTurn() {
		return nil, usage(cmd, "--no-reasoning with --tools: %s wants the thoughts before a tool call back, and this process ends before that", client.Address().Dialect)
	}
	text, err := readFile(cmd.Context(), o.tools)
	if err != nil {
		return nil, err
	}
	tools, err := providers.ParseTools([]byte(text))
	if err != nil {
		return nil, usage(cmd, "--tools %s: %s", o.tools, err)
	}
	return append(opts, tract.Tools(tools...)), nil
}

func (a *app) debugRequest(req *llm.Request) {
	a.debug("request of %d bytes, %d messages, reasoning effort %q", len(req.Body), len(req.Messages), req.Settings.Reasoning.Effort)
}

// asker shows an answer as it comes, and what became of it.
type asker struct {
	a       *app
	o       *asking
	live    *format.Live
	text    *format.Printer
	started time.Time
	came    bool          // events
	budgets []tract.Spent // that were reached meanwhile
}

func (a *app) asker(o *asking) (*asker, error) {
	s := &asker{a: a, o: o, started: time.Now()}
	if a.json || o.jsonl {
		return s, nil
	}
	v, err := a.settings()
	if err != nil {
		return nil, err
	}
	s.text = a.screen.shaded(a.out)
	var thoughts *format.Printer
	switch show := v.Bool("reasoning.include_in_response"); {
	case show && isTerminal(a.out):
		thoughts = s.text
	case show: // the answer alone goes into a pipe
		thoughts = a.screen.shaded(a.err)
	}
	s.live = format.NewLive(s.text, thoughts)
	return s, nil
}

// event shows one thing that came.
func (s *asker) event(e llm.Event) {
	s.came = true
	if s.o.jsonl {
		_ = format.EncodeLine(s.a.out, format.EventJSON(e)) // the reply is kept whoever reads on
	}
	if s.live != nil {
		s.live.Event(e)
	}
	if e.Type == llm.BlockDone {
		if r, ok := e.Block.(content.Reasoning); ok {
			s.a.debug("reasoning came in %s, format %s", firstOf(r.Source, "no field"), r.Format)
		}
	}
}

// ask runs one question and shows what comes of it.
func (s *asker) ask(b *tract.Branch, provider string, ask func(opts ...tract.Option) (*tract.Response, error)) error {
	r, err := ask(tract.OnEvent(s.event), tract.OnBudget(s.budget))
	defer s.a.tellSecrets()
	defer s.warnBudgets()
	if r == nil {
		r = responseOf(err)
	}
	err = keepUnsaved(err)
	if s.a.json || s.o.jsonl {
		return s.reply(r, err)
	}
	if r != nil {
		if !s.came {
			s.whole(r)
		}
		s.live.Close(r.Usage, provider)
	} else {
		s.live.Close(content.Usage{}, "")
	}
	if err != nil || r == nil {
		return err
	}
	s.receipt(b, r)
	return s.text.Err()
}

// budget takes note that a part of a budget is reached. In the middle of an answer
// only a program is told.
func (s *asker) budget(spent tract.Spent) {
	s.budgets = append(s.budgets, spent)
	if s.o.jsonl {
		_ = format.EncodeLine(s.a.out, struct { // the reply is kept whoever reads on
			Type string `json:"type"`
			budgetJSON
		}{"budget", budgetOf(spent)})
	}
}

func (s *asker) warnBudgets() {
	for _, spent := range s.budgets {
		s.a.note("warning: %s", spentLine(spent))
	}
}

// whole shows an answer that did not come as events.
func (s *asker) whole(r *tract.Response) {
	for i, block := range r.Blocks {
		s.live.Event(llm.Event{Type: llm.BlockDone, Index: i, Block: block})
	}
}

// reply writes the reply for a program. With an error it is on the error.
func (s *asker) reply(r *tract.Response, err error) error {
	if r == nil {
		return err
	}
	v := format.NewReply(r.Blocks, r.Usage, r.Finish)
	if r.Commits != nil && err == nil {
		v.Commits = r.Commits
	}
	v.Manifest = r.Manifest
	if err != nil {
		v.Rescued = classify(err).rescued
	}
	write := format.Encode
	if s.o.jsonl {
		write = format.EncodeLine
	}
	if writeErr := write(s.a.out, v); err == nil {
		err = writeErr
	}
	return err
}

// receipt says on stderr what was committed and what it cost.
func (s *asker) receipt(b *tract.Branch, r *tract.Response) {
	var kinds []string
	for _, block := range r.Blocks {
		if block.Kind() != content.KindReasoning || len(r.ReasoningCommits) > 0 {
			kinds = append(kinds, block.Kind().String())
		}
	}
	p := s.a.stories()
	line := fmt.Sprintf("[%s %s] %s", b.Name(), r.Commits[len(r.Commits)-1].Short(), strings.Join(kinds, ", "))
	if u := r.Usage; !u.IsZero() {
		line += " · " + usageLine(u)
	}
	line += fmt.Sprintf(" · %.1f s", time.Since(s.started).Seconds())
	p.Text(p.Dim(line) + "\n")
	for _, c := range r.ToolCalls {
		p.Text(fmt.Sprintf("%s waits for its result: tract tool-result %s -F -\n", c.Name, c.CallID))
	}
}

// spentLine is what thoughts have used of a budget.
func spentLine(s tract.Spent) string {
	line := fmt.Sprintf("session %s has used %d of %d reasoning tokens", s.Session, s.Used, s.Limit)
	if s.Estimated {
		line = strings.Replace(line, "used ", "used about ", 1)
	}
	if s.Models != "" {
		line += " on " + s.Models
	}
	return line
}

// usageLine is what an answer cost, in tokens.
func usageLine(u content.Usage) string {
	line := fmt.Sprintf("%d tokens in, %d out", u.Input, u.Output)
	if u.Reasoning > 0 {
		line += fmt.Sprintf(" (%d reasoning)", u.Reasoning)
	}
	return line
}
