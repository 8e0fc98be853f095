package ollama

import (
	"encoding/base64"
	"fmt"
	"slices"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
	"github.com/tract-vcs/tract/llm"
)

// decodeRequest reads a request body.
func decodeRequest(t wire.Target, v rawjson.Value) (*llm.Request, error) {
	if prompt := v.Get("prompt"); v.Get("messages") == nil && (prompt == nil || prompt.Kind() == rawjson.KindString) {
		messages := generateMessages(v)
		v = rawjson.NewObject("messages", messages).Merge(rawjson.Without(v, "system", "prompt", "images")).Bytes()
	}
	s := wire.DecodeCommon(v.Get("options"), "num_predict")
	s.Model = v.Get("model").Text()
	switch think := v.Get("think"); {
	case think.Kind() == rawjson.KindString:
		s.Reasoning.Effort = think.Text()
	case think.Bool():
		s.Reasoning.Effort = "medium"
	case think.Kind() == rawjson.KindBool:
		s.Reasoning.Effort = "none"
	}
	req := &llm.Request{Settings: s, Tools: wire.DecodeTools(v.Get("tools"), wire.FunctionTools), Stream: v.Get("stream").Kind() != rawjson.KindBool || v.Get("stream").Bool()}
	return t.DecodeMessages(req, v, &messageReader{Target: t}, "messages")
}

// messageReader reads the messages of a request.
type messageReader struct {
	wire.Target
	wire.MessageList
	n            int // messages so far
	pendingCalls wire.PendingCalls
}

// Copy returns an independent copy of the reader.
func (q *messageReader) Copy() wire.MessageReader {
	c := *q
	c.MessageList, c.pendingCalls = q.CopyList(), slices.Clone(q.pendingCalls)
	return &c
}

// Next reads one message.
func (q *messageReader) Next(v rawjson.Value) error {
	q.n++
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
		q.Append(r, blocks...)
	case "assistant":
		time := fmt.Sprintf("message-%d", q.n-1) // of calls that have no id
		blocks, err := q.DecodeAssistant(rawjson.NewObject("created_at", time, "message", v, "done", rawjson.Value("true")).Bytes())
		if err != nil {
			return err
		}
		for _, b := range blocks {
			if call, ok := b.(content.ToolCall); ok {
				q.pendingCalls = append(q.pendingCalls, call)
			}
		}
		q.Append(content.RoleAssistant, blocks...)
	case "tool":
		q.Append(content.RoleTool, q.resultBlock(form, v))
	default:
		return fmt.Errorf("want a message of role system, user, assistant or tool, have %q", rawjson.Excerpt(v))
	}
	return nil
}

// resultBlock reads the result of a call.
func (q *messageReader) resultBlock(form content.Wire, v rawjson.Value) content.Block {
	b := content.ToolResult{Wire: form, CallID: v.Get("tool_call_id").Text(), Name: v.Get("tool_name").Text(), Text: v.Get("content").Text()}
	q.pendingCalls.Match(&b)
	return b
}
