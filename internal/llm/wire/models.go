package wire

import (
	"path"
	"slices"
	"strings"

	"github.com/tract-vcs/tract/llm"
)

// Tables of models.
//
// Some facts about a model change how a request must be written, and no response gives them.
// The tables here list such facts by patterns of model names, with the evidence for each:
// ReplayRules lists models that require reasoning of earlier turns, OffRules how to turn
// reasoning off. A pattern is compared with the model's name in lower case, without the part
// before the last slash. A model that is in no table is treated like the other models of its
// provider. docs/providers.md shows the tables.

// normalizedModelName returns the name of the model as the tables have it: in lower case, without
// its vendor.
func (t Target) normalizedModelName() string {
	name := strings.ToLower(t.Model)
	return name[strings.LastIndexByte(name, '/')+1:]
}

// matchesAny reports whether one of the patterns matches the name. The patterns are those of
// [path.Match].
func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, err := path.Match(p, name)
		return err == nil && ok
	})
}

// ReplayRule describes a family of models that refuse a request without the reasoning of
// earlier turns.
type ReplayRule struct {
	Vendor       string   // the provider that requires it, whatever its models are called
	Models       []string // the names of these models at other providers
	NonReasoning []string // models of the family that do not reason, so that nothing is required

	// Placeholder is sent where there is no reasoning, because the server requires the field.
	Placeholder string
	// EveryMessage: in a request with tools, all messages of the model need the field. Else
	// only messages with tool calls need it.
	EveryMessage bool
	Evidence     string
}

// ReplayRules are the models that require the reasoning of a turn with tool calls in all later
// requests. The rule reasoning-content-missing checks it.
var ReplayRules = []ReplayRule{
	{
		Vendor: "moonshotai", Models: []string{"*kimi-k[2-9]*", "*kimi-latest*", "*kimi-thinking*"},
		NonReasoning: []string{"*kimi-k2-0*", "*kimi-k2-turbo*", "*instruct*", "moonshot-v1*"},
		Placeholder:  " ",
		Evidence:     `Kimi 400: "thinking is enabled but reasoning_content is missing in assistant tool call message at index N", in every later request, and "" counts as missing (MoonshotAI/kimi-agent-sdk#169, theopenco/llmgateway#2093)`,
	},
	{
		Vendor: "deepseek", Models: []string{"*deepseek*"},
		NonReasoning: []string{"deepseek-chat*", "deepseek-coder*", "*deepseek-v3*", "*deepseek?r1*"},
		EveryMessage: true,
		Evidence:     `DeepSeek 400: "The reasoning_content in the thinking mode must be passed back to the API"; https://api-docs.deepseek.com/guides/thinking_mode: of turns with tool calls, in all subsequent requests`,
	},
}

// WantsReasoningBack returns the rule for the model with the reasoning settings r; nil: it
// needs no reasoning of closed turns, or does not reason. Rules apply only to the dialects in
// which the vendors offer these models.
func (t Target) WantsReasoningBack(r llm.Reasoning) *ReplayRule {
	if !slices.Contains([]string{"chat", "messages", "responses"}, t.Dialect.Name) || t.Quirks.NoReasoningField || IsReasoningOff(r) && !t.OffRule().StillReasons {
		return nil
	}
	for i := range ReplayRules {
		if f := &ReplayRules[i]; (f.Vendor == t.Vendor() || matchesAny(f.Models, t.normalizedModelName())) && !matchesAny(f.NonReasoning, t.normalizedModelName()) {
			return f
		}
	}
	return nil
}

// RequiresReasoningBack returns the rule of WantsReasoningBack if the server may refuse a
// request without the field: the vendor's own server, or an unknown one.
func (t Target) RequiresReasoningBack(r llm.Reasoning) *ReplayRule {
	f := t.WantsReasoningBack(r)
	if f == nil || t.Dialect.Name != "chat" || t.Vendor() != f.Vendor && !t.Generic {
		return nil
	}
	return f
}

// Vendor returns the name of the provider without that of its dialect.
func (t Target) Vendor() string { return strings.TrimSuffix(t.Provider, "-"+t.Dialect.Name) }

// IsReasoningOff reports whether the settings turn reasoning off.
func IsReasoningOff(r llm.Reasoning) bool {
	return r.Disabled || r.Effort == EffortNone && r.MaxTokens <= 0
}

// Efforts that turn reasoning off.
const (
	EffortNone         = "none"          // turns reasoning off
	EffortBetweenTools = "between_tools" // Anthropic's value for models that refuse none
)

// OffRule describes how to turn reasoning off for models that need something other than the
// usual setting of their dialect or provider.
type OffRule struct {
	Models       []string
	Vendors      []string // the providers for which the rule applies; nil: all
	Effort       string   // the nearest effort; empty: no setting is sent
	StillReasons bool     // the model reasons anyway
	Evidence     string   // the source of the rule
}

var (
	evidenceOpenAI      = `OpenAI 400: "Unsupported value: 'minimal' is not supported with the 'gpt-5.1' model. Supported values are: ..."; https://platform.openai.com/docs/guides/reasoning`
	evidenceNoReasoning = "it does not reason, and may refuse the setting"
	bedrockProviders    = []string{"converse", "bedrock", "invoke"}
	evidenceGemini      = "https://docs.cloud.google.com/vertex-ai/generative-ai/docs/thinking: levels and budgets by model"
	evidenceGrok        = "https://docs.x.ai/docs/guides/reasoning; vercel/ai @ai-sdk/xai 4.0.0-canary.61, anomalyco/opencode#39448"
)

// OffRules lists the rules in the order of the lookup. The first match is used.
var OffRules = []OffRule{
	{Models: []string{"gpt-3*", "gpt-4*", "chatgpt-4*", "gpt-5-chat*", "*non-reasoning*"}, Evidence: evidenceNoReasoning},
	{Models: []string{"gpt-*-chat-latest", "gpt-5-pro*"}, StillReasons: true, Evidence: evidenceOpenAI},
	{Models: []string{"gpt-5*-pro*"}, Effort: "medium", StillReasons: true, Evidence: evidenceOpenAI},
	{Models: []string{"o[134]", "o[134]-*", "gpt-5*codex*", "codex-mini*", "gpt-6*", "*gpt-oss*"}, Effort: "low", StillReasons: true, Evidence: evidenceOpenAI},
	{Models: []string{"gpt-5", "gpt-5-*"}, Effort: "minimal", StillReasons: true, Evidence: evidenceOpenAI},

	{
		Models: []string{"*claude-fable*", "*claude-mythos*", "*claude-opus-5?5*", "*claude-opus-[6-9]*"}, Effort: "low", StillReasons: true,
		Evidence: `Anthropic 400: "thinking.type.disabled" is not supported for this model; https://platform.claude.com/docs/en/models: adaptive (always on)`,
	},
	{
		Models: []string{"*claude-sonnet-5?5*"}, Vendors: append([]string{"anthropic", "messages"}, bedrockProviders...), Effort: EffortBetweenTools,
		Evidence: "https://platform.claude.com/docs/en/models/sonnet-5-5: between_tools turns thinking off, disabled is refused",
	},
	{
		Models: []string{"*claude-opus-4-[78]*"}, Vendors: bedrockProviders,
		Evidence: "it reasons only when asked to, and Bedrock refuses thinking.type disabled: https://docs.aws.amazon.com/bedrock/latest/userguide/claude-messages-adaptive-thinking.html",
	},

	{Models: []string{"*gemini-1*", "*gemini-2.0*"}, Evidence: evidenceNoReasoning},
	{Models: []string{"*gemini-2.5-pro*"}, Effort: "minimal", StillReasons: true, Evidence: evidenceGemini + "; from 128 tokens"},
	{Models: []string{"*gemini-3-flash*", "*gemini-3.[1-6]-flash*"}, Effort: "minimal", StillReasons: true, Evidence: evidenceGemini},
	{Models: []string{"*gemini-[3-9]*", "*gemini-pro-latest", "*gemini-flash-latest", "*gemini-flash-lite-latest"}, Effort: "low", StillReasons: true, Evidence: evidenceGemini},

	{Models: []string{"grok-2*", "grok-3", "grok-3-fast*", "grok-3-latest"}, Evidence: evidenceNoReasoning},
	{Models: []string{"grok-4.3*", "grok-latest"}, Effort: EffortNone, Evidence: evidenceGrok},
	{Models: []string{"grok-3-mini*", "grok-4.[4-9]*", "grok-[5-9]*"}, Effort: "low", StillReasons: true, Evidence: evidenceGrok},
	{Models: []string{"grok-4*", "grok-code*"}, Vendors: []string{"xai"}, StillReasons: true, Evidence: evidenceGrok + "; it is refused here"},

	{Models: []string{"moonshot-v1*", "*kimi-k2-0*", "*kimi-k2-turbo*", "*kimi-k2-instruct*"}, Evidence: evidenceNoReasoning},
	{Models: []string{"*kimi-k2-thinking*", "*kimi-k2.7-code*"}, StillReasons: true, Evidence: "https://platform.moonshot.ai/docs/guide/use-kimi-k2-thinking-model; https://java.agentscope.io/v2/en/integration/model/kimi: they always reason"},
	{Models: []string{"*kimi-k[3-9]*"}, Effort: "low", StillReasons: true, Evidence: "https://java.agentscope.io/v2/en/integration/model/kimi: reasoning_effort is low, high or max"},
	{Models: []string{"deepseek-chat*", "deepseek-coder*"}, Vendors: []string{"deepseek"}, Evidence: evidenceNoReasoning},
	{Models: []string{"*deepseek?r1*"}, Vendors: []string{"converse", "bedrock", "groq", "together", "fireworks", "huggingface"}, StillReasons: true, Evidence: "believed: its template always begins with reasoning"},
	{Models: []string{"*qwq*", "*qwen*thinking*"}, StillReasons: true, Evidence: "believed: their templates always begin with reasoning"},
	{Models: []string{"*minimax-m2*"}, StillReasons: true, Evidence: "https://java.agentscope.io/v2/en/integration/model/minimax: M2 reasons even when it is asked not to"},
	{Models: []string{"*minimax-m3[.]1*"}, Effort: "low", StillReasons: true, Evidence: `MiniMax 400: "requires adaptive thinking"`},
	{Models: []string{"*magistral*"}, StillReasons: true, Evidence: "pydantic/pydantic-ai#5285: it always reasons"},
	{Models: []string{"*"}, Vendors: []string{"mistral"}, Evidence: "pydantic/pydantic-ai#5285: the others reason only when asked to"},
	{Models: []string{"sonar-reasoning*", "r1-1776*"}, Vendors: []string{"perplexity"}, StillReasons: true, Evidence: "believed: there is no switch"},
	{Models: []string{"sonar-deep-research*"}, Vendors: []string{"perplexity"}, Effort: "low", StillReasons: true, Evidence: "believed: reasoning_effort is low, medium or high"},
	{Models: []string{"sonar*"}, Vendors: []string{"perplexity"}, Evidence: evidenceNoReasoning},
	{Models: []string{"command-r*", "command-a-03*", "command-a-vision*", "c4ai*"}, Evidence: evidenceNoReasoning},
	{Models: []string{"*nova-micro-v1*", "*nova-lite-v1*", "*nova-pro-v1*", "*nova-premier-v1*"}, Evidence: evidenceNoReasoning},
	{Models: []string{"*llama-[1-4]*", "*llama[1-4]*", "*mixtral*", "*gemma2*", "*gemma-2*", "*gemma-3*"}, Evidence: evidenceNoReasoning},
}

// OffRule returns the rule for turning off the model's reasoning: the effort none unless a
// table entry matches.
func (t Target) OffRule() OffRule {
	for _, s := range OffRules {
		if matchesAny(s.Models, t.normalizedModelName()) && (s.Vendors == nil || slices.Contains(s.Vendors, t.Vendor())) {
			return s
		}
	}
	return OffRule{Effort: EffortNone}
}
