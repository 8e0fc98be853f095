package tract_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/llm/llmtest"
	"github.com/tract-vcs/tract/llm/providers"
)

// party is a provider and a model of it.
type party struct{ provider, model string }

func (p party) String() string { return p.provider }

// client is one that asks at a base URL.
func (p party) client(t *testing.T, base string) *providers.Client {
	t.Helper()
	return must(providers.Open(p.provider, providers.Config{Model: p.model, BaseURL: base, APIKey: "k", Retries: -1}))(t)
}

// speakers is who began a conversation, by the file of testdata/matrix that has
// their answers: two calls at once, one call more, the end.
var speakers = map[string]party{
	"anthropic":  {"anthropic", "claude-sonnet-4-5"},
	"openai":     {"openai-responses", "gpt-5"},
	"gemini":     {"google", "gemini-3-pro-preview"},
	"deepseek":   {"deepseek", "deepseek-reasoner"},
	"kimi":       {"moonshotai", "kimi-k2.5"},
	"openrouter": {"openrouter", "anthropic/claude-haiku-4.5"},
}

// hearers is who is to go on with it.
var hearers = []party{
	{"anthropic", "claude-sonnet-4-5"},
	{"anthropic", "claude-opus-4-6"},
	{"openai-responses", "gpt-5"},
	{"google", "gemini-3-pro-preview"},
	{"google", "gemini-2.5-pro"},
	{"deepseek", "deepseek-reasoner"},
	{"moonshotai", "kimi-k2.5"},
	{"openrouter", "openai/gpt-5"},
	{"openai", "gpt-5"},
	{"mistral", "magistral-medium-latest"},
	{"bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"},
	{"interactions", "gemini-3-pro-preview"},
	{"cohere", "command-a-reasoning-08-2025"},
	{"ollama", "gpt-oss:20b"},
}

// told is a conversation, and what has to arrive of it wherever it is sent.
type told struct {
	repo  *tract.Repo
	texts []string // of the user, the instructions and the answers
	calls []content.ToolCall
	seals []string
}

// hear notes what a reply says.
func (c *told) hear(r *tract.Response) {
	c.calls = append(c.calls, r.ToolCalls...)
	for _, b := range r.Blocks {
		if b.Kind() == content.KindAssistant && strings.TrimSpace(b.String()) != "" {
			c.texts = append(c.texts, b.String())
		}
		if data := b.Form().Seal.Data; data != "" {
			c.seals = append(c.seals, data)
		}
	}
}

// answer appends a result for each call of a reply. No two are the same.
func (c *told) answer(t *testing.T, r *tract.Response) {
	t.Helper()
	var results []content.Block
	for i, call := range r.ToolCalls {
		at := len(c.calls) - len(r.ToolCalls) + i
		results = append(results, content.ToolResult{CallID: call.CallID, Name: call.Name, Text: resultText(at)})
	}
	slices.Reverse(results) // they end as they like
	must(c.repo.Branch("main").Append(t.Context(), results, tract.AppendOptions{}))(t)
}

func resultText(call int) string { return fmt.Sprintf("the result of call %d.", call) }

func (c *told) user(t *testing.T, text string) {
	t.Helper()
	must(c.repo.Branch("main").AppendUser(t.Context(), text))(t)
	c.texts = append(c.texts, text)
}

// begin starts a conversation.
func begin(t *testing.T) *told {
	t.Helper()
	c := &told{repo: open(t)}
	must(onlyID(c.repo.Branch("main").Append(t.Context(), []content.Block{content.System("Be “brief”.")}, tract.AppendOptions{})))(t)
	c.texts = append(c.texts, "Be “brief”.")
	c.user(t, "Where is it colder \\ wetter, Bergen or Oslo?")
	return c
}

// TestConversationContinuesWithEveryOtherProvider sends a conversation with reasoning, text and
// calls of one provider to every other provider, inside the tool loop and after it: each accepts the
// request.
func TestConversationContinuesWithEveryOtherProvider(t *testing.T) {
	for name, from := range speakers {
		t.Run(name, func(t *testing.T) {
			var bodies []json.RawMessage
			if err := json.Unmarshal(must(os.ReadFile(filepath.Join("testdata", "matrix", name+".json")))(t), &bodies); err != nil {
				t.Fatal(err)
			}
			var script []llmtest.Exchange
			for _, body := range bodies {
				script = append(script, llmtest.Exchange{Body: string(body)})
			}
			client := from.client(t, llmtest.Start(t, script...).URL())
			c := begin(t)
			for range 2 {
				r := must(c.repo.Branch("main").Generate(t.Context(), client, tract.AskOptions{}))(t)
				c.hear(r)
				c.answer(t, r)
			}
			goesOn(t, c, from, "inside the loop")
			c.hear(must(c.repo.Branch("main").Generate(t.Context(), client, tract.AskOptions{}))(t))
			c.user(t, "And tomorrow?")
			if len(c.calls) != 3 {
				t.Fatalf("%d calls", len(c.calls))
			}
			goesOn(t, c, from, "after it")
		})
	}
}

// TestRecordedToolLoopsContinueWithOtherProviders does so for every recorded response that calls a
// tool.
func TestRecordedToolLoopsContinueWithOtherProviders(t *testing.T) {
	dir, list := recordings(t)
	loops := 0
	for _, r := range list {
		if r.Model == "" {
			r.Model = "m"
		}
		waits := false
		for _, call := range r.Expected.Calls {
			waits = waits || !call.Server
		}
		if !waits {
			continue
		}
		loops++
		t.Run(r.File, func(t *testing.T) {
			body := must(os.ReadFile(filepath.Join(dir, filepath.FromSlash(r.File))))(t)
			client := must(providers.Open(r.Provider, providers.Config{
				Dialect: r.API, Model: r.Model, APIKey: "k", Retries: -1,
				BaseURL: llmtest.Start(t, llmtest.Exchange{Body: string(body)}).URL() + "/v1",
			}))(t)
			c := begin(t)
			reply := must(c.repo.Branch("main").Generate(t.Context(), client, tract.AskOptions{NoStream: !(r.Container != "json")}))(t)
			c.hear(reply)
			if len(reply.ToolCalls) == 0 {
				t.Fatal("no call waits")
			}
			c.answer(t, reply)
			from := party{r.Provider + "/" + client.Address().Dialect, r.Model}
			goesOn(t, c, from, "inside the loop")
			must(onlyID(c.repo.Branch("main").Append(t.Context(), []content.Block{content.Assistant("In Bergen.")}, tract.AppendOptions{})))(t)
			c.texts = append(c.texts, "In Bergen.")
			c.user(t, "And tomorrow?")
			goesOn(t, c, from, "after it")
		})
	}
	if loops < 70 {
		t.Errorf("only %d recordings call a tool", loops)
	}
}

// goesOn compiles a conversation for everybody, with the thoughts and without.
func goesOn(t *testing.T, c *told, from party, when string) {
	t.Helper()
	for _, to := range hearers {
		client := to.client(t, "http://127.0.0.1:9")
		for with, opts := range map[string]tract.RequestOptions{
			"": {}, " with thoughts": {IncludeReasoning: true}, ", to think hard": {Settings: map[string]string{"reasoning.effort": "high"}},
		} {
			t.Run(fmt.Sprintf("%s to %s %s%s", when, to, to.model, with), func(t *testing.T) {
				for _, p := range must(c.repo.Check(t.Context(), "main", client, opts))(t) {
					// A model that did not think when the loop began is not to begin inside it.
					late := p.Rule == "thinking-first" && len(c.seals) == 0 && dialectOf(from) == client.Address().Dialect
					if !p.Warning && !late {
						t.Errorf("rule %s at %s: %s", p.Rule, p.Path, p.Message)
					}
				}
				req := must(c.repo.Request(t.Context(), "main", client, opts))(t)
				arrives(t, c, client, req.Body)
				seals := find(t, req.Body, c.seals...)
				switch {
				case to == from && when == "inside the loop" && len(seals) != len(c.seals):
					t.Errorf("%d of %d seals go back to who made them", len(seals), len(c.seals))
				case !kindred(from, to, client) && len(seals) > 0:
					t.Errorf("the seals %q go to somebody else", seals)
				}
				if t.Failed() {
					t.Logf("the request is %s", req.Body)
				}
			})
		}
	}
}

// kindred reports whether a target may open what another one sealed: it speaks the
// same dialect, for a model of the same family.
func kindred(from, to party, client *providers.Client) bool {
	if dialectOf(from) != client.Address().Dialect {
		return false
	}
	for _, family := range []string{"claude", "gpt", "gemini", "deepseek", "kimi", "grok"} {
		if strings.Contains(from.model, family) && strings.Contains(to.model, family) {
			return true
		}
	}
	return false
}

// dialectOf is the wire format of a party: that of its provider, unless it follows
// the name.
func dialectOf(p party) string {
	_, dialect, told := strings.Cut(p.provider, "/")
	if !told {
		profile, _ := providers.Lookup(p.provider)
		dialect = profile.Dialect
	}
	return dialect
}

// find lists those texts that are in the strings of a body.
func find(t *testing.T, body []byte, texts ...string) (found []string) {
	t.Helper()
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatal(err)
	}
	have := stringsOf(nil, v)
	for _, text := range texts {
		if slices.ContainsFunc(have, func(s string) bool { return strings.Contains(s, text) }) {
			found = append(found, text)
		}
	}
	return found
}

// arrives looks for everything that was said in a body, and for every call with
// its result.
func arrives(t *testing.T, c *told, client *providers.Client, body []byte) {
	t.Helper()
	at := client.Address()
	req := must(providers.DecodeRequest(at.Dialect, at.Provider, body))(t)
	calls := map[string]content.ToolCall{}
	var results []content.ToolResult
	for _, m := range req.Messages {
		for _, b := range m.Blocks {
			if call, ok := b.(content.ToolCall); ok && !call.Server {
				calls[call.CallID] = call
			} else if result, ok := b.(content.ToolResult); ok && !result.Server {
				results = append(results, result)
			}
		}
	}
	for _, text := range c.texts {
		if len(find(t, body, text)) == 0 {
			t.Errorf("%q does not arrive", text)
		}
	}
	if len(calls) != len(c.calls) || len(results) != len(c.calls) {
		t.Fatalf("%d calls and %d results arrive of %d", len(calls), len(results), len(c.calls))
	}
	for i, want := range c.calls {
		// They stand in the order of their calls, whatever ids those have now.
		if text := results[i].String(); !strings.Contains(text, resultText(i)) {
			t.Errorf("result %d is %s", i, text)
		}
		got := calls[results[i].CallID]
		if own := want.Form().Dialect == at.Dialect && got.Arguments == want.Arguments; got.Name != want.Name || !own && !sameArguments(want.Arguments, got.Arguments) {
			t.Errorf("call %s %s(%s) arrives as %s(%s)", want.CallID, want.Name, want.Arguments, got.Name, got.Arguments)
		}
	}
}

// sameArguments reports whether arguments came through: as equal JSON, as {} for
// nothing, or inside an object when they are none.
func sameArguments(want, got string) bool {
	var a, b any
	if want == "" {
		want = "{}"
	}
	if err := json.Unmarshal([]byte(got), &b); err != nil {
		return want == got
	}
	if err := json.Unmarshal([]byte(want), &a); err != nil {
		return slices.Contains(stringsOf(nil, b), want)
	}
	return reflect.DeepEqual(a, b)
}
