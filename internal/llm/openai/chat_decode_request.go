package openai

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
	"github.com/tract-vcs/tract/llm"
)

// decodeChatRequest decodes a request body.
func decodeChatRequest(t wire.Target, body rawjson.Value) (*llm.Request, error) {
	v := rawjson.Without(body, "messages") // the messages are most of the body, and each Get would skip them
	req := &llm.Request{Settings: decodeKnownChatSettings(t.Quirks, v), Tools: wire.DecodeTools(v.Get("tools"), wire.FunctionTools), Stream: v.Get("stream").Bool()}
	return t.DecodeMessages(req, body, newChatMessageReader(t), "messages", "tools")
}

// decodeKnownChatSettings decodes the settings of request body v that tract knows; the caller
// keeps the other members.
func decodeKnownChatSettings(quirks wire.Quirks, v rawjson.Value) llm.Settings {
	s := wire.DecodeCommon(v, cmp.Or(quirks.MaxTokensField, "max_tokens"))
	s.Model = v.Get("model").Text()
	s.ToolChoice = cmp.Or(v.Get("tool_choice").Text(), v.Get("tool_choice", "function", "name").Text())
	if quirks.EffortObject != "" {
		s.Reasoning.Effort, s.Reasoning.MaxTokens = v.Get(quirks.EffortObject, "effort").Text(), wire.DecodeTokenLimit(v.Get(quirks.EffortObject, "max_tokens"))
		return s
	}
	s.Reasoning.Effort = v.Get("reasoning_effort").Text()
	if quirks.BudgetField != "" {
		s.Reasoning.MaxTokens = wire.DecodeTokenLimit(v.Get(quirks.BudgetField))
	}
	return s
}

// ChatMessageReader reads the messages of a request.
type ChatMessageReader struct {
	wire.Target
	wire.MessageList
	n              int    // messages so far
	functionCallID string // the id of the last call in function_call
	order          wire.ResultOrder
}

func newChatMessageReader(t wire.Target) wire.MessageReader { return &ChatMessageReader{Target: t} }

// Copy returns an independent copy of the reader.
func (q *ChatMessageReader) Copy() wire.MessageReader {
	c := *q
	c.MessageList, c.order = q.CopyList(), q.order.Copy()
	return &c
}

// Next reads one message.
func (q *ChatMessageReader) Next(v rawjson.Value) error {
	q.n++
	if q.tryReadPlainTextMessage(v) {
		return nil
	}
	return q.readMessage(v)
}

// readMessage reads a message of any role and form.
func (q *ChatMessageReader) readMessage(v rawjson.Value) error {
	switch role := v.Get("role").Text(); role {
	case "system", "developer":
		q.Append(content.RoleSystem, q.messageBlocks(content.KindSystem, v)...)
	case "user":
		q.Append(content.RoleUser, q.messageBlocks(content.KindUser, v)...)
	case "assistant", "model":
		return q.readAssistant(v)
	case "tool", "function":
		result := []content.Block{q.resultBlock(role, v)}
		q.order.Note(result)
		q.Append(content.RoleTool, result...)
	default:
		return fmt.Errorf("want a message of role system, user, assistant or tool, have %q", rawjson.Excerpt(v))
	}
	return nil
}

// tryReadPlainTextMessage is a fast path for messages that have only a role and a text, as most do. It
// gives the same blocks as readMessage. For any other message, and for text that may have
// think tags, it reads nothing and returns false.
func (q *ChatMessageReader) tryReadPlainTextMessage(message rawjson.Value) bool {
	var role string
	var value rawjson.Value
	n := 0
	for key, m := range message.Members() {
		switch key {
		case "role":
			role = m.Text()
		case "content":
			value = m
		}
		n++
	}
	if n != 2 || value.Kind() != rawjson.KindString {
		return false
	}
	text := content.Text{Wire: q.BlockForm(), Of: content.KindUser, Text: value.Text()}
	switch role {
	case "user":
		q.Append(content.RoleUser, text)
	case "assistant":
		if strings.IndexByte(text.Text, '<') >= 0 || strings.TrimSpace(text.Text) == "" {
			return false
		}
		text.Of = content.KindAssistant
		q.Append(content.RoleAssistant, text)
	default:
		return false
	}
	return true
}

// readAssistant reads a message of the model the way a response is read.
func (q *ChatMessageReader) readAssistant(v rawjson.Value) error {
	id := fmt.Sprintf("message-%d", q.n-1) // calls without an id get ids made from it
	blocks, err := q.DecodeAssistant(rawjson.NewObject("id", id, "choices", rawjson.ArrayOf(rawjson.NewObject("message", v).Bytes())).Bytes())
	if err != nil {
		return err
	}
	for _, b := range blocks {
		if c, ok := b.(content.ToolCall); ok && c.Form().Type == typeFunctionCall {
			q.functionCallID = c.CallID
		}
	}
	q.order.Note(blocks)
	q.Append(content.RoleAssistant, blocks...)
	return nil
}

// messageBlocks returns the blocks of message v, whose content is a string or a list of
// parts. The extra of its first text keeps the other members.
func (q *ChatMessageReader) messageBlocks(kind content.Kind, v rawjson.Value) []content.Block {
	var list []content.Block
	rest := rawjson.Without(v, "role", "content")
	var form rawjson.Object
	if role := v.Get("role"); role.Text() == "developer" {
		form.Set("role", role)
	}
	if c := v.Get("content"); c.Kind() == rawjson.KindString {
		list = append(list, content.Text{Wire: q.BlockForm(), Of: kind, Text: c.Text()})
	} else {
		for part := range c.Elements() {
			list = append(list, q.partBlock(kind, part))
		}
		form.SetTrue("list", len(list) > 0)
	}
	if len(list) == 0 { // a message without content
		b := content.Native{Wire: q.TypedForm(typeMessage), JSON: string(v)}
		b.SetRole(kind.Traits().Role)
		return []content.Block{b}
	}
	list[0] = wire.WithForm(list[0], &form)
	for i, b := range list {
		if text, ok := b.(content.Text); ok && !rawjson.IsEmpty(rest) {
			text.SetExtra(rawjson.WithMember(text.Form().Extra, extraMessage, rest))
			list[i] = text
			break
		}
	}
	return list
}

// partBlock reads a part of a content list.
func (q *ChatMessageReader) partBlock(kind content.Kind, v rawjson.Value) content.Block {
	i := rawjson.ObjectReader{Value: v}
	t := i.TakeText("type")
	if text := v.Get("text"); t == "text" && text.Kind() == rawjson.KindString {
		i.Take("text")
		b := content.Text{Wire: q.BlockForm(), Of: kind, Text: text.Text()}
		b.SetExtra(i.Rest())
		return b
	}
	if m := q.mediaBlock(t, v); rawjson.Equal((&chatEncoder{Target: q.Target}).encodeMedia(m), v) {
		return m
	}
	b := content.Native{Wire: q.TypedForm(typeContentPart + t), JSON: string(v)}
	b.SetRole(kind.Traits().Role)
	return b
}

// mediaBlock reads a content part as media; the extra keeps its other members. For a part of
// another type, the result has neither bytes nor a URL.
func (q *ChatMessageReader) mediaBlock(partType string, v rawjson.Value) content.Media {
	in := v.Get(partType)
	m := content.Media{Of: content.KindFile}
	switch partType {
	case "image_url":
		m.Of, m.URL = content.KindImage, in.Get("url").Text()
	case "file":
		m.URL, m.Name = in.Get("file_data").Text(), in.Get("filename").Text()
	case "input_audio":
		data, _ := base64.StdEncoding.DecodeString(in.Get("data").Text())
		m.MediaType, m.Data = "audio/"+strings.Replace(in.Get("format").Text(), "mp3", "mpeg", 1), string(data)
	}
	m = wire.Inlined(m)
	m.Wire = q.BlockForm()
	m.SetExtra((&rawjson.ObjectReader{Value: v}).Rest("type", partType))
	if rest := rawjson.Without(in, "url", "filename", "file_data", "data", "format"); !rawjson.IsEmpty(rest) {
		m.SetExtra(rawjson.WithMember(m.Form().Extra, partType, rest))
	}
	return m
}

// resultBlock reads a message of role tool or function, the result of a call.
func (q *ChatMessageReader) resultBlock(role string, v rawjson.Value) content.Block {
	b := content.ToolResult{Wire: q.BlockForm(), CallID: v.Get("tool_call_id").Text(), Name: v.Get("name").Text()}
	if role == "function" {
		b.CallID = q.functionCallID
	}
	switch c := v.Get("content"); c.Kind() {
	case rawjson.KindString:
		b.Text = c.Text()
	case rawjson.KindAbsent, rawjson.KindNull:
	default:
		b.Parts = bytes.Clone(c)
	}
	if rest := rawjson.Without(v, "role", "tool_call_id", "content"); !rawjson.IsEmpty(rest) && role != "function" {
		b.SetExtra(rawjson.WithMember(nil, extraMessage, rest))
	}
	return b
}
