package cohere

import (
	"fmt"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/openai"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
	"github.com/tract-vcs/tract/llm"
)

// decodeRequest reads a request body. Messages that are not the model's are those of
// OpenAI's chat.
func decodeRequest(t wire.Target, v rawjson.Value) (*llm.Request, error) {
	if v.Get("messages") == nil && v.Get("message").Kind() == rawjson.KindString {
		v = requestOfV1(v)
	}
	s := llm.Settings{Model: v.Get("model").Text(), MaxOutputTokens: wire.DecodeTokenLimit(v.Get("max_tokens")), Temperature: wire.DecodeNumber(v.Get("temperature"))}
	switch v.Get("tool_choice").Text() {
	case "NONE":
		s.ToolChoice = "none"
	case "REQUIRED":
		s.ToolChoice = "required"
	}
	switch thinking := v.Get("thinking"); thinking.Get("type").Text() {
	case "enabled":
		if s.Reasoning.MaxTokens = wire.DecodeTokenLimit(thinking.Get("token_budget")); s.Reasoning.MaxTokens == 0 {
			s.Reasoning.Effort = "high"
		}
	case "disabled":
		s.Reasoning.Effort = "none"
	}
	req := &llm.Request{Settings: s, Tools: wire.DecodeTools(v.Get("tools"), wire.FunctionTools), Stream: v.Get("stream").Bool()}
	if v.Get("messages").Kind() != rawjson.KindArray {
		return nil, wire.ErrNoMessages
	}
	q := openai.ChatMessageReader{Target: t}
	for m := range v.Get("messages").Elements() {
		var err error
		if m.Get("role").Text() == "assistant" {
			var blocks []content.Block
			if blocks, err = t.DecodeAssistant(rawjson.NewObject("message", m).Bytes()); err == nil {
				noteForm(m, blocks)
				q.List = wire.AppendMessage(q.List, content.RoleAssistant, blocks...)
			}
		} else {
			err = q.Read(m)
		}
		if err != nil {
			return nil, fmt.Errorf("messages[%d]: %w", q.N, err)
		}
		q.N++
	}
	req.Messages = q.List
	return req, t.KeepUnknownFields(req, v, "messages")
}

// noteForm notes in the first block of a message of the model how it is written: its
// content as a string, and members that are empty.
func noteForm(m rawjson.Value, blocks []content.Block) {
	if len(blocks) == 0 {
		return
	}
	var form, empty rawjson.Object
	form.SetTrue("string", m.Get("content").Kind() == rawjson.KindString)
	for key, member := range m.Members() {
		if rawjson.IsEmpty(member) {
			empty.Set(key, member)
		}
	}
	form.Set("empty", rawjson.NonEmpty(empty.Bytes()))
	blocks[0] = wire.WithForm(blocks[0], &form)
}
