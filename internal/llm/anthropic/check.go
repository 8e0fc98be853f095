package anthropic

import (
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
)

// outlineMessages returns the outline of the messages of a request body.
func outlineMessages(body rawjson.Value) []wire.OutlineItem {
	return wire.OutlineParts(body, "messages", "content", "assistant", func(s *wire.OutlineItem) {
		switch b := s.JSON; b.Get("type").Text() {
		case "text":
			s.Kind, s.Empty = wire.OutlineText, b.Get("text").Text() == ""
		case "tool_use":
			s.Kind, s.CallID = wire.OutlineCall, b.Get("id").Text()
		case "tool_result":
			s.Kind, s.CallID = wire.OutlineResult, b.Get("tool_use_id").Text()
		case "thinking", "redacted_thinking":
			s.Kind = wire.OutlineReasoning
		}
	})
}

// rules are the rules for requests that Anthropic, and other servers with its API, refuse.
var rules = []wire.Rule{
	wire.RequireUserFirst(`Anthropic 400: "messages: at least one message is required", "first message must use the user role"`),
	{
		Name:     "thinking-first",
		Evidence: `Anthropic 400: "Expected thinking or redacted_thinking, but found tool_use. When thinking is enabled, a final assistant message must start with a thinking block"`,
		Find:     reportThinkingNotFirst,
	},
	{
		Name:     "thinking-unsigned",
		Evidence: `Anthropic 400: "thinking.signature: Field required", "Invalid signature in thinking block"`,
		Find: func(c *wire.Checker) {
			for _, s := range c.Outline {
				if s.JSON.Get("type").Text() == "thinking" && s.JSON.Get("signature").Text() == "" && c.Provider == "anthropic" {
					c.Report(s.Path, "", "reasoning goes back without its signature, as after an edit")
				}
			}
		},
	},
	{
		Name:     "budget-over-limit",
		Evidence: `Anthropic 400: "max_tokens must be greater than thinking.budget_tokens"`,
		Find: func(c *wire.Checker) {
			budget, ok := c.Body.Get("thinking", "budget_tokens").Int()
			limit, limited := c.Body.Get("max_tokens").Int()
			if ok && limited && budget >= limit {
				c.Report("thinking.budget_tokens", "", "a thinking budget of %d does not fit into max_tokens of %d", budget, limit)
			}
		},
	},
}

// reportThinkingNotFirst reports messages with tool calls in the open tool loop that do not begin
// with reasoning although thinking is enabled.
func reportThinkingNotFirst(c *wire.Checker) {
	if t := c.Body.Get("thinking", "type").Text(); t != "enabled" {
		return // with adaptive thinking, a message may have no reasoning
	}
	begun, reasoning := -1, false
	for _, s := range c.Outline[c.OpenTurnStart():] {
		if !s.FromModel {
			continue
		}
		if s.Message != begun {
			begun, reasoning = s.Message, s.Kind == wire.OutlineReasoning
		}
		if s.Kind == wire.OutlineCall && !reasoning {
			c.Report(s.Path, s.CallID, "the message with the tool call %s does not begin with its reasoning", s.CallID)
			reasoning = true // report once for each message
		}
	}
}
