package cohere

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/openai"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
	"github.com/tract-vcs/tract/llm"
)

// Cohere is version 2 of Cohere's chat (https://docs.cohere.com/reference/chat). A message
// has a content, which is a list of reasoning and texts, a plan in plain text before its
// tool calls, and the calls. Each other member goes back as it came, in a block of its
// own. Version 1 is read too; see v1.go.
var Cohere = &wire.Dialect{
	Name: "cohere",
	Path: func(string, bool) string { return "/chat" },
	Sign: wire.SignBearer,
	NewReader: func(o *wire.BlockWriter) wire.ResponseReader {
		return &reader{BlockWriter: o, blocks: map[int64]*wire.BlockBuilder{}, calls: map[int64]*wire.BlockBuilder{}}
	},
	Encode:        encode,
	Replay:        encodeAssistantMessage,
	DecodeRequest: decodeRequest,
	Outline:       openai.OutlineChat,

	ReasoningOffFields: [][]string{{"thinking"}},
	NeedsModel:         true,
}

const (
	typePlan        = "tool_plan" // the type of the text that is a plan
	typeContentPart = "content:"  // before the type of a part of a content that is not known
)

// reader reads one response.
type reader struct {
	*wire.BlockWriter
	blocks        map[int64]*wire.BlockBuilder // parts of the content that are being streamed, by the index of the wire
	calls         map[int64]*wire.BlockBuilder // calls, likewise
	plan          *wire.BlockBuilder
	unknownFields wire.FieldAccumulator // members of the message that are not known
	finished      bool
	streamed      bool // text of version 1 came in pieces
}

// ReadBody reads a response in one piece.
func (c *reader) ReadBody(v rawjson.Value) error {
	if v.Get("event_type") != nil {
		return c.readV1Event(v)
	}
	if isV1Response(v) {
		v = convertV1Response(v)
	}
	m := v.Get("message")
	if m.Kind() != rawjson.KindObject {
		if v.Get("type") != nil && m == nil {
			return c.ReadEvent("", v) // a stream of which only this came
		}
		if rawjson.TextOrJSON(m) != "" || v.Get("error") != nil {
			return wire.NewAPIError(c.Provider, v)
		}
		return fmt.Errorf("%w: no message in %q", llm.ErrProtocol, rawjson.Excerpt(v))
	}
	c.readMessage(v.Get("id"), m)
	return c.readEnd(v)
}

// ReadEvent reads one event. Unknown types are skipped.
func (c *reader) ReadEvent(name string, v rawjson.Value) error {
	if v.Get("event_type") != nil {
		return c.readV1Event(v)
	}
	name = cmp.Or(v.Get("type").Text(), name)
	n, _ := v.Get("index").Int()
	m := v.Get("delta", "message")
	switch name {
	case "message-start":
		c.readMessage(v.Get("id"), m)
	case "content-start":
		c.beginPart(n, m.Get("content"))
	case "content-delta":
		c.addDelta(n, m.Get("content"))
	case "content-end":
		c.endBlockAt(c.blocks, n)
	case "tool-plan-delta":
		c.addPlanAsText(m.Get(typePlan).Text())
	case "tool-call-start":
		c.endBlockAt(c.calls, n)
		c.beginCall(n, m.Get("tool_calls"))
	case "tool-call-delta":
		if p := c.calls[n]; p != nil {
			c.AppendText(p, m.Get("tool_calls", "function", "arguments").Text())
		}
	case "tool-call-end":
		c.endBlockAt(c.calls, n)
	case "citation-start":
		for key, member := range m.Members() {
			c.addToListField(key, member)
		}
	case "message-end":
		return c.readEnd(v.Get("delta"))
	default:
		if text := v.Get("message"); text.Kind() == rawjson.KindString || v.Get("error") != nil {
			return wire.NewAPIError(c.Provider, v)
		}
	}
	return nil
}

// readMessage reads a message, which in a stream is empty. id is the id of the response.
func (c *reader) readMessage(id, m rawjson.Value) {
	c.SetHead(func(h *llm.Head) { h.ID = id.Text() })
	c.EmitHead()
	parts := m.Get("content")
	if text := parts.Text(); text != "" {
		c.Emit(content.Text{Wire: c.BlockForm(), Of: content.KindAssistant, Text: text})
	}
	for part := range c.Elements(parts) {
		c.beginPart(0, part)
		c.endBlockAt(c.blocks, 0)
	}
	c.addPlanAsText(m.Get(typePlan).Text())
	for call := range c.Elements(m.Get("tool_calls")) {
		c.beginCall(0, call)
		c.endBlockAt(c.calls, 0)
	}
	for key, member := range m.Members() {
		if !rawjson.IsEmpty(member) && !slices.Contains([]string{"role", "content", typePlan, "tool_calls"}, key) {
			c.unknownFields.Field(key).Add(member)
		}
	}
}

// addToListField adds v, a list or one element of it, to the unknown field that is kept: a stream
// brings one citation at a time.
func (c *reader) addToListField(field string, v rawjson.Value) {
	if v.Kind() == rawjson.KindObject {
		v = rawjson.ArrayOf(v)
	}
	c.unknownFields.Field(field).Add(v)
}

// beginPart begins a part of the content.
func (c *reader) beginPart(n int64, v rawjson.Value) {
	c.endBlockAt(c.blocks, n)
	if v.Kind() != rawjson.KindObject {
		return
	}
	i := rawjson.ObjectReader{Value: v}
	kind := i.TakeText("type")
	text := i.TakeString(kind)
	switch kind {
	case "text":
		b := content.Text{Wire: c.BlockForm(), Of: content.KindAssistant}
		b.SetExtra(i.Rest())
		c.blocks[n] = c.Begin(b)
	case "thinking":
		b := content.Reasoning{Wire: c.BlockForm(), Format: content.FormatCohere, Source: "thinking"}
		b.SetExtra(i.Rest())
		c.blocks[n] = c.Begin(b)
	default:
		c.Emit(content.Native{Wire: c.TypedForm(typeContentPart + kind), JSON: string(v)})
		return
	}
	c.AppendText(c.blocks[n], text)
}

// addDelta adds a delta to a part of the content, which may begin with it.
func (c *reader) addDelta(n int64, v rawjson.Value) {
	for _, kind := range []string{"thinking", "text"} {
		text := v.Get(kind).Text()
		if c.blocks[n] == nil && text != "" {
			c.beginPart(n, encodeText(kind, ""))
		}
		if p := c.blocks[n]; p != nil {
			c.AppendText(p, text)
		}
	}
}

// addPlanAsText appends text of a tool plan, which is a text block of its own.
func (c *reader) addPlanAsText(text string) {
	if text == "" {
		return
	}
	if c.plan == nil || c.plan.Done {
		c.plan = c.Begin(content.Text{Wire: c.TypedForm(typePlan), Of: content.KindAssistant})
	}
	c.AppendText(c.plan, text)
}

// beginCall begins a call, and ends the plan before it.
func (c *reader) beginCall(n int64, v rawjson.Value) {
	if c.plan != nil {
		c.End(c.plan)
	}
	i := rawjson.ObjectReader{Value: v}
	f := i.TakeObject("function")
	b := content.ToolCall{Wire: c.BlockForm(), CallID: i.TakeText("id"), Name: f.TakeText("name")}
	b.SetType(i.TakeText("type"))
	args := rawjson.TextOrJSON(f.Take("arguments"))
	b.SetExtra(rawjson.WithMember(i.Rest(), "function", f.Rest()))
	p := c.Begin(b)
	c.calls[n], p.BeforeEnd = p, p.MarkTruncatedCall
	c.AppendText(p, args)
}

// endBlockAt ends a part of the content or a call, if one is open.
func (c *reader) endBlockAt(open map[int64]*wire.BlockBuilder, n int64) {
	if p := open[n]; p != nil {
		delete(open, n)
		c.End(p)
	}
}

// readEnd reads how a message ended.
func (c *reader) readEnd(v rawjson.Value) error {
	c.EndOpen()
	for _, key := range c.unknownFields.Keys {
		if b := (content.Native{Wire: c.TypedForm(key), JSON: string(c.unknownFields.Fields[key].Value())}); b.JSON != "" {
			c.Emit(b)
		}
	}
	c.unknownFields.Keys = nil
	reason := v.Get("finish_reason").Text()
	c.SetHead(func(h *llm.Head) { h.Finish = reason })
	c.readUsage(v.Get("usage"))
	if e := v.Get("error"); reason == "ERROR" || !rawjson.IsEmpty(e) {
		return wire.NewAPIError(c.Provider, v)
	}
	c.finished = true
	return nil
}

// Finish reports whether the message ended.
func (c *reader) Finish(bool) bool { return c.finished }

// readUsage reads the usage. The billed units leave out what the service adds to the
// prompt, so the tokens that the model read and wrote count.
func (c *reader) readUsage(v rawjson.Value) {
	if v.Kind() != rawjson.KindObject {
		return
	}
	n := wire.TokenCounts(v)
	u := content.Usage{Input: n("tokens", "input_tokens"), Output: n("tokens", "output_tokens"), Cached: n("cached_tokens"), Raw: bytes.Clone(v)}
	if v.Get("tokens") == nil {
		u.Input, u.Output = n("billed_units", "input_tokens"), n("billed_units", "output_tokens")
	}
	c.SetUsage(u)
}
