package providers

import (
	"github.com/tract-vcs/tract/internal/llm/rawjson"
)

// outlineMessages says what a request body of the messages dialect says.
func outlineMessages(body rawjson.Value) []said {
	return outlineParts(body, "messages", "content", "assistant", func(b rawjson.Value, s *said) {
		switch b.Get("type").Text() {
		case "text":
			s.what, s.empty = saidText, b.Get("text").Text() == ""
		case "tool_use":
			s.what, s.id = saidCall, b.Get("id").Text()
		case "tool_result":
			s.what, s.id = saidResult, b.Get("tool_use_id").Text()
		case "thinking", "redacted_thinking":
			s.what = saidThought
		}
	})
}

// messagesRules is what Anthropic, and servers that speak its format, refuse.
var messagesRules = []rule{
	userFirst(`Anthropic 400: "messages: at least one message is required", "first message must use the user role"`),
	{
		name:     "thinking-first",
		evidence: `Anthropic 400: "Expected thinking or redacted_thinking, but found tool_use. When thinking is enabled, a final assistant message must start with a thinking block"`,
		find:     thinkingFirst,
	},
	{
		name:     "thinking-unsigned",
		evidence: `Anthropic 400: "thinking.signature: Field required", "Invalid signature in thinking block"`,
		find: func(c *checking) {
			for i, m := range numbered(c.body.Get("messages")) {
				for j, b := range numbered(m.Get("content")) {
					if b.Get("type").Text() == "thinking" && b.Get("signature").Text() == "" && c.provider == "anthropic" {
						c.found(at("messages", i, "content", j), "", "a thought goes back without its signature, as after an edit")
					}
				}
			}
		},
	},
	{
		name:     "budget-over-limit",
		evidence: `Anthropic 400: "max_tokens must be greater than thinking.budget_tokens"`,
		find: func(c *checking) {
			budget, ok := c.body.Get("thinking", "budget_tokens").Int()
			limit, limited := c.body.Get("max_tokens").Int()
			if ok && limited && budget >= limit {
				c.found("thinking.budget_tokens", "", "a thinking budget of %d does not fit into max_tokens of %d", budget, limit)
			}
		},
	},
}

// thinkingFirst: with thinking asked for, the messages of the open tool loop
// begin with their thoughts.
func thinkingFirst(c *checking) {
	if t := c.body.Get("thinking", "type").Text(); t != "enabled" {
		return // adaptive thinking may not think
	}
	begun, thought := -1, false
	for _, s := range c.said[c.openTurn():] {
		if !s.model {
			continue
		}
		if s.group != begun {
			begun, thought = s.group, s.what == saidThought
		}
		if s.what == saidCall && !thought {
			c.found(s.path, s.id, "the message with the tool call %s does not begin with its thought", s.id)
			thought = true // once for each message
		}
	}
}
