package providers

import (
	"github.com/tract-vcs/tract/internal/llm/rawjson"
)

// outlineConverse says what a request body of the converse dialect says.
func outlineConverse(body rawjson.Value) []said {
	return outlineParts(body, "messages", "content", "assistant", func(b rawjson.Value, s *said) {
		switch {
		case b.Get("toolUse") != nil:
			s.what, s.id = saidCall, b.Get("toolUse", "toolUseId").Text()
		case b.Get("toolResult") != nil:
			s.what, s.id = saidResult, b.Get("toolResult", "toolUseId").Text()
		case b.Get("reasoningContent") != nil:
			s.what = saidThought
		case b.Get("text") != nil:
			s.what, s.empty = saidText, b.Get("text").Text() == ""
		}
	})
}

// converseRules is what Bedrock Converse refuses.
var converseRules = []rule{
	userFirst(`Bedrock 400: "A conversation must start with a user message"`),
}
