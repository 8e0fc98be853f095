package providers

import (
	"cmp"
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/anthropic"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/llm/llmtest"
)

const (
	openAINone    = `{"reasoning_effort":"none"}`
	gatewayNone   = `{"reasoning":{"effort":"none"}}`
	responsesNone = `{"reasoning":{"effort":"none"}}`
)

// TestReasoningOff: reasoning.enabled=false asks every model of every dialect for no
// reasoning, and one that cannot stop for as little as it takes. cannot tells that a
// warning says so.
func TestReasoningOff(t *testing.T) {
	for _, c := range []struct {
		provider, model string
		want            string // what the body has for it; empty: nothing
		cannot          bool
	}{
		{"anthropic", "claude-3-7-sonnet-20250219", `{"thinking":{"type":"disabled"}}`, false},
		{"anthropic", "claude-sonnet-4-5", `{"thinking":{"type":"disabled"}}`, false},
		{"anthropic", "claude-opus-4-8", `{"thinking":{"type":"disabled"}}`, false},
		{"anthropic", "claude-opus-5", `{"thinking":{"type":"disabled"}}`, false},
		{"anthropic", "claude-sonnet-5-5", `{"thinking":{"type":"between_tools"}}`, false},
		{"anthropic", "claude-opus-5-5", `{"output_config":{"effort":"low"},"thinking":{"type":"adaptive"}}`, true},
		{"anthropic", "claude-fable-5", `{"output_config":{"effort":"low"},"thinking":{"type":"adaptive"}}`, true},
		{"anthropic", "claude-mythos-preview", `{"output_config":{"effort":"low"},"thinking":{"type":"adaptive"}}`, true},
		{"invoke", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", `{"thinking":{"type":"disabled"}}`, false},
		{"invoke", "us.anthropic.claude-opus-4-7-v1", "", false},
		{"bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", `{"additionalModelRequestFields":{"thinking":{"type":"disabled"}}}`, false},
		{"bedrock", "us.anthropic.claude-opus-4-8", "", false},
		{"bedrock", "amazon.nova-2-lite-v1:0", `{"additionalModelRequestFields":{"reasoningConfig":{"type":"disabled"}}}`, false},
		{"bedrock", "amazon.nova-pro-v1:0", "", false},
		{"bedrock", "openai.gpt-oss-120b-1:0", `{"additionalModelRequestFields":{"reasoning_effort":"low"}}`, true},
		{"bedrock", "us.deepseek.r1-v1:0", "", true},
		{"openai", "gpt-5.2", openAINone, false},
		{"openai", "gpt-5-mini-2025-08-07", `{"reasoning_effort":"minimal"}`, true},
		{"openai", "o4-mini", `{"reasoning_effort":"low"}`, true},
		{"openai", "gpt-5.3-codex", `{"reasoning_effort":"low"}`, true},
		{"openai", "gpt-5.2-pro", `{"reasoning_effort":"medium"}`, true},
		{"openai", "gpt-5-pro", "", true},
		{"openai", "gpt-4o", "", false},
		{"openai", "gpt-5-chat-latest", "", false},
		{"azure", "our-deployment", openAINone, false},
		{"openai-responses", "gpt-5.1", responsesNone, false},
		{"openai-responses", "gpt-5", `{"include":["reasoning.encrypted_content"],"reasoning":{"effort":"minimal"}}`, true},
		{"openai-responses", "gpt-4.1", "", false},
		{"deepseek-responses", "deepseek-v4-pro", responsesNone, false},
		{"xai-responses", "grok-4.5", `{"include":["reasoning.encrypted_content"],"reasoning":{"effort":"low"}}`, true},
		{"google", "gemini-2.5-flash", `{"generationConfig":{"thinkingConfig":{"thinkingBudget":0}}}`, false},
		{"google", "gemini-2.5-pro", `{"generationConfig":{"thinkingConfig":{"thinkingBudget":128}}}`, true},
		{"google", "gemini-2.0-flash", "", false},
		{"google", "gemini-3-flash-preview", `{"generationConfig":{"thinkingConfig":{"thinkingLevel":"minimal"}}}`, true},
		{"google", "gemini-3.1-pro-preview", `{"generationConfig":{"thinkingConfig":{"thinkingLevel":"low"}}}`, true},
		{"interactions", "gemini-3-pro-preview", `{"generation_config":{"thinking_level":"low"}}`, true},
		{"deepseek", "deepseek-v4-flash", `{"thinking":{"type":"disabled"}}`, false},
		{"deepseek", "deepseek-chat", "", false},
		{"moonshotai", "kimi-k2.6", `{"thinking":{"type":"disabled"}}`, false},
		{"moonshotai", "kimi-k2-thinking", "", true},
		{"moonshotai", "kimi-k3", `{"reasoning_effort":"low"}`, true},
		{"moonshotai", "kimi-k2-0905-preview", "", false},
		{"zai", "glm-5", `{"thinking":{"type":"disabled"}}`, false},
		{"minimax", "MiniMax-M3", `{"thinking":{"type":"disabled"}}`, false},
		{"minimax", "MiniMax-M2.5", "", true},
		{"alibaba", "qwen3-max", `{"enable_thinking":false}`, false},
		{"alibaba", "qwen3-235b-a22b-thinking-2507", "", true},
		{"xai", "grok-4.3", openAINone, false},
		{"xai", "grok-4-fast-reasoning", "", true},
		{"xai", "grok-4-1-fast-non-reasoning", "", false},
		{"groq", "qwen/qwen3-32b", openAINone, false},
		{"groq", "openai/gpt-oss-120b", `{"reasoning_effort":"low"}`, true},
		{"groq", "llama-3.3-70b-versatile", "", false},
		{"cerebras", "zai-glm-4.7", openAINone, false},
		{"fireworks", "accounts/fireworks/models/deepseek-v4-pro", openAINone, false},
		{"together", "moonshotai/Kimi-K2.5", `{"reasoning":{"enabled":false}}`, false},
		{"openrouter", "z-ai/glm-5", gatewayNone, false},
		{"openrouter", "openai/gpt-5", `{"reasoning":{"effort":"minimal"}}`, true},
		{"openrouter", "x-ai/grok-4-fast", gatewayNone, false},
		{"vercel-gateway", "anthropic/claude-opus-4.6", gatewayNone, false},
		{"openrouter-responses", "anthropic/claude-opus-4.6", responsesNone, false},
		{"mistral", "magistral-medium-latest", "", true},
		{"mistral", "mistral-large-latest", "", false},
		{"perplexity", "sonar-reasoning-pro", "", true},
		{"perplexity", "sonar", "", false},
		{"huggingface", "Qwen/Qwen3-32B", openAINone, false},
		{"github-copilot", "gpt-5.2", openAINone, false},
		{"vllm", "Qwen/Qwen3-32B", `{"chat_template_kwargs":{"enable_thinking":false,"thinking":false}}`, false},
		{"llama-cpp", "deepseek-v3.1", `{"chat_template_kwargs":{"enable_thinking":false,"thinking":false}}`, false},
		{"lmstudio", "qwen3", openAINone, false},
		{"chat", "anything", openAINone, false},
		{"ollama", "qwen3", `{"think":false}`, false},
		{"ollama", "gpt-oss:20b", `{"think":"low"}`, true},
		{"cohere", "command-a-reasoning-08-2025", `{"thinking":{"type":"disabled"}}`, false},
		{"cohere", "command-r7b-12-2024", "", false},
	} {
		t.Run(c.provider+"/"+c.model, func(t *testing.T) {
			plain := settingsBody(t, c.provider, c.model, llm.Settings{Reasoning: llm.Reasoning{Hidden: true}})
			for name, r := range map[string]llm.Reasoning{
				"enabled=false":               {Disabled: true},
				"enabled=false, effort":       {Disabled: true, Effort: "high"},
				"enabled=false, a budget":     {Disabled: true, MaxTokens: 4000},
				"enabled=false, all the rest": {Disabled: true, Effort: "max", MaxTokens: 40000, Summary: "detailed"},
				"effort=none":                 {Hidden: true, Effort: "none"},
			} {
				body := settingsBody(t, c.provider, c.model, llm.Settings{Reasoning: r})
				got := "{}"
				if v := added(body, plain); v != nil {
					got = string(rawjson.Without(v, "inferenceConfig"))
				}
				wantJSON(t, rawjson.Value(got), cmp.Or(c.want, "{}"))
				if left := added(plain, body); left != nil && !strings.Contains(string(left), "max") {
					t.Errorf("%s: the body loses %s", name, left)
				}
				warned := false
				for _, p := range problemsOf(t, c.provider, c.model, r) {
					warned = warned || p.Rule == wire.RuleCannotStop && p.Warning
				}
				if warned != c.cannot {
					t.Errorf("%s: a warning: %t, want %t", name, warned, c.cannot)
				}
			}
			for _, p := range problemsOf(t, c.provider, c.model, llm.Reasoning{}) {
				if p.Rule == wire.RuleCannotStop {
					t.Error("a warning without being asked to stop")
				}
			}
		})
	}
}

// problemsOf is what is known of a small request.
func problemsOf(t *testing.T, provider, model string, r llm.Reasoning) []llm.Problem {
	t.Helper()
	c, err := Open(provider, Config{Model: model})
	if err != nil {
		t.Fatal(err)
	}
	req := &llm.Request{
		Settings: llm.Settings{Reasoning: r},
		Messages: []content.Message{{Role: content.RoleUser, Blocks: []content.Block{content.User("Why?")}}},
	}
	if req.Body, err = c.Encode(req); err != nil {
		t.Fatal(err)
	}
	return c.Check(req)
}

// TestModelPatterns: a pattern that is none would match nothing without a word.
func TestModelPatterns(t *testing.T) {
	var all []string
	for _, s := range wire.OffRules {
		all = append(all, s.Models...)
		if s.Evidence == "" {
			t.Errorf("%v: no evidence", s.Models)
		}
	}
	for _, r := range wire.ReplayRules {
		all = append(append(all, r.Models...), r.NonReasoning...)
		if _, known := Lookup(r.Vendor); !known || r.Evidence == "" {
			t.Errorf("%+v", r)
		}
	}
	for _, p := range all {
		if _, err := path.Match(p, "gpt-5"); err != nil || p != strings.ToLower(p) {
			t.Errorf("pattern %q: %v", p, err)
		}
	}
}

// TestModelThatRefusesToStopGetsTheLeastEffort: what no table knows a refusal says.
func TestModelThatRefusesToStopGetsTheLeastEffort(t *testing.T) {
	const chatAnswer = `{"choices":[{"message":{"role":"assistant","content":"Blue."},"finish_reason":"stop"}]}`
	for name, c := range map[string]struct {
		provider, model, refusal, answer, want string
	}{
		"the values are listed": {
			"azure", "our-model", `{"error":{"message":"Unsupported value: 'none' is not supported with the 'our-model' model. Supported values are: 'low', 'medium', and 'high'.","param":"reasoning_effort"}}`,
			chatAnswer, `{"reasoning_effort":"low"}`,
		},
		"of the other form": {
			"openai-responses", "gpt-9", `{"error":{"message":"Unsupported value: 'none' is not supported with the 'gpt-9' model. Supported values are: 'medium' and 'high'.","param":"reasoning.effort"}}`,
			`{"output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Blue."}]}],"status":"completed"}`, `{"reasoning":{"effort":"medium"}}`,
		},
		"the setting is not known": {"chat", "m", `{"error":{"message":"Unrecognized request argument supplied: reasoning_effort"}}`, chatAnswer, `{}`},
		"it is mandatory":          {"openrouter", "new/model", `{"error":{"message":"Reasoning is mandatory for this endpoint and cannot be disabled.","code":400}}`, chatAnswer, `{}`},
		"a Claude to come":         {"anthropic", "claude-opus-5-9", `{"type":"error","error":{"type":"invalid_request_error","message":"\"thinking.type.disabled\" is not supported for this model."}}`, anAnswer, `{}`},
		"a Gemini to come":         {"google", "gemini-2.9", `{"error":{"code":400,"message":"Budget 0 is invalid. This model only works in thinking mode.","status":"INVALID_ARGUMENT"}}`, `{"candidates":[{"content":{"role":"model","parts":[{"text":"Blue."}]},"finishReason":"STOP"}]}`, `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			s := llmtest.Start(t, llmtest.Exchange{Status: 400, Body: c.refusal}, llmtest.Exchange{Body: c.answer})
			client, err := Open(c.provider, Config{Model: c.model, BaseURL: s.URL(), APIKey: aKey, Retries: -1})
			if err != nil {
				t.Fatal(err)
			}
			var warned []string
			reply, err := client.Generate(t.Context(), &llm.Request{
				Settings:  llm.Settings{Reasoning: llm.Reasoning{Disabled: true, Effort: "high"}},
				Messages:  []content.Message{{Role: content.RoleUser, Blocks: []content.Block{content.User("Why?")}}},
				OnWarning: func(p llm.Problem) { warned = append(warned, p.Rule) },
			})
			if err != nil || reply.Text() != "Blue." {
				t.Fatal(reply, err)
			}
			if fmt.Sprint(warned) != "["+wire.RuleCannotStop+"]" {
				t.Errorf("warned of %v", warned)
			}
			wantJSON(t, rawjson.Without(s.Requests()[1].Body, "model", "messages", "contents", "input", "store", "max_tokens"), c.want)
		})
	}
}

// TestInterleavedThinkingHeader: by the header, or the field of Bedrock, of the
// models that need it and of no other.
func TestInterleavedThinkingHeader(t *testing.T) {
	tools := []llm.Tool{{Name: "weather"}}
	for name, c := range map[string]struct {
		provider, model string
		tools           []llm.Tool
		reasoning       llm.Reasoning
		headers         map[string]string
		want            string
	}{
		"Claude 4":          {"anthropic", "claude-sonnet-4-20250514", tools, llm.Reasoning{Effort: "high"}, nil, anthropic.InterleavedBeta},
		"Claude 4.5":        {"anthropic", "claude-opus-4-5-20251101", tools, llm.Reasoning{MaxTokens: 2000}, nil, anthropic.InterleavedBeta},
		"a budget for 4.6":  {"anthropic", "claude-sonnet-4-6", tools, llm.Reasoning{MaxTokens: 2000}, nil, anthropic.InterleavedBeta},
		"elsewhere":         {"messages", "anthropic/claude-haiku-4.5", tools, llm.Reasoning{MaxTokens: 2000}, nil, anthropic.InterleavedBeta},
		"no tools":          {"anthropic", "claude-opus-4-5", nil, llm.Reasoning{Effort: "high"}, nil, ""},
		"no thinking":       {"anthropic", "claude-opus-4-5", tools, llm.Reasoning{}, nil, ""},
		"thinking off":      {"anthropic", "claude-opus-4-5", tools, llm.Reasoning{Disabled: true, Effort: "high"}, nil, ""},
		"adaptive":          {"anthropic", "claude-opus-4-6", tools, llm.Reasoning{Effort: "high"}, nil, ""},
		"a budget for Opus": {"anthropic", "claude-opus-4-6", tools, llm.Reasoning{MaxTokens: 2000}, nil, ""},
		"an older one":      {"anthropic", "claude-3-7-sonnet-20250219", tools, llm.Reasoning{Effort: "high"}, nil, ""},
		"not Claude":        {"messages", "glm-5", tools, llm.Reasoning{Effort: "high"}, nil, ""},
		"a header of one's own": {
			"anthropic", "claude-opus-4-5", tools, llm.Reasoning{Effort: "high"}, map[string]string{"anthropic-beta": "context-1m-2025-08-07"}, "context-1m-2025-08-07",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := llmtest.Start(t, llmtest.Exchange{Body: anAnswer})
			client, err := Open(c.provider, Config{Model: c.model, BaseURL: s.URL(), APIKey: aKey, Retries: -1, Headers: c.headers})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := client.Generate(t.Context(), &llm.Request{
				Tools: c.tools, Settings: llm.Settings{Reasoning: c.reasoning},
				Messages: []content.Message{{Role: content.RoleUser, Blocks: []content.Block{content.User("Why?")}}},
			}); err != nil {
				t.Fatal(err)
			}
			if got := s.Requests()[0].Header.Get("Anthropic-Beta"); got != c.want {
				t.Errorf("anthropic-beta %q, want %q", got, c.want)
			}
		})
	}
	for provider, path := range map[string][]string{"invoke": {"anthropic_beta"}, "bedrock": {"additionalModelRequestFields", "anthropic_beta"}} {
		for model, want := range map[string]string{"us.anthropic.claude-sonnet-4-5-20250929-v1:0": `["` + anthropic.InterleavedBeta + `"]`, "us.anthropic.claude-opus-4-6-v1": ""} {
			body := settingsBody(t, provider, model, llm.Settings{Reasoning: llm.Reasoning{Effort: "high"}})
			if got := string(body.Get(path...)); got != want {
				t.Errorf("%s %s: %s", provider, model, got)
			}
		}
	}
}
