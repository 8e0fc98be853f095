package providers

import (
	"path"
	"slices"
	"strings"

	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/llm"
)

// What is known of models, by patterns of their names: facts that a request depends
// on and that no response tells. A model that is in no table is treated as the rest
// of its provider's. docs/providers.md shows the tables.

// modelName is the name of a model without its vendor, in lower case: what the
// patterns of the tables are compared with.
func (t target) modelName() string {
	name := strings.ToLower(t.model)
	return name[strings.LastIndexByte(name, '/')+1:]
}

// matches reports whether one of the patterns is the name; * stands for anything.
func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, err := path.Match(p, name)
		return err == nil && ok
	})
}

// replay is a family of models that refuse a request which lacks reasoning of
// earlier turns.
type replay struct {
	vendor string   // the provider that demands it, whatever a model of it is called
	models []string // what these models are called elsewhere
	plain  []string // models of the family that do not reason, so that nothing is demanded

	// placeholder is sent in the place of reasoning that there is none of: the server
	// wants the field to be there.
	placeholder string
	// every tells that, in a request with tools, all messages of the model need the
	// field; else only those with tool calls do.
	every    bool
	evidence string
}

// replays is the models that want the reasoning of a turn with tool calls in all
// later requests. The rule reasoning-content-missing is about them.
var replays = []replay{
	{
		vendor: "moonshotai", models: []string{"*kimi-k[2-9]*", "*kimi-latest*", "*kimi-thinking*"},
		plain:       []string{"*kimi-k2-0*", "*kimi-k2-turbo*", "*instruct*", "moonshot-v1*"},
		placeholder: " ",
		evidence:    `Kimi 400: "thinking is enabled but reasoning_content is missing in assistant tool call message at index N", in every later request, and "" counts as missing (MoonshotAI/kimi-agent-sdk#169, theopenco/llmgateway#2093)`,
	},
	{
		vendor: "deepseek", models: []string{"*deepseek*"},
		plain:    []string{"deepseek-chat*", "deepseek-coder*", "*deepseek-v3*", "*deepseek?r1*"},
		every:    true,
		evidence: `DeepSeek 400: "The reasoning_content in the thinking mode must be passed back to the API"; https://api-docs.deepseek.com/guides/thinking_mode: of turns with tool calls, in all subsequent requests`,
	},
}

// keeps is the family of the model that is asked, in the way that r says; nil: the
// model demands no reasoning of closed turns, or does not reason. Only the dialects
// count that the vendors of these models offer them in.
func (t target) keeps(r llm.Reasoning) *replay {
	if !slices.Contains([]string{"chat", "messages", "responses"}, t.dialect.name) || t.quirks.silent || isOff(r) && !t.stop().reasons {
		return nil
	}
	for i := range replays {
		if f := &replays[i]; (f.vendor == t.vendor() || matches(f.models, t.modelName())) && !matches(f.plain, t.modelName()) {
			return f
		}
	}
	return nil
}

// demands is keeps for a server that refuses a request in which the field is missing:
// the vendor's own, or one that nothing is known of.
func (t target) demands(r llm.Reasoning) *replay {
	f := t.keeps(r)
	if f == nil || t.dialect.name != "chat" || t.vendor() != f.vendor && !t.generic {
		return nil
	}
	return f
}

// vendor is the provider without the name of its dialect.
func (t target) vendor() string { return strings.TrimSuffix(t.provider, "-"+t.dialect.name) }

// isOff reports whether a model is asked not to reason.
func isOff(r llm.Reasoning) bool { return r.Disabled || r.Effort == effortNone && r.MaxTokens <= 0 }

const (
	effortNone    = "none"          // asks a model not to reason
	effortBetween = "between_tools" // Anthropic's word for it where none is refused
)

// stop is how models that match are asked not to reason, where that is not by the
// means of their dialect or provider.
type stop struct {
	models  []string
	vendors []string // only there; nil: wherever the model is served
	least   string   // the effort that comes nearest; empty: nothing is sent
	reasons bool     // the model reasons all the same
	why     string   // how it is known
}

var (
	openAIEfforts  = `OpenAI 400: "Unsupported value: 'minimal' is not supported with the 'gpt-5.1' model. Supported values are: ..."; https://platform.openai.com/docs/guides/reasoning`
	noReasoning    = "it does not reason, and may refuse the setting"
	bedrockClaude  = []string{"converse", "bedrock", "invoke"}
	geminiThinking = "https://docs.cloud.google.com/vertex-ai/generative-ai/docs/thinking: levels and budgets by model"
	grokReasoning  = "https://docs.x.ai/docs/guides/reasoning; vercel/ai @ai-sdk/xai 4.0.0-canary.61, anomalyco/opencode#39448"
)

// stops is in the order in which it is looked through: the first that matches counts.
var stops = []stop{
	{models: []string{"gpt-3*", "gpt-4*", "chatgpt-4*", "gpt-5-chat*", "*non-reasoning*"}, why: noReasoning},
	{models: []string{"gpt-*-chat-latest", "gpt-5-pro*"}, reasons: true, why: openAIEfforts},
	{models: []string{"gpt-5*-pro*"}, least: "medium", reasons: true, why: openAIEfforts},
	{models: []string{"o[134]", "o[134]-*", "gpt-5*codex*", "codex-mini*", "gpt-6*", "*gpt-oss*"}, least: "low", reasons: true, why: openAIEfforts},
	{models: []string{"gpt-5", "gpt-5-*"}, least: "minimal", reasons: true, why: openAIEfforts},

	{
		models: []string{"*claude-fable*", "*claude-mythos*", "*claude-opus-5?5*", "*claude-opus-[6-9]*"}, least: "low", reasons: true,
		why: `Anthropic 400: "thinking.type.disabled" is not supported for this model; https://platform.claude.com/docs/en/models: adaptive (always on)`,
	},
	{
		models: []string{"*claude-sonnet-5?5*"}, vendors: append([]string{"anthropic", "messages"}, bedrockClaude...), least: effortBetween,
		why: "https://platform.claude.com/docs/en/models/sonnet-5-5: between_tools turns thinking off, disabled is refused",
	},
	{
		models: []string{"*claude-opus-4-[78]*"}, vendors: bedrockClaude,
		why: "it reasons only when asked to, and Bedrock refuses thinking.type disabled: https://docs.aws.amazon.com/bedrock/latest/userguide/claude-messages-adaptive-thinking.html",
	},

	{models: []string{"*gemini-1*", "*gemini-2.0*"}, why: noReasoning},
	{models: []string{"*gemini-2.5-pro*"}, least: "minimal", reasons: true, why: geminiThinking + "; from 128 tokens"},
	{models: []string{"*gemini-3-flash*", "*gemini-3.[1-6]-flash*"}, least: "minimal", reasons: true, why: geminiThinking},
	{models: []string{"*gemini-[3-9]*", "*gemini-pro-latest", "*gemini-flash-latest", "*gemini-flash-lite-latest"}, least: "low", reasons: true, why: geminiThinking},

	{models: []string{"grok-2*", "grok-3", "grok-3-fast*", "grok-3-latest"}, why: noReasoning},
	{models: []string{"grok-4.3*", "grok-latest"}, least: effortNone, why: grokReasoning},
	{models: []string{"grok-3-mini*", "grok-4.[4-9]*", "grok-[5-9]*"}, least: "low", reasons: true, why: grokReasoning},
	{models: []string{"grok-4*", "grok-code*"}, vendors: []string{"xai"}, reasons: true, why: grokReasoning + "; it is refused here"},

	{models: []string{"moonshot-v1*", "*kimi-k2-0*", "*kimi-k2-turbo*", "*kimi-k2-instruct*"}, why: noReasoning},
	{models: []string{"*kimi-k2-thinking*", "*kimi-k2.7-code*"}, reasons: true, why: "https://platform.moonshot.ai/docs/guide/use-kimi-k2-thinking-model; https://java.agentscope.io/v2/en/integration/model/kimi: they always reason"},
	{models: []string{"*kimi-k[3-9]*"}, least: "low", reasons: true, why: "https://java.agentscope.io/v2/en/integration/model/kimi: reasoning_effort is low, high or max"},
	{models: []string{"deepseek-chat*", "deepseek-coder*"}, vendors: []string{"deepseek"}, why: noReasoning},
	{models: []string{"*deepseek?r1*"}, vendors: []string{"converse", "bedrock", "groq", "together", "fireworks", "huggingface"}, reasons: true, why: "believed: its template always begins with reasoning"},
	{models: []string{"*qwq*", "*qwen*thinking*"}, reasons: true, why: "believed: their templates always begin with reasoning"},
	{models: []string{"*minimax-m2*"}, reasons: true, why: "https://java.agentscope.io/v2/en/integration/model/minimax: M2 reasons even when it is asked not to"},
	{models: []string{"*minimax-m3[.]1*"}, least: "low", reasons: true, why: `MiniMax 400: "requires adaptive thinking"`},
	{models: []string{"*magistral*"}, reasons: true, why: "pydantic/pydantic-ai#5285: it always reasons"},
	{models: []string{"*"}, vendors: []string{"mistral"}, why: "pydantic/pydantic-ai#5285: the others reason only when asked to"},
	{models: []string{"sonar-reasoning*", "r1-1776*"}, vendors: []string{"perplexity"}, reasons: true, why: "believed: there is no switch"},
	{models: []string{"sonar-deep-research*"}, vendors: []string{"perplexity"}, least: "low", reasons: true, why: "believed: reasoning_effort is low, medium or high"},
	{models: []string{"sonar*"}, vendors: []string{"perplexity"}, why: noReasoning},
	{models: []string{"command-r*", "command-a-03*", "command-a-vision*", "c4ai*"}, why: noReasoning},
	{models: []string{"*nova-micro-v1*", "*nova-lite-v1*", "*nova-pro-v1*", "*nova-premier-v1*"}, why: noReasoning},
	{models: []string{"*llama-[1-4]*", "*llama[1-4]*", "*mixtral*", "*gemma2*", "*gemma-2*", "*gemma-3*"}, why: noReasoning},
}

// stop is how the model that is asked is told not to reason.
func (t target) stop() stop {
	for _, s := range stops {
		if matches(s.models, t.modelName()) && (s.vendors == nil || slices.Contains(s.vendors, t.vendor())) {
			return s
		}
	}
	return stop{least: effortNone}
}

// encode writes the body of a request. Where the model is asked not to reason, the
// dialect is given the effort that comes nearest, and neither another nor a budget.
func (t target) encode(req *llm.Request) (rawjson.Value, error) {
	if r := &req.Settings.Reasoning; isOff(*r) {
		quiet := *req
		quiet.Settings.Reasoning = llm.Reasoning{Disabled: true, Effort: t.stop().least, Summary: r.Summary, Native: r.Native, Hidden: r.Hidden || r.Disabled}
		req = &quiet
	}
	return t.dialect.encode(t, req)
}
