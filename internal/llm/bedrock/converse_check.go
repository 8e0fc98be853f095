package bedrock

import (
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
)

// outlineMessages returns the outline of the messages of a request body.
func outlineMessages(body rawjson.Value) []wire.OutlineItem {
	return wire.OutlineParts(body, "messages", "content", "assistant", func(s *wire.OutlineItem) {
		switch b := s.JSON; {
		case b.Get("toolUse") != nil:
			s.Kind, s.CallID = wire.OutlineCall, b.Get("toolUse", "toolUseId").Text()
		case b.Get("toolResult") != nil:
			s.Kind, s.CallID = wire.OutlineResult, b.Get("toolResult", "toolUseId").Text()
		case b.Get("reasoningContent") != nil:
			s.Kind = wire.OutlineReasoning
		case b.Get("text") != nil:
			s.Kind, s.Empty = wire.OutlineText, b.Get("text").Text() == ""
		}
	})
}

// converseRules is what Bedrock Converse refuses.
var converseRules = []wire.Rule{
	wire.RequireUserFirst(`Bedrock 400: "A conversation must start with a user message"`),
}
