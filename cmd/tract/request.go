package main

import (
	"context"
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
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/llm/providers"
)

// requestFlags holds the request flags of generate and chat.
type requestFlags struct {
	provider, model, baseURL, effort, maxTokens string // settings
	tools, key                                  string
	noReasoning, noStream, dryRun, jsonl, force bool
	enforceBudgets                              bool
}

// addTarget adds the flags that select the model.
func (o *requestFlags) addTarget(a *app, cmd *cobra.Command) {
	a.addSettingOverrideFlag(cmd, &o.provider, "provider", "", "provider", "provider to ask: a dialect, or a vendor such as anthropic, openai, deepseek, ollama")
	a.addSettingOverrideFlag(cmd, &o.model, "model", "m", "model", "model to ask")
	a.addSettingOverrideFlag(cmd, &o.baseURL, "base-url", "", "base_url", "address of the provider, if not its own")
	a.addSettingOverrideFlag(cmd, &o.effort, "effort", "", "reasoning.effort", "reasoning effort: none, minimal, low, medium, high, xhigh, max; none turns reasoning off")
	a.addSettingOverrideFlag(cmd, &o.maxTokens, "max-tokens", "", "max_output_tokens", "largest number of `tokens` in the response")
	a.completeFlag(cmd, "provider", completeWords(providers.Names()...))
	a.completeFlag(cmd, "effort", completeWords(settingChoices("reasoning.effort")...))
}

func (o *requestFlags) addFlags(a *app, cmd *cobra.Command) {
	o.addTarget(a, cmd)
	f := cmd.Flags()
	f.StringVar(&o.tools, "tools", "", "file with tool definitions: a JSON array in OpenAI or Anthropic form")
	f.StringVar(&o.key, "key", "", "idempotency key: the command asks and commits once, however often it is repeated")
	f.BoolVar(&o.noReasoning, "no-reasoning", false, "show reasoning without storing it; --effort none turns reasoning off")
	f.BoolVar(&o.noStream, "no-stream", false, "wait for the whole response")
	f.BoolVar(&o.force, "force", false, "send even if a rule says that the provider will refuse it: see tract check")
	f.BoolVar(&o.enforceBudgets, "enforce", false, "refuse if reasoning.budget, or the budget of the model, is used up")
	f.BoolVar(&o.dryRun, "dry-run", false, "print the request without sending it, and on stderr the setting that determines each field")
	f.BoolVar(&o.jsonl, "jsonl", false, "write the events as JSON, one per line, and the response at the end")
}

// client returns the client for the provider in the settings.
func (a *app) client() (*providers.Client, error) {
	v, err := a.settings()
	if err != nil {
		return nil, err
	}
	return a.clientOf(v.Text("provider"), v.Text("base_url"))
}

// clientOf returns the client of a provider; the name or the base URL may be empty.
func (a *app) clientOf(name, base string) (*providers.Client, error) {
	if name == "" && base == "" {
		err := &failure{code: codeUsage, kind: "no_provider", cause: fmt.Errorf("ask a model: no provider is set")}
		err.hint = "tract config set provider NAME, or --provider NAME; for any other server --base-url URL"
		if _, names := keysInEnvironment(); len(names) > 0 {
			err.hint = "the environment has a key for " + names[0] + ": tract config set provider " + names[0] + ", or --provider " + names[0]
		}
		return nil, err
	}
	if name == "" {
		name = "chat"
	}
	return providers.Open(name, providers.Config{
		Model: a.loaded.Text("model"), BaseURL: base, APIKey: apiKey(name), Headers: a.loaded.Headers(),
		HTTP: &http.Client{Transport: http.DefaultTransport}, // which asks the environment for a proxy
		Log:  func(line string) { a.debug("%s", line) },
	})
}

// apiKey returns a provider's key from the environment. It is read from nowhere else.
func apiKey(provider string) string {
	p, _ := providers.Lookup(provider)
	for _, name := range append(slices.Clone(p.KeyEnv), "TRACT_API_KEY") {
		if key := os.Getenv(name); key != "" {
			return key
		}
	}
	return ""
}

// keysInEnvironment returns the set variables that hold a key, and the provider of each.
func keysInEnvironment() (variableNames, providerNames []string) {
	for _, name := range providers.Names() {
		p, _ := providers.Lookup(name)
		for _, env := range p.KeyEnv {
			if p.Name == name && os.Getenv(env) != "" {
				variableNames, providerNames = append(variableNames, env), append(providerNames, name)
			}
		}
	}
	return variableNames, providerNames
}

func (o *requestFlags) options(ctx context.Context, a *app, client llm.Target) (tract.AskOptions, error) {
	opts, err := a.askOptions()
	if err != nil {
		return opts, err
	}
	opts.NoStream, opts.EnforceBudgets, opts.Key, opts.Force = o.noStream, o.enforceBudgets, o.key, o.force
	if o.noReasoning {
		opts.Settings["reasoning.commit"] = "false"
	}
	if err := a.checkToolReasoningStored(client, o.noReasoning, o.tools != "", a.loaded.Text("request.extra")); err != nil {
		return opts, err
	}
	if o.tools == "" {
		return opts, nil
	}
	text, err := readFile(ctx, o.tools)
	if err != nil {
		return opts, err
	}
	if opts.Tools, err = providers.ParseTools([]byte(text)); err != nil {
		return opts, usageError("--tools %s: %s", o.tools, err)
	}
	return opts, nil
}

// askOptions returns request options with the current settings and with functions that print
// warnings and, with -v, details.
func (a *app) askOptions() (tract.AskOptions, error) {
	set, err := a.settingsChangedSinceOpen()
	return tract.AskOptions{Settings: set, OnWarning: a.warn, OnRequest: a.debugRequestSize, OnResponse: a.debugReasoning}, err
}

// checkToolReasoningStored refuses a request with tools whose reasoning would not be stored, if the
// provider requires it back with the tool results.
func (a *app) checkToolReasoningStored(target llm.Target, noReasoning, hasTools bool, extraBody string) error {
	item, err := a.loaded.Get("reasoning.commit")
	if err != nil {
		return err
	}
	for _, member := range []string{"tools", "toolConfig", "functions"} {
		kind := rawjson.Value(extraBody).Get(member).Kind()
		hasTools = hasTools || kind == rawjson.KindArray || kind == rawjson.KindObject
	}
	if !hasTools || !target.NeedsReasoningInToolLoop() || item.Value == "true" && !noReasoning {
		return nil
	}
	because := "--no-reasoning"
	if !noReasoning {
		because = "reasoning.commit is false (" + originOf(item.Origin) + ")"
	}
	return &failure{
		code: codeUsage, kind: "usage", hint: "leave --no-reasoning out or tract config set reasoning.commit true, or ask without tools",
		cause: fmt.Errorf("%s with tools: %s requires the reasoning before a tool call with its result, and it would not be stored", because, target.Address().Provider),
	}
}

func (a *app) debugRequestSize(req *llm.Request) {
	a.debug("request of %d bytes, %d messages", len(req.Body), len(req.Messages))
}

// debugReasoning prints where the reasoning was in a response, how it was requested, and what was
// sent back.
func (a *app) debugReasoning(req *llm.Request, reply *llm.Response) {
	if !a.verbose {
		return
	}
	n, fields := countReasoning(reply.Blocks)
	came := "no reasoning received"
	switch {
	case n > 0:
		came = "reasoning received in " + fields
	case reply.Usage.Reasoning > 0:
		came = fmt.Sprintf("%d tokens of reasoning were not disclosed", reply.Usage.Reasoning)
	}
	r := req.Settings.Reasoning
	thinking := "thinking left to the model"
	switch {
	case r.Disabled, r.Effort == "none" && r.MaxTokens == 0:
		thinking = "thinking off"
	case r.MaxTokens > 0:
		thinking = fmt.Sprintf("thinking on (effort: %s, budget: %d tokens)", firstNonEmpty(r.Effort, "unset"), r.MaxTokens)
	case r.Effort != "":
		thinking = "thinking on (effort: " + r.Effort + ")"
	}
	a.debug("%s; %s; %s", came, thinking, reasoningSentBack(req, reply.From))
}

// reasoningSentBack describes how much reasoning a request contains in the form that its provider
// reads.
func reasoningSentBack(req *llm.Request, to llm.Address) string {
	sent, err := providers.DecodeRequest(to.Dialect, to.Provider, req.Body)
	if err != nil {
		sent = req // of a format that is not read back
	}
	var blocks []content.Block
	for _, m := range sent.Messages {
		blocks = append(blocks, m.Blocks...)
	}
	n, fields := countReasoning(blocks)
	if n == 0 {
		return "none sent back"
	}
	return fmt.Sprintf("%s sent back in %s", count(n, "reasoning block"), fields)
}

// countReasoning returns the number of reasoning blocks, and the names of their response fields.
func countReasoning(blocks []content.Block) (n int, fields string) {
	var names []string
	for _, b := range blocks {
		if r, ok := b.(content.Reasoning); ok {
			n++
			if name := firstNonEmpty(r.Source, "no field"); !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return n, strings.Join(names, ", ")
}

// responsePrinter shows a response as it streams, and what was committed.
type responsePrinter struct {
	a             *app
	o             *requestFlags
	live          *format.Live
	text          *format.Printer
	started       time.Time
	gotEvents     bool                // events
	warnedBudgets []tract.BudgetUsage // budgets that reached their warning level
}

func (a *app) newResponsePrinter(o *requestFlags) *responsePrinter {
	s := &responsePrinter{a: a, o: o, started: time.Now()}
	if a.json || o.jsonl {
		return s
	}
	s.text = a.screen.printerWithShadedReasoning(a.out)
	var thoughts *format.Printer
	switch show := a.loaded.Bool("reasoning.include_in_response"); {
	case show && isTerminal(a.out):
		thoughts = s.text
	case show: // a pipe gets only the text of the response
		thoughts = a.screen.printerWithShadedReasoning(a.errOut)
	}
	s.live = format.NewLive(s.text, thoughts)
	return s
}

func (s *responsePrinter) printEvent(e llm.Event) {
	s.gotEvents = true
	if s.o.jsonl {
		_ = format.EncodeLine(s.a.out, format.EventJSON(e)) // the reply is kept whoever reads on
	}
	if s.live != nil {
		s.live.Event(e)
	}
}

// askAndPrint makes one request and prints the response.
func (s *responsePrinter) askAndPrint(b *tract.Branch, provider string, opts tract.AskOptions, ask func(tract.AskOptions) (*tract.Response, error)) error {
	s.a.streaming = true
	defer s.a.flushDebug()
	opts.OnEvent, opts.OnBudget = s.printEvent, s.recordBudgetWarning
	r, err := ask(opts)
	defer s.a.reportSecrets()
	defer s.printBudgetWarnings()
	if r == nil {
		r = responseOf(err)
	}
	err = saveUnsavedResponse(err)
	if s.a.json || s.o.jsonl {
		return s.writeJSON(r, err)
	}
	if r != nil {
		for i, block := range r.Blocks {
			if !s.gotEvents { // it did not stream
				s.live.Event(llm.Event{Type: llm.BlockDone, Index: i, Block: block})
			}
		}
		s.live.Close(r.Usage, provider)
	} else {
		s.live.Close(content.Usage{}, "")
	}
	s.a.flushDebug()
	if err != nil || r == nil {
		return err
	}
	s.printReceipt(b, r)
	return s.text.Err()
}

// recordBudgetWarning records that a budget has reached its warning level. With --jsonl it also prints
// that at once.
func (s *responsePrinter) recordBudgetWarning(spent tract.BudgetUsage) {
	s.warnedBudgets = append(s.warnedBudgets, spent)
	if s.o.jsonl {
		_ = format.EncodeLine(s.a.out, struct { // the reply is kept whoever reads on
			Type string `json:"type"`
			budgetJSON
		}{"budget", newBudgetJSON(spent)})
	}
}

func (s *responsePrinter) printBudgetWarnings() {
	for _, spent := range s.warnedBudgets {
		s.a.info("warning: session %s: %s", spent.Session, budgetLine(spent))
	}
}

// writeJSON writes the response as JSON. After an error, the error has the response too.
func (s *responsePrinter) writeJSON(r *tract.Response, err error) error {
	if r == nil {
		return err
	}
	v := format.NewReply(r)
	if err != nil {
		v.Commits, v.Rescued = v.Commits[:0], classify(err).rescued
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

// printReceipt prints the commits and the usage on stderr.
func (s *responsePrinter) printReceipt(b *tract.Branch, r *tract.Response) {
	var kinds []string
	for _, block := range r.Blocks {
		if block.Kind() != content.KindReasoning || len(r.ReasoningCommits) > 0 {
			kinds = append(kinds, block.Kind().String())
		}
	}
	p := s.a.stderrPrinter()
	line := fmt.Sprintf("[%s %s] %s", b.Name(), r.Commits[len(r.Commits)-1].Short(), strings.Join(kinds, ", "))
	if u := r.Usage; !u.IsZero() {
		line += " · " + usageLine(u)
	}
	line += fmt.Sprintf(" · %.1f s", time.Since(s.started).Seconds())
	p.Text(p.Dim(line) + "\n")
	for _, c := range r.ToolCalls {
		p.Line(fmt.Sprintf("%s is waiting for its result: %s", c.Name, s.a.toolResultCommandOf(c.CallID)))
	}
}

// budgetLine describes how much of a budget is used.
func budgetLine(s tract.BudgetUsage) string {
	line := fmt.Sprintf("%d of %d reasoning tokens used", s.Used, s.Limit)
	if s.Estimated {
		line = "about " + line
	}
	if s.Models != "" {
		line += " on " + s.Models
	}
	return line
}

// usageLine describes the tokens of a response.
func usageLine(u content.Usage) string {
	line := fmt.Sprintf("%d tokens in, %d out", u.Input, u.Output)
	if u.Reasoning > 0 {
		line += fmt.Sprintf(" (%d reasoning)", u.Reasoning)
	}
	return line
}
