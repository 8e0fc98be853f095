package providers

import (
	"encoding/base64"
	"fmt"
	"slices"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/llm/rawjson"
)

// requestOllama reads a request body.
func requestOllama(t target, v rawjson.Value) (*llm.Request, error) {
	s := llm.Settings{
		Model: v.Get("model").Text(), MaxOutputTokens: askedLimit(v.Get("options", "num_predict")), Temperature: askedNumber(v.Get("options", "temperature")),
	}
	switch think := v.Get("think"); {
	case think.Kind() == rawjson.KindString:
		s.Reasoning.Effort = think.Text()
	case think.Bool():
		s.Reasoning.Effort = "medium"
	case think.Kind() == rawjson.KindBool:
		s.Reasoning.Effort = "none"
	}
	req := &llm.Request{Settings: s, Tools: askedTools(v.Get("tools"), chatTools), Stream: v.Get("stream").Kind() != rawjson.KindBool || v.Get("stream").Bool()}
	if v.Get("messages").Kind() != rawjson.KindArray {
		return nil, errNoMessages
	}
	q := ollamaRequest{target: t}
	n := 0
	for m := range v.Get("messages").Elements() {
		if err := q.message(n, m); err != nil {
			return nil, fmt.Errorf("messages[%d]: %w", n, err)
		}
		n++
	}
	req.Messages = q.list
	return req, t.settle(req, v, "messages")
}

// ollamaRequest reads the messages of a request.
type ollamaRequest struct {
	target
	list    []content.Message
	waiting []content.ToolCall // calls without a result so far
}

func (q *ollamaRequest) message(n int, v rawjson.Value) error {
	form := content.Wire{Dialect: q.dialect.name}
	switch role := v.Get("role").Text(); role {
	case "system", "user":
		r, _ := content.ParseRole(role)
		var blocks []content.Block
		if text := v.Get("content").Text(); text != "" {
			blocks = append(blocks, content.Text{Wire: form, Of: textOf(r), Text: text})
		}
		for image := range v.Get("images").Elements() {
			if data, err := base64.StdEncoding.DecodeString(image.Text()); err == nil {
				blocks = append(blocks, content.Media{Wire: form, Of: content.KindImage, Data: string(data)})
			}
		}
		q.list = say(q.list, r, blocks...)
	case "assistant":
		var body rawjson.Object
		body.SetString("created_at", fmt.Sprintf("message-%d", n)) // of calls that have no id
		body.Set("message", v)
		body.SetBool("done", true)
		blocks, err := q.answered(body.Bytes())
		if err != nil {
			return err
		}
		for _, b := range blocks {
			if call, ok := b.(content.ToolCall); ok {
				q.waiting = append(q.waiting, call)
			}
		}
		q.list = say(q.list, content.RoleAssistant, blocks...)
	case "tool":
		q.list = say(q.list, content.RoleTool, q.result(form, v))
	default:
		return fmt.Errorf("want a message of role system, user, assistant or tool, have %q", excerpt(v))
	}
	return nil
}

// result reads what came of a call: of that with its id, else of the first of its
// name that waits, else of the first.
func (q *ollamaRequest) result(form content.Wire, v rawjson.Value) content.Block {
	b := content.ToolResult{Wire: form, CallID: v.Get("tool_call_id").Text(), Name: v.Get("tool_name").Text(), Text: v.Get("content").Text()}
	at := slices.IndexFunc(q.waiting, func(c content.ToolCall) bool {
		if b.CallID != "" {
			return c.CallID == b.CallID
		}
		return b.Name == "" || c.Name == b.Name
	})
	if at >= 0 {
		b.CallID = q.waiting[at].CallID
		q.waiting = slices.Delete(q.waiting, at, at+1)
	}
	return b
}
