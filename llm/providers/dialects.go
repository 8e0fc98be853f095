package providers

import (
	"slices"
	"strings"
)

// dialects is every wire format.
var dialects = []*dialect{Chat, Responses, Messages, Invoke, Converse, Gemini, Interactions, Cohere, Ollama}

// dialectNamed returns the wire format of a name; nil: there is none.
func dialectNamed(name string) *dialect {
	for _, d := range dialects {
		if d.name == name {
			return d
		}
	}
	return nil
}

// dialectAliases is other names of wire formats.
var dialectAliases = map[string]string{
	"chat-completions": "chat", "anthropic-messages": "messages", "bedrock-converse": "converse", "bedrock-invoke": "invoke", "gemini-interactions": "interactions",
}

// FindDialect gives a wire format by its name or one of its other names; case
// does not matter.
func FindDialect(name string) (dialect string, known bool) {
	name = strings.ToLower(name)
	if other, ok := dialectAliases[name]; ok {
		name = other
	}
	return name, dialectNamed(name) != nil
}

// Dialects lists the wire formats, in order.
func Dialects() []string {
	var names []string
	for _, d := range dialects {
		names = append(names, d.name)
	}
	slices.Sort(names)
	return names
}
