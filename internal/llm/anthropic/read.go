package anthropic

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
	"github.com/tract-vcs/tract/llm"
)

// Messages is Anthropic's Messages API (https://docs.anthropic.com/en/api/messages). A
// response is a list of content blocks, and is sent back as that list. The extra of a block
// keeps the members that have no field.
var Messages = &wire.Dialect{
	Name:    "messages",
	Path:    func(string, bool) string { return "/v1/messages" },
	Sign:    sign,
	Headers: setInterleavedThinkingHeader,
	NewReader: func(o *wire.BlockWriter) wire.ResponseReader {
		return &reader{BlockWriter: o, blocks: map[int64]*streamBlock{}}
	},
	Encode:           Encode,
	Replay:           encodeAssistantMessage,
	DecodeRequest:    decodeRequest,
	NewMessageReader: newMessageReader,
	Outline:          outlineMessages,
	Rules:            rules,

	OptionalFields:     [][]string{{"thinking", "display"}},
	ReasoningOffFields: [][]string{{"thinking"}},
	NeedsModel:         true,
}

// version is the API version that requests ask for.
const version = "2023-06-01"

// sign sets the API version, and the API key in Anthropic's header. Other servers with this API
// read the key there or as a bearer token, so they get both.
func sign(h http.Header, t wire.Target, key string) {
	h.Set("Anthropic-Version", version)
	if key == "" {
		return
	}
	h.Set("X-Api-Key", key)
	if t.Provider != "anthropic" {
		wire.SignBearer(h, t, key)
	}
}

// setInterleavedThinkingHeader sets the header of the beta of interleaved thinking if the request
// needs it.
func setInterleavedThinkingHeader(h http.Header, t wire.Target, body rawjson.Value) {
	if NeedsInterleavedBeta(t.Model, body.Get("thinking"), body.Get("tools")) {
		h.Set("Anthropic-Beta", InterleavedBeta)
	}
}

// reader reads one response.
type reader struct {
	*wire.BlockWriter
	started        bool
	finished       bool
	blocks         map[int64]*streamBlock // open blocks of the stream, by their index there
	reportedUsage  rawjson.Value          // of the events so far
	container      rawjson.Value          // the container of running code, if the response names one
	codeAwaitsTool bool                   // code in the container called a tool
}

// ReadBody reads the body of a response that is not streamed.
func (m *reader) ReadBody(v rawjson.Value) error {
	if v.Get("type").Text() == "error" || v.Get("error").Kind() == rawjson.KindObject {
		return m.newError(v)
	}
	if v.Get("content").Kind() != rawjson.KindArray {
		return fmt.Errorf("%w: no message in %q", llm.ErrProtocol, rawjson.Excerpt(v))
	}
	if err := m.readMessage(v); err != nil {
		return err
	}
	m.endMessage()
	return nil
}

// ReadEvent reads one event. It skips unknown types, as the API requires.
func (m *reader) ReadEvent(name string, v rawjson.Value) error {
	if t := v.Get("type").Text(); t != "" {
		name = t
	}
	switch name {
	case "message_start":
		return m.readMessage(v.Get("message"))
	case "content_block_start":
		m.readBlockStart(v)
	case "content_block_delta":
		m.readBlockDelta(v)
	case "content_block_stop":
		n, _ := v.Get("index").Int()
		m.endBlockAt(n)
	case "message_delta":
		m.readStopAndContainer(v.Get("delta"))
		m.addUsage(v.Get("usage"))
		m.EmitHead()
	case "message_stop":
		m.endMessage()
		return io.EOF
	case "error":
		return m.newError(v)
	}
	return nil
}

// newError returns the error that the provider sent in v.
func (m *reader) newError(v rawjson.Value) error {
	e := wire.NewAPIError(m.Provider, v)
	e.RequestID = v.Get("request_id").Text()
	return e
}

// readMessage reads a message, or the message of message_start, whose content is empty except for
// programmatic tool calls. A second start with the same id is ignored; one with another id is
// an error.
func (m *reader) readMessage(v rawjson.Value) error {
	id := v.Get("id").Text()
	if m.started {
		if id != m.Head.ID {
			return fmt.Errorf("%w: message_start for %.80s while %.80s is open", llm.ErrProtocol, id, m.Head.ID)
		}
		return nil
	}
	m.started = true
	m.SetHead(func(h *llm.Head) { h.ID, h.Model = id, v.Get("model").Text() })
	m.readStopAndContainer(v)
	m.addUsage(v.Get("usage"))
	m.EmitHead()
	for b := range m.Elements(v.Get("content")) {
		m.Emit(m.contentBlock(b))
	}
	return nil
}

// readStopAndContainer reads the stop reason and the container of a message, if v has them.
func (m *reader) readStopAndContainer(v rawjson.Value) {
	if reason := v.Get("stop_reason").Text(); reason != "" {
		m.SetHead(func(h *llm.Head) { h.Finish = reason })
	}
	if c := v.Get("container"); c.Kind() == rawjson.KindObject {
		m.container = bytes.Clone(c)
	}
}

// endMessage ends the open blocks and the response. If code in a container waits for a tool
// result, it adds a block with the container.
func (m *reader) endMessage() {
	m.EndOpen()
	m.finished = true
	if m.codeAwaitsTool && m.container != nil {
		m.Emit(content.Native{Wire: m.TypedForm("container"), JSON: string(m.container)})
	}
}

// Finish reports whether the message ended.
func (m *reader) Finish(bool) bool { return m.finished }

// contentBlock returns the block for a content block.
func (m *reader) contentBlock(v rawjson.Value) content.Block {
	i := rawjson.ObjectReader{Value: v}
	t := i.TakeText("type")
	switch {
	case t == "text":
		b := content.Text{Wire: m.BlockForm(), Of: content.KindAssistant, Text: i.TakeString("text")}
		b.SetExtra(i.Rest())
		return b
	case t == "thinking":
		b := content.Reasoning{Wire: m.BlockForm(), Format: content.FormatAnthropic, Source: "thinking", Text: i.TakeString("thinking")}
		if seal := i.TakeText("signature"); seal != "" {
			b.SetSeal(m.NewSeal(content.Signature, seal))
		}
		b.SetExtra(i.Rest())
		return b
	case t == "redacted_thinking":
		b := content.Reasoning{Wire: m.BlockForm(), Format: content.FormatAnthropic, Source: "redacted_thinking"}
		b.SetSeal(m.NewSeal(content.Redacted, i.TakeText("data")))
		b.SetExtra(i.Rest())
		return b
	case t == "tool_use" || strings.HasSuffix(t, "_tool_use"):
		b := content.ToolCall{Wire: m.TypedForm(t), CallID: i.TakeText("id"), Name: i.TakeText("name"), Server: t != "tool_use"}
		if b.Arguments = "{}"; i.Get("input") != nil {
			b.Arguments = string(i.Take("input"))
		}
		if by := i.Get("caller", "type").Text(); !b.Server && by != "" && by != "direct" {
			m.codeAwaitsTool = true
		}
		b.SetExtra(i.Rest())
		return b
	case strings.HasSuffix(t, "_tool_result"):
		b := content.ToolResult{Wire: m.TypedForm(t), CallID: i.TakeText("tool_use_id"), Text: i.TakeText("content"), Server: true}
		b.SetRole(content.RoleAssistant)
		if c := i.Get("content"); c.Kind() != rawjson.KindString {
			b.Parts = bytes.Clone(i.Take("content"))
		}
		b.IsError = i.TakeIsError()
		b.SetExtra(i.Rest())
		return b
	}
	return content.Native{Wire: m.TypedForm(t), JSON: string(v)}
}

// addUsage merges a usage object into the previous ones. Other passes of the same request, such
// as a compaction, are billed but are not in its totals. So each count is the larger of the
// total and the sum over all passes.
func (m *reader) addUsage(v rawjson.Value) {
	if v.Kind() != rawjson.KindObject || len(v)+len(m.reportedUsage) > content.MaxRawUsage {
		return
	}
	var o rawjson.Object
	for key, value := range v.Members() {
		if value.Kind() != rawjson.KindNull || m.reportedUsage.Get(key) == nil {
			o.Set(key, value)
		}
	}
	o.Merge(m.reportedUsage)
	m.reportedUsage = bytes.Clone(o.Bytes())
	u := decodeUsage(m.reportedUsage)
	var all content.Usage
	for pass := range m.reportedUsage.Get("iterations").Elements() {
		p := decodeUsage(pass)
		all.Input, all.Output = all.Input+p.Input, all.Output+p.Output
		all.Cached, all.CacheWrite = all.Cached+p.Cached, all.CacheWrite+p.CacheWrite
	}
	u.Input, u.Output = max(u.Input, all.Input), max(u.Output, all.Output)
	u.Cached, u.CacheWrite = max(u.Cached, all.Cached), max(u.CacheWrite, all.CacheWrite)
	u.Raw = m.reportedUsage
	m.SetUsage(u)
}

// decodeUsage decodes one usage object. Its input_tokens excludes tokens read from the cache or
// written to it.
func decodeUsage(v rawjson.Value) content.Usage {
	n := wire.TokenCounts(v)
	u := content.Usage{
		Output: n("output_tokens"), Reasoning: n("output_tokens_details", "thinking_tokens"),
		Cached: n("cache_read_input_tokens"), CacheWrite: n("cache_creation_input_tokens"),
	}
	u.Input = n("input_tokens") + u.Cached + u.CacheWrite
	return u
}
