package ollama

import (
	"encoding/base64"
	"fmt"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
	"github.com/tract-vcs/tract/llm"
)

// decodeRequest reads a request body.
func decodeRequest(t wire.Target, v rawjson.Value) (*llm.Request, error) {
	s := llm.Settings{
		Model: v.Get("model").Text(), MaxOutputTokens: wire.DecodeTokenLimit(v.Get("options", "num_predict")), Temperature: wire.DecodeNumber(v.Get("options", "temperature")),
	}
	switch think := v.Get("think"); {
	case think.Kind() == rawjson.KindString:
		s.Reasoning.Effort = think.Text()
	case think.Bool():
		s.Reasoning.Effort = "medium"
	case think.Kind() == rawjson.KindBool:
		s.Reasoning.Effort = "none"
	}
	req := &llm.Request{Settings: s, Tools: wire.DecodeTools(v.Get("tools"), wire.FunctionTools), Stream: v.Get("stream").Kind() != rawjson.KindBool || v.Get("stream").Bool()}
	list := v.Get("messages")
	if list == nil && v.Get("prompt").Kind() == rawjson.KindString {
		list = generateMessages(v)
	}
	if list.Kind() != rawjson.KindArray {
		return nil, wire.ErrNoMessages
	}
	q := messageReader{Target: t}
	for n, m := range rawjson.Indexed(list) {
		if err := q.readMessage(n, m); err != nil {
			return nil, fmt.Errorf("messages[%d]: %w", n, err)
		}
	}
	req.Messages = q.messages
	return req, t.KeepUnknownFields(req, v, "messages", "system", "prompt", "images")
}

// messageReader reads the messages of a request.
type messageReader struct {
	wire.Target
	messages     []content.Message
	pendingCalls wire.PendingCalls
}

func (q *messageReader) readMessage(n int, v rawjson.Value) error {
	form := q.BlockForm()
	switch role := v.Get("role").Text(); role {
	case "system", "user":
		r, _ := content.ParseRole(role)
		var blocks []content.Block
		if text := v.Get("content").Text(); text != "" {
			blocks = append(blocks, content.Text{Wire: form, Of: wire.TextKind(r), Text: text})
		}
		for image := range v.Get("images").Elements() {
			if data, err := base64.StdEncoding.DecodeString(image.Text()); err == nil {
				blocks = append(blocks, content.Media{Wire: form, Of: content.KindImage, Data: string(data)})
			}
		}
		q.messages = wire.AppendMessage(q.messages, r, blocks...)
	case "assistant":
		var body rawjson.Object
		body.SetString("created_at", fmt.Sprintf("message-%d", n)) // of calls that have no id
		body.Set("message", v)
		body.SetBool("done", true)
		blocks, err := q.DecodeAssistant(body.Bytes())
		if err != nil {
			return err
		}
		for _, b := range blocks {
			if call, ok := b.(content.ToolCall); ok {
				q.pendingCalls = append(q.pendingCalls, call)
			}
		}
		q.messages = wire.AppendMessage(q.messages, content.RoleAssistant, blocks...)
	case "tool":
		q.messages = wire.AppendMessage(q.messages, content.RoleTool, q.readResult(form, v))
	default:
		return fmt.Errorf("want a message of role system, user, assistant or tool, have %q", rawjson.Excerpt(v))
	}
	return nil
}

// readResult reads the result of a call.
func (q *messageReader) readResult(form content.Wire, v rawjson.Value) content.Block {
	b := content.ToolResult{Wire: form, CallID: v.Get("tool_call_id").Text(), Name: v.Get("tool_name").Text(), Text: v.Get("content").Text()}
	q.pendingCalls.Match(&b)
	return b
}
