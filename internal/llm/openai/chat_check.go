package openai

import (
	"fmt"

	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
)

// OutlineChat returns the outline of a request body. Cohere's bodies have the same shape.
func OutlineChat(body rawjson.Value) []wire.OutlineItem {
	callID := func(call rawjson.Value) string { return call.Get("id").Text() }
	resultID := func(m rawjson.Value) string { return m.Get("tool_call_id").Text() }
	return wire.OutlineMessages(body, callID, resultID,
		"content", "reasoning_content", "reasoning", "reasoning_text", "reasoning_details", "reasoning_opaque")
}

// chatRules are the rules for requests that OpenAI-compatible servers refuse.
var chatRules = []wire.Rule{{
	Name:     "reasoning-content-missing",
	Evidence: wire.ReplayRules[0].Evidence + "; " + wire.ReplayRules[1].Evidence,
	Find:     reportMissingReasoning,
}}

// reportMissingReasoning reports messages with tool calls, in closed turns too, that are sent
// back without the reasoning that the server requires.
func reportMissingReasoning(c *wire.Checker) {
	demanded := c.RequiresReasoningBack(c.Request.Settings.Reasoning)
	if demanded == nil {
		return
	}
	for i, m := range rawjson.Indexed(c.Body.Get("messages")) {
		field := m.Get(reasoningFields[0])
		if m.Get("role").Text() != "assistant" || wire.IsBlankContent(m.Get("tool_calls")) || field.Text() != "" || field != nil && demanded.Placeholder == "" {
			continue
		}
		c.Report(fmt.Sprintf("messages[%d]", i), m.Get("tool_calls").At(0).Get("id").Text(), "a message with tool calls goes back without reasoning_content")
	}
}
