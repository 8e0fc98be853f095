package anthropic

import (
	"bytes"
	"encoding/base64"
	"fmt"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
	"github.com/tract-vcs/tract/llm"
)

// decodeRequest decodes a request body.
func decodeRequest(t wire.Target, body rawjson.Value) (*llm.Request, error) {
	v := rawjson.Without(body, "messages") // the messages are most of the body, and each Get would skip them
	req := &llm.Request{Settings: decodeKnownSettings(v), Tools: wire.DecodeTools(v.Get("tools"), encodeTools), Stream: v.Get("stream").Bool()}
	q := newMessageReader(t).(*messageReader)
	system := q.contentBlocks(content.RoleSystem, v.Get("system"))
	if v.Get("system").Kind() == rawjson.KindString && len(system) > 0 {
		var form rawjson.Object
		form.SetBool("string", true)
		system[0] = wire.WithForm(system[0], &form)
	}
	q.Append(content.RoleSystem, system...)
	return t.DecodeMessages(req, body, q, "messages", "system", "tools")
}

// decodeKnownSettings decodes the settings of request body v that tract knows; the caller keeps
// the other members.
func decodeKnownSettings(v rawjson.Value) llm.Settings {
	s := wire.DecodeCommon(v, "max_tokens")
	s.Model = v.Get("model").Text()
	switch choice := v.Get("tool_choice"); choice.Get("type").Text() {
	case "auto", "none":
		s.ToolChoice = choice.Get("type").Text()
	case "any":
		s.ToolChoice = "required"
	case "tool":
		s.ToolChoice = choice.Get("name").Text()
	}
	switch thinking := v.Get("thinking"); thinking.Get("type").Text() {
	case "enabled":
		s.Reasoning.MaxTokens = wire.DecodeTokenLimit(thinking.Get("budget_tokens"))
	case "disabled":
		s.Reasoning.Effort = "none"
	case "adaptive":
		s.Reasoning.Effort = v.Get("output_config", "effort").Text()
		s.Reasoning.Hidden = thinking.Get("display").Text() != "summarized"
	}
	return s
}

// messageReader reads the messages of a request.
type messageReader struct {
	reader
	wire.MessageList
	previousRole string // of the previous message, as it was written
	order        wire.ResultOrder
}

func newMessageReader(t wire.Target) wire.MessageReader {
	return &messageReader{reader: reader{BlockWriter: &wire.BlockWriter{Target: t}}}
}

// Copy returns an independent copy of the reader.
func (q *messageReader) Copy() wire.MessageReader {
	c := *q
	c.MessageList, c.order = q.CopyList(), q.order.Copy()
	return &c
}

// Next reads one message.
func (q *messageReader) Next(v rawjson.Value) error {
	role, err := content.ParseRole(v.Get("role").Text())
	if err != nil || role == content.NoRole || role == content.RoleTool || v.Kind() != rawjson.KindObject {
		return fmt.Errorf("want a message of role user or assistant, have %q", rawjson.Excerpt(v))
	}
	list := v.Get("content")
	blocks := q.contentBlocks(role, list)
	q.setForm(role, v.Get("role").Text(), list.Kind() == rawjson.KindString, blocks)
	q.Append(role, blocks...)
	return nil
}

// setForm records in the blocks of a message how it was written: whether its content is a string,
// whether it follows a message of the same role, and results out of order. An instruction among
// the messages gets its role recorded, so that it is not moved to the system prompt.
func (q *messageReader) setForm(role content.Role, wireRole string, contentIsString bool, blocks []content.Block) {
	q.order.Note(blocks)
	sameRole := wireRole == q.previousRole
	q.previousRole = wireRole
	for i, b := range blocks {
		form := new(rawjson.Object).Merge(q.FormOf(b))
		if role == content.RoleSystem {
			form.SetString("role", wireRole)
		}
		if i == 0 {
			form.SetTrue("string", contentIsString)
			_, result := b.(content.ToolResult) // results of consecutive messages stay together
			form.SetTrue("first", sameRole && !result)
		}
		blocks[i] = wire.WithForm(b, form)
	}
}

// contentBlocks returns the blocks of a content, which is a string or a list of blocks.
func (q *messageReader) contentBlocks(role content.Role, v rawjson.Value) []content.Block {
	var list []content.Block
	if v.Kind() == rawjson.KindString && v.Text() != "" {
		return append(list, content.Text{Wire: q.BlockForm(), Of: wire.TextKind(role), Text: v.Text()})
	}
	for part := range v.Elements() {
		list = append(list, q.contentBlockInRole(role, part))
	}
	return list
}

// contentBlockInRole reads one content block of a message of a role.
func (q *messageReader) contentBlockInRole(role content.Role, v rawjson.Value) content.Block {
	kind := v.Get("type").Text()
	switch kind {
	case "image", "document":
		return q.mediaBlock(role, kind, v)
	case "tool_result":
		return q.resultBlock(v)
	}
	return wire.InRole(q.contentBlock(v), role)
}

// resultBlock reads a tool_result block, the result of a tool that the client ran.
func (q *messageReader) resultBlock(v rawjson.Value) content.Block {
	i := rawjson.ObjectReader{Value: v}
	i.Take("type")
	b := content.ToolResult{Wire: q.BlockForm(), CallID: i.TakeText("tool_use_id"), Text: i.TakeText("content")}
	if c := v.Get("content"); c.Kind() == rawjson.KindArray {
		b.Parts = bytes.Clone(i.Take("content"))
	}
	b.IsError = i.TakeIsError()
	b.SetExtra(i.Rest())
	return b
}

// mediaBlock reads an image or a document, given by kind. If encoding the source again would give
// other JSON, the source stays in the extra of the block.
func (q *messageReader) mediaBlock(role content.Role, kind string, v rawjson.Value) content.Media {
	i := rawjson.ObjectReader{Value: v}
	i.Take("type")
	m := content.Media{Wire: q.BlockForm(), Of: content.KindFile}
	if kind == "image" {
		m.Of = content.KindImage
	} else {
		m.Name = i.TakeText("title")
	}
	if role != content.RoleUser {
		m.SetRole(role)
	}
	source := v.Get("source")
	read := m
	switch source.Get("type").Text() {
	case "base64":
		data, err := base64.StdEncoding.DecodeString(source.Get("data").Text())
		if err == nil {
			read.MediaType, read.Data = source.Get("media_type").Text(), string(data)
		}
	case "text":
		read.MediaType, read.Data = "text/plain", source.Get("data").Text()
	case "url":
		read.URL = source.Get("url").Text()
	}
	if rawjson.Equal(encodeMediaSource(read), source) {
		i.Take("source")
		m = read
	}
	m.SetExtra(i.Rest())
	return m
}
