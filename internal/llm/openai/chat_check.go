package openai

import (
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
)

// OutlineChat returns the outline of a request body. Cohere's bodies have the same shape.
func OutlineChat(body rawjson.Value) []wire.OutlineItem {
	var list []wire.OutlineItem
	for i, m := range rawjson.Indexed(body.Get("messages")) {
		role := m.Get("role").Text()
		s := wire.OutlineItem{Message: i, Path: wire.Path("messages", i), FromModel: role == "assistant"}
		if role == "tool" {
			s.Kind, s.CallID = wire.OutlineResult, m.Get("tool_call_id").Text()
			list = append(list, s)
			continue
		}
		calls := 0
		for j, call := range rawjson.Indexed(m.Get("tool_calls")) {
			list = append(list, wire.OutlineItem{Kind: wire.OutlineCall, CallID: call.Get("id").Text(), Message: i, Path: wire.Path("messages", i, "tool_calls", j), FromModel: true})
			calls++
		}
		if calls == 0 {
			s.Empty = wire.IsBlankContent(m.Get("content")) && !hasReasoning(m)
			list = append(list, s)
		}
	}
	return list
}

// allReasoningFields are the fields of a message that can hold reasoning.
var allReasoningFields = []string{"reasoning_content", "reasoning", "reasoning_text", "reasoning_details", "reasoning_opaque"}

func hasReasoning(m rawjson.Value) bool {
	for _, field := range allReasoningFields {
		if !wire.IsBlankContent(m.Get(field)) {
			return true
		}
	}
	return false
}

// chatRules is what OpenAI-compatible servers refuse.
var chatRules = []wire.Rule{{
	Name:     "reasoning-content-missing",
	Evidence: wire.ReplayRules[0].Evidence + "; " + wire.ReplayRules[1].Evidence,
	Find:     reasoningContentMissing,
}}

// reasoningContentMissing looks at all messages with tool calls, also those of closed
// turns.
func reasoningContentMissing(c *wire.Checker) {
	demanded := c.RequiresReasoningBack(c.Request.Settings.Reasoning)
	if demanded == nil {
		return
	}
	for i, m := range rawjson.Indexed(c.Body.Get("messages")) {
		field := m.Get(reasoningFields[0])
		if m.Get("role").Text() != "assistant" || wire.IsBlankContent(m.Get("tool_calls")) || field.Text() != "" || field != nil && demanded.Placeholder == "" {
			continue
		}
		c.Report(wire.Path("messages", i), m.Get("tool_calls").At(0).Get("id").Text(), "a message with tool calls goes back without reasoning_content")
	}
}
