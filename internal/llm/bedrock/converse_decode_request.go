package bedrock

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
	"github.com/tract-vcs/tract/llm"
)

// decodeConverseRequest reads a request body.
func decodeConverseRequest(t wire.Target, v rawjson.Value) (*llm.Request, error) {
	config, more := v.Get("inferenceConfig"), v.Get("additionalModelRequestFields")
	s := wire.DecodeCommon(config, "maxTokens")
	s.Reasoning.MaxTokens = wire.DecodeTokenLimit(more.Get("thinking", "budget_tokens"))
	s.Reasoning.Effort = cmp.Or(more.Get("reasoningConfig", "maxReasoningEffort").Text(), more.Get("reasoning_effort").Text())
	tools := v.Get("toolConfig")
	for choice, m := range tools.Get("toolChoice").Members() {
		s.ToolChoice = map[string]string{"auto": "auto", "any": "required"}[choice]
		if choice == "tool" {
			s.ToolChoice = m.Get("name").Text()
		}
	}
	req := &llm.Request{Settings: s}
	for tool := range tools.Get("tools").Elements() {
		spec := tool.Get("toolSpec")
		t := llm.Tool{Name: spec.Get("name").Text(), Description: spec.Get("description").Text(), Schema: bytes.Clone(spec.Get("inputSchema", "json"))}
		if written := encodeToolConfig([]llm.Tool{t}, "", false); !rawjson.Equal(written.Get("tools").At(0), tool) {
			t.Native = bytes.Clone(tool)
		}
		req.Tools = append(req.Tools, t)
	}
	q := &messageReader{converseReader: converseReader{BlockWriter: &wire.BlockWriter{Target: t}}}
	q.Append(content.RoleSystem, q.contentBlocks(content.RoleSystem, v.Get("system"))...)
	return t.DecodeMessages(req, v, q, "messages", "system")
}

// messageReader reads the messages of a request.
type messageReader struct {
	converseReader
	wire.MessageList
}

// Copy returns an independent copy of the reader.
func (q *messageReader) Copy() wire.MessageReader {
	c := *q
	c.MessageList = q.CopyList()
	return &c
}

// Next reads one message.
func (q *messageReader) Next(v rawjson.Value) error {
	role := content.RoleUser
	if v.Get("role").Text() == "assistant" {
		role = content.RoleAssistant
	}
	if v.Get("content").Kind() != rawjson.KindArray {
		return fmt.Errorf("want a message with content, have %q", rawjson.Excerpt(v))
	}
	q.Append(role, q.contentBlocks(role, v.Get("content"))...)
	return nil
}

func (q *messageReader) contentBlocks(role content.Role, list rawjson.Value) []content.Block {
	var blocks []content.Block
	for v := range list.Elements() {
		b := wire.InRole(q.contentBlock(v), role)
		switch known := b.(type) {
		case content.ToolResult:
			if role == content.RoleUser {
				known.Server = false
				known.SetRole(content.NoRole)
				b = known
			}
		case content.Native:
			if m, ok := q.mediaBlock(v); ok {
				b = m
			}
		}
		blocks = append(blocks, b)
	}
	return blocks
}

// mediaBlock reads an image or a document. exact is false for anything else, and if encoding the
// media again would give other JSON.
func (q *messageReader) mediaBlock(v rawjson.Value) (_ content.Media, exact bool) {
	for key, in := range v.Members() {
		m := content.Media{Wire: q.BlockForm(), Of: content.KindFile, Name: in.Get("name").Text(), URL: in.Get("source", "s3Location", "uri").Text()}
		m.MediaType = "application/" + in.Get("format").Text()
		if key == "image" {
			m.Of, m.MediaType = content.KindImage, "image/"+in.Get("format").Text()
		}
		for media, format := range formatNames {
			if format == in.Get("format").Text() {
				m.MediaType = media
			}
		}
		if data, err := base64.StdEncoding.DecodeString(in.Get("source", "bytes").Text()); err == nil {
			m.Data = string(data)
		}
		return m, rawjson.Equal(encodeMedia(m), v)
	}
	return content.Media{}, false
}
