package providers

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/tract-vcs/tract/internal/llm/wire"
	"github.com/tract-vcs/tract/internal/suggest"
)

// Profile describes a provider: facts about its servers, not about its models.
type Profile struct {
	Name     string   // the name that users type
	Dialect  string   // the name of its dialect
	BaseURL  string   // of the vendor's host; empty if it depends on the account or region
	KeyEnv   []string // environment variables that usually hold the key; this package does not read them
	NeedsKey bool     // the vendor's host requires a key

	base       string // an example of a base URL, if each account or region has its own
	compatible string // a second dialect that it offers below /v1; empty: none
	quirks     wire.Quirks
}

// Body members that turn reasoning off.
const (
	// thinkingDisabled is for DeepSeek, Kimi, GLM and MiniMax, which ignore an effort of
	// none: api-docs.deepseek.com/guides/thinking_mode and similar pages.
	thinkingDisabled = `{"thinking":{"type":"disabled"}}`
	// templateOff is for servers of open models, which pass it to the chat template. The
	// templates of Qwen, GLM and Gemma read enable_thinking, those of DeepSeek, Granite and
	// Kimi read thinking; they ignore the other member.
	templateOff = `{"chat_template_kwargs":{"enable_thinking":false,"thinking":false}}`
)

// Base URLs that have a region or an account in them.
const (
	bedrockBase = "https://bedrock-runtime.REGION.amazonaws.com"
	azureBase   = "https://RESOURCE.openai.azure.com/openai/v1"
)

// vendors returns the table of providers. The name of a dialect is also the name of a
// provider, about which nothing else is known. The table is built on first use, because few
// commands need it.
var vendors = sync.OnceValue(func() map[string]Profile {
	return byName(
		Profile{Name: "chat", Dialect: "chat"},
		Profile{Name: "messages", Dialect: "messages"},
		Profile{Name: "responses", Dialect: "responses"},
		Profile{Name: "converse", Dialect: "converse", base: bedrockBase},
		Profile{Name: "invoke", Dialect: "invoke", base: bedrockBase},

		Profile{
			Name: "anthropic", Dialect: "messages", BaseURL: "https://api.anthropic.com/v1", NeedsKey: true,
			KeyEnv: []string{"ANTHROPIC_API_KEY"},
		},
		Profile{
			Name: "google", Dialect: "gemini", BaseURL: "https://generativelanguage.googleapis.com/v1beta", NeedsKey: true,
			KeyEnv: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"},
		},
		Profile{
			Name: "interactions", Dialect: "interactions", BaseURL: "https://generativelanguage.googleapis.com/v1beta", NeedsKey: true,
			KeyEnv: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"},
		},
		Profile{
			Name: "openai", Dialect: "chat", BaseURL: "https://api.openai.com/v1", NeedsKey: true,
			KeyEnv: []string{"OPENAI_API_KEY"},
			quirks: wire.Quirks{MaxTokensField: "max_completion_tokens", CallID: wire.OpenAICallID, NoReasoningField: true, Strict: true, RefusalField: true, TagsPaired: true},
		},
		Profile{
			Name: "azure", Dialect: "chat", NeedsKey: true,
			KeyEnv: []string{"AZURE_OPENAI_API_KEY", "AZURE_API_KEY"},
			base:   azureBase, quirks: wire.Quirks{MaxTokensField: "max_completion_tokens", KeyHeader: "Api-Key", CallID: wire.OpenAICallID, NoReasoningField: true, Strict: true, RefusalField: true, TagsPaired: true},
		},
		Profile{
			Name: "deepseek", Dialect: "chat", BaseURL: "https://api.deepseek.com/v1", NeedsKey: true,
			KeyEnv: []string{"DEEPSEEK_API_KEY"}, quirks: wire.Quirks{OffMembers: thinkingDisabled, PlainReasoning: true, TagsPaired: true},
		},
		Profile{
			Name: "groq", Dialect: "chat", BaseURL: "https://api.groq.com/openai/v1", NeedsKey: true,
			KeyEnv: []string{"GROQ_API_KEY"},
			quirks: wire.Quirks{MaxTokensField: "max_completion_tokens", ReasoningField: "reasoning", Strict: true},
		},
		Profile{
			Name: "cerebras", Dialect: "chat", BaseURL: "https://api.cerebras.ai/v1", NeedsKey: true,
			KeyEnv: []string{"CEREBRAS_API_KEY"},
			quirks: wire.Quirks{MaxTokensField: "max_completion_tokens", ReasoningField: "reasoning", Strict: true},
		},
		Profile{
			Name: "moonshotai", Dialect: "chat", BaseURL: "https://api.moonshot.ai/v1", NeedsKey: true,
			KeyEnv: []string{"MOONSHOT_API_KEY", "KIMI_API_KEY"}, quirks: wire.Quirks{OffMembers: thinkingDisabled, PlainReasoning: true, TagsPaired: true},
		},
		Profile{
			Name: "zai", Dialect: "chat", BaseURL: "https://api.z.ai/api/paas/v4", NeedsKey: true,
			KeyEnv: []string{"ZAI_API_KEY", "ZHIPUAI_API_KEY", "GLM_API_KEY"}, quirks: wire.Quirks{OffMembers: thinkingDisabled, PlainReasoning: true, TagsPaired: true},
		},
		Profile{
			Name: "openrouter", Dialect: "chat", BaseURL: "https://openrouter.ai/api/v1", NeedsKey: true,
			KeyEnv: []string{"OPENROUTER_API_KEY"}, quirks: wire.Quirks{ReasoningField: "reasoning", EffortObject: "reasoning", ReasoningDetails: true},
		},
		Profile{
			Name: "xai", Dialect: "chat", BaseURL: "https://api.x.ai/v1", NeedsKey: true,
			KeyEnv: []string{"XAI_API_KEY"}, quirks: wire.Quirks{PlainReasoning: true, TagsPaired: true},
		},
		Profile{
			Name: "mistral", Dialect: "chat", BaseURL: "https://api.mistral.ai/v1", NeedsKey: true,
			KeyEnv: []string{"MISTRAL_API_KEY"}, quirks: wire.Quirks{CallID: wire.MistralCallID, NoReasoningField: true, Strict: true, ThinkingParts: true, NoStreamOptions: true, TagsPaired: true},
		},
		Profile{
			Name: "together", Dialect: "chat", BaseURL: "https://api.together.xyz/v1", NeedsKey: true,
			KeyEnv: []string{"TOGETHER_API_KEY"}, quirks: wire.Quirks{OffMembers: `{"reasoning":{"enabled":false}}`, ReasoningField: "reasoning", PlainReasoning: true},
		},
		Profile{
			Name: "fireworks", Dialect: "chat", BaseURL: "https://api.fireworks.ai/inference/v1", NeedsKey: true,
			KeyEnv: []string{"FIREWORKS_API_KEY"}, quirks: wire.Quirks{PlainReasoning: true},
		},
		Profile{
			Name: "huggingface", Dialect: "chat", BaseURL: "https://router.huggingface.co/v1", NeedsKey: true,
			KeyEnv: []string{"HF_TOKEN", "HUGGINGFACE_API_KEY"},
		},
		Profile{
			Name: "perplexity", Dialect: "chat", BaseURL: "https://api.perplexity.ai", NeedsKey: true,
			KeyEnv: []string{"PERPLEXITY_API_KEY"}, quirks: wire.Quirks{NoReasoningField: true, NoStreamOptions: true},
		},
		Profile{
			Name: "alibaba", Dialect: "chat", BaseURL: "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", NeedsKey: true,
			KeyEnv: []string{"DASHSCOPE_API_KEY", "ALIBABA_API_KEY"}, quirks: wire.Quirks{OffMembers: `{"enable_thinking":false}`, BudgetField: "thinking_budget", PlainReasoning: true, TagsPaired: true},
		},
		Profile{
			Name: "minimax", Dialect: "chat", BaseURL: "https://api.minimax.io/v1", NeedsKey: true,
			KeyEnv: []string{"MINIMAX_API_KEY"}, quirks: wire.Quirks{OffMembers: thinkingDisabled},
		},
		Profile{
			Name: "vercel-gateway", Dialect: "chat", BaseURL: "https://ai-gateway.vercel.sh/v1", NeedsKey: true,
			KeyEnv: []string{"AI_GATEWAY_API_KEY"}, quirks: wire.Quirks{ReasoningField: "reasoning", EffortObject: "reasoning", ReasoningDetails: true},
		},
		Profile{
			Name: "github-copilot", Dialect: "chat", BaseURL: "https://api.githubcopilot.com", NeedsKey: true,
			KeyEnv: []string{"GITHUB_COPILOT_TOKEN"}, quirks: wire.Quirks{ReasoningField: "reasoning_text", CallID: wire.OpenAICallID, PlainReasoning: true, TagsPaired: true},
		},
		Profile{
			Name: "avian", Dialect: "chat", BaseURL: "https://api.avian.io/v1", NeedsKey: true,
			KeyEnv: []string{"AVIAN_API_KEY"}, quirks: wire.Quirks{ReasoningDetails: true},
		},
		Profile{Name: "snowflake", Dialect: "chat", NeedsKey: true, KeyEnv: []string{"SNOWFLAKE_PAT"}, quirks: wire.Quirks{ReasoningDetails: true}},
		Profile{
			Name: "bedrock", Dialect: "converse", NeedsKey: true, KeyEnv: []string{"AWS_BEARER_TOKEN_BEDROCK"},
			base: bedrockBase,
		},
		Profile{
			Name: "cohere", Dialect: "cohere", BaseURL: "https://api.cohere.com/v2", NeedsKey: true, KeyEnv: []string{"COHERE_API_KEY", "CO_API_KEY"},
		},
		Profile{ // with a base URL that ends in /v1 it uses the chat dialect
			Name: "ollama", Dialect: "ollama", BaseURL: "http://localhost:11434", KeyEnv: []string{"OLLAMA_API_KEY"},
			compatible: "chat", quirks: wire.Quirks{ReasoningField: "reasoning", PlainReasoning: true},
		},
		Profile{Name: "llama-cpp", Dialect: "chat", BaseURL: "http://localhost:8080/v1", quirks: wire.Quirks{OffMembers: templateOff, PlainReasoning: true}},
		Profile{Name: "lmstudio", Dialect: "chat", BaseURL: "http://localhost:1234/v1", quirks: wire.Quirks{PlainReasoning: true}},
		Profile{Name: "vllm", Dialect: "chat", BaseURL: "http://localhost:8000/v1", quirks: wire.Quirks{OffMembers: templateOff, PlainReasoning: true}},
		Profile{Name: "openai-compatible", Dialect: "chat"},

		// The responses dialect of vendors whose default dialect is chat.
		Profile{
			Name: "openai-responses", Dialect: "responses", BaseURL: "https://api.openai.com/v1", NeedsKey: true,
			KeyEnv: []string{"OPENAI_API_KEY"}, quirks: wire.Quirks{NoReasoningField: true},
		},
		Profile{
			Name: "azure-responses", Dialect: "responses", NeedsKey: true,
			KeyEnv: []string{"AZURE_OPENAI_API_KEY", "AZURE_API_KEY"}, base: azureBase, quirks: wire.Quirks{KeyHeader: "Api-Key", NoReasoningField: true},
		},
		Profile{
			Name: "xai-responses", Dialect: "responses", BaseURL: "https://api.x.ai/v1", NeedsKey: true,
			KeyEnv: []string{"XAI_API_KEY"}, quirks: wire.Quirks{NoReasoningField: true},
		},
		Profile{
			Name: "deepseek-responses", Dialect: "responses", BaseURL: "https://api.deepseek.com", NeedsKey: true,
			KeyEnv: []string{"DEEPSEEK_API_KEY"},
		},
		Profile{
			Name: "openrouter-responses", Dialect: "responses", BaseURL: "https://openrouter.ai/api/v1", NeedsKey: true,
			KeyEnv: []string{"OPENROUTER_API_KEY"}, quirks: wire.Quirks{EffortObject: "reasoning"},
		},
		Profile{
			Name: "github-copilot-responses", Dialect: "responses", BaseURL: "https://api.githubcopilot.com", NeedsKey: true,
			KeyEnv: []string{"GITHUB_COPILOT_TOKEN"},
		},
		Profile{Name: "lmstudio-responses", Dialect: "responses", BaseURL: "http://localhost:1234/v1"},
	)
})

// aliases maps other names of providers to their names.
var aliases = map[string]string{
	"claude": "anthropic", "azure-openai": "azure", "kimi": "moonshotai", "moonshot": "moonshotai", "glm": "zai", "z-ai": "zai", "zhipu": "zai",
	"grok": "xai", "hf": "huggingface", "qwen": "alibaba", "dashscope": "alibaba", "llamacpp": "llama-cpp", "llama.cpp": "llama-cpp",
	"gemini": "google", "google-gemini": "google", "gemini-interactions": "interactions", "google-interactions": "interactions",
	"aws-bedrock": "bedrock", "amazon-bedrock": "bedrock", "lm-studio": "lmstudio", "vercel": "vercel-gateway", "copilot": "github-copilot",
}

// byName returns a map of the profiles by name.
func byName(list ...Profile) map[string]Profile {
	m := make(map[string]Profile, len(list))
	for _, p := range list {
		m[p.Name] = p
	}
	return m
}

// Lookup returns the profile of the provider with a name or alias. It ignores case, and treats
// _ like -. For an unknown name it returns a zero Profile and false.
func Lookup(name string) (Profile, bool) {
	name = strings.ReplaceAll(strings.ToLower(name), "_", "-")
	if other, ok := aliases[name]; ok {
		name = other
	}
	p, ok := vendors()[name]
	return p, ok
}

// Names returns the sorted names and aliases of all providers, which [Lookup] and [Open]
// accept.
func Names() []string {
	return slices.Sorted(func(yield func(string) bool) {
		for name := range maps.Keys(vendors()) {
			if !yield(name) {
				return
			}
		}
		for name := range maps.Keys(aliases) {
			if !yield(name) {
				return
			}
		}
	})
}

// UnknownError is the error for an unknown provider name.
type UnknownError struct {
	Name    string // the name as given
	Nearest string // the most similar of Names; empty: none is similar
}

// Error names the unknown provider.
func (e *UnknownError) Error() string { return fmt.Sprintf("provider %q is not known", e.Name) }

// Hint returns which names are valid.
func (e *UnknownError) Hint() string {
	if e.Nearest != "" {
		return "did you mean " + e.Nearest + "? A server of your own is openai-compatible, with its base URL"
	}
	return "name a server of your own openai-compatible, with its base URL, or take one of " + strings.Join(Names(), ", ")
}

// newUnknownError returns the error for an unknown name, with the most similar known name.
func newUnknownError(name string) *UnknownError {
	given := strings.ReplaceAll(strings.ToLower(name), "_", "-")
	search := suggest.NewSearch(given, (len(given)+2)/4)
	for _, known := range Names() {
		search.Add(known, known)
	}
	return &UnknownError{Name: name, Nearest: search.Best()}
}
