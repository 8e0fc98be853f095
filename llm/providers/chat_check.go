package providers

import (
	"github.com/tract-vcs/tract/internal/llm/rawjson"
)

// outlineChat says what a request body of the chat dialect says; that of cohere
// is built alike.
func outlineChat(body rawjson.Value) []said {
	var list []said
	for i, m := range numbered(body.Get("messages")) {
		role := m.Get("role").Text()
		s := said{group: i, path: at("messages", i), model: role == "assistant"}
		if role == "tool" {
			s.what, s.id = saidResult, m.Get("tool_call_id").Text()
			list = append(list, s)
			continue
		}
		calls := 0
		for j, call := range numbered(m.Get("tool_calls")) {
			list = append(list, said{what: saidCall, id: call.Get("id").Text(), group: i, path: at("messages", i, "tool_calls", j), model: true})
			calls++
		}
		if calls == 0 {
			s.empty = isBlank(m.Get("content")) && !hasThought(m)
			list = append(list, s)
		}
	}
	return list
}

// thoughtFields is where a message of the chat dialect can hold thoughts.
var thoughtFields = []string{"reasoning_content", "reasoning", "reasoning_text", "reasoning_details", "reasoning_opaque"}

func hasThought(m rawjson.Value) bool {
	for _, field := range thoughtFields {
		if !isBlank(m.Get(field)) {
			return true
		}
	}
	return false
}

// chatRules is what OpenAI-compatible servers refuse.
var chatRules = []rule{{
	name:     "reasoning-content-missing",
	evidence: replays[0].evidence + "; " + replays[1].evidence,
	find:     reasoningContentMissing,
}}

// reasoningContentMissing looks at all messages with tool calls, also those of turns
// that are closed.
func reasoningContentMissing(c *checking) {
	demanded := c.demands(c.req.Settings.Reasoning)
	if demanded == nil {
		return
	}
	for i, m := range numbered(c.body.Get("messages")) {
		field := m.Get(chatFields[0])
		if m.Get("role").Text() != "assistant" || isBlank(m.Get("tool_calls")) || field.Text() != "" || field != nil && demanded.placeholder == "" {
			continue
		}
		c.found(at("messages", i), m.Get("tool_calls").At(0).Get("id").Text(), "a message with tool calls goes back without reasoning_content")
	}
}
