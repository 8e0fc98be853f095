package cohere

import (
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
		v = convertV1Request(v)
	}
	s := wire.DecodeCommon(v, "max_tokens")
	s.Model = v.Get("model").Text()
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
	return t.DecodeMessages(req, v, &messageReader{openai.ChatMessageReader{Target: t}}, "messages")
}

// messageReader reads the messages of a request.
type messageReader struct{ openai.ChatMessageReader }

// Copy returns an independent copy of the reader.
func (q *messageReader) Copy() wire.MessageReader {
	return &messageReader{*q.ChatMessageReader.Copy().(*openai.ChatMessageReader)}
}

// Next reads one message.
func (q *messageReader) Next(v rawjson.Value) error {
	if v.Get("role").Text() != "assistant" {
		return q.ChatMessageReader.Next(v)
	}
	blocks, err := q.DecodeAssistant(rawjson.NewObject("message", v).Bytes())
	if err != nil {
		return err
	}
	setForm(v, blocks)
	q.Append(content.RoleAssistant, blocks...)
	return nil
}

// setForm records in the first block of a message of the model how the message was written: whether its
// content is a string, and which members are empty.
func setForm(written rawjson.Value, blocks []content.Block) {
	if len(blocks) == 0 {
		return
	}
	var form, empty rawjson.Object
	form.SetTrue("string", written.Get("content").Kind() == rawjson.KindString)
	for key, member := range written.Members() {
		if rawjson.IsEmpty(member) {
			empty.Set(key, member)
		}
	}
	form.Set("empty", rawjson.NonEmpty(empty.Bytes()))
	blocks[0] = wire.WithForm(blocks[0], &form)
}
