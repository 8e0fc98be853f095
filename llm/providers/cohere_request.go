package providers

import (
	"fmt"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/llm"
)

// requestCohere reads a request body. What is no answer is as in the chat dialect.
func requestCohere(t target, v rawjson.Value) (*llm.Request, error) {
	s := llm.Settings{Model: v.Get("model").Text(), MaxOutputTokens: askedLimit(v.Get("max_tokens")), Temperature: askedNumber(v.Get("temperature"))}
	switch v.Get("tool_choice").Text() {
	case "NONE":
		s.ToolChoice = "none"
	case "REQUIRED":
		s.ToolChoice = "required"
	}
	switch thinking := v.Get("thinking"); thinking.Get("type").Text() {
	case "enabled":
		if s.Reasoning.MaxTokens = askedLimit(thinking.Get("token_budget")); s.Reasoning.MaxTokens == 0 {
			s.Reasoning.Effort = "high"
		}
	case "disabled":
		s.Reasoning.Effort = "none"
	}
	req := &llm.Request{Settings: s, Tools: askedTools(v.Get("tools"), functionTools), Stream: v.Get("stream").Bool()}
	if v.Get("messages").Kind() != rawjson.KindArray {
		return nil, errNoMessages
	}
	q := chatRequest{target: t}
	for m := range v.Get("messages").Elements() {
		var err error
		if m.Get("role").Text() == "assistant" {
			var blocks []content.Block
			if blocks, err = t.answered(rawjson.NewObject("message", m).Bytes()); err == nil {
				q.list = say(q.list, content.RoleAssistant, blocks...)
			}
		} else {
			err = q.message(m)
		}
		if err != nil {
			return nil, fmt.Errorf("messages[%d]: %w", q.n, err)
		}
		q.n++
	}
	req.Messages = q.list
	return req, t.settle(req, v, "messages")
}
