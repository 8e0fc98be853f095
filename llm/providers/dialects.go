package providers

import (
	"slices"
	"strings"

	"github.com/tract-vcs/tract/internal/llm/anthropic"
	"github.com/tract-vcs/tract/internal/llm/bedrock"
	"github.com/tract-vcs/tract/internal/llm/cohere"
	"github.com/tract-vcs/tract/internal/llm/google"
	"github.com/tract-vcs/tract/internal/llm/ollama"
	"github.com/tract-vcs/tract/internal/llm/openai"
	"github.com/tract-vcs/tract/internal/llm/wire"
)

// dialects are all wire formats. Adding one is one line here.
var dialects = []*wire.Dialect{openai.Chat, openai.Responses, anthropic.Messages, bedrock.Invoke, bedrock.Converse, google.Gemini, google.Interactions, cohere.Cohere, ollama.Ollama}

// dialectNamed returns the dialect of a name; nil when there is none.
func dialectNamed(name string) *wire.Dialect {
	for _, d := range dialects {
		if d.Name == name {
			return d
		}
	}
	return nil
}

// dialectAliases are other names of dialects.
var dialectAliases = map[string]string{
	"chat-completions": "chat", "anthropic-messages": "messages", "bedrock-converse": "converse", "bedrock-invoke": "invoke", "gemini-interactions": "interactions",
}

// FindDialect returns the dialect of a name or one of its other names; case does not
// matter.
func FindDialect(name string) (dialect string, known bool) {
	name = strings.ToLower(name)
	if other, ok := dialectAliases[name]; ok {
		name = other
	}
	return name, dialectNamed(name) != nil
}

// Dialects lists the names of the dialects, sorted.
func Dialects() []string {
	var names []string
	for _, d := range dialects {
		names = append(names, d.Name)
	}
	slices.Sort(names)
	return names
}
