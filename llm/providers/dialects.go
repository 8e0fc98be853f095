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

// dialects lists all dialects. To add a dialect, add it here.
var dialects = []*wire.Dialect{openai.Chat, openai.Responses, anthropic.Messages, bedrock.Invoke, bedrock.Converse, google.Gemini, google.Interactions, cohere.Cohere, ollama.Ollama}

// dialectNamed returns the dialect with a name; nil when there is none.
func dialectNamed(name string) *wire.Dialect {
	for _, d := range dialects {
		if d.Name == name {
			return d
		}
	}
	return nil
}

// dialectAliases maps other names of dialects to their names.
var dialectAliases = map[string]string{
	"chat-completions": "chat", "anthropic-messages": "messages", "bedrock-converse": "converse", "bedrock-invoke": "invoke", "gemini-interactions": "interactions",
}

// FindDialect returns the name of the dialect with this name or alias, ignoring case. known
// reports whether there is such a dialect.
func FindDialect(name string) (dialect string, known bool) {
	name = strings.ToLower(name)
	if other, ok := dialectAliases[name]; ok {
		name = other
	}
	return name, dialectNamed(name) != nil
}

// Dialects returns the sorted names of the dialects.
func Dialects() []string {
	var names []string
	for _, d := range dialects {
		names = append(names, d.Name)
	}
	slices.Sort(names)
	return names
}
