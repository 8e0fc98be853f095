package providers

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/llm"
)

// The messages dialect (https://docs.anthropic.com/en/api/messages). A response
// is a list of content blocks, and goes back as that list: what a block has
// beyond the fields known here is in its Extra.
var Messages = &dialect{
	name:      "messages",
	path:      func(string, bool) string { return "/v1/messages" },
	sign:      signMessages,
	headers:   messagesHeaders,
	read:      func(o *output) reader { return &messages{output: o, blocks: map[int64]*messagesBlock{}} },
	encode:    encodeMessages,
	replay:    replayMessages,
	wantsTurn: func(target) bool { return true },
	request:   requestMessages,
	talk:      talkMessages,
	outline:   outlineMessages,
	rules:     messagesRules,

	unasked:    [][]string{{"thinking", "display"}},
	off:        [][]string{{"thinking"}},
	needsModel: true,
}

// messagesVersion is the version of the format that is asked for.
const messagesVersion = "2023-06-01"

// signMessages puts the key where Anthropic wants it. Servers that only speak its
// format take it there or as a bearer token, so they get both.
func signMessages(h http.Header, t target, key string) {
	h.Set("Anthropic-Version", messagesVersion)
	if key == "" {
		return
	}
	h.Set("X-Api-Key", key)
	if t.provider != "anthropic" {
		signBearer(h, t, key)
	}
}

// messagesHeaders asks for what the model does only as a beta.
func messagesHeaders(h http.Header, t target, body rawjson.Value) {
	if needsBeta(t.model, body.Get("thinking"), body.Get("tools")) {
		h.Set("Anthropic-Beta", interleavedBeta)
	}
}

// messages reads one response.
type messages struct {
	*output
	begun     bool
	stopped   bool
	blocks    map[int64]*messagesBlock // that are being streamed, by the index of the wire
	used      rawjson.Value            // usage as known by now
	container rawjson.Value            // where code runs, when it waits for a result
	waits     bool                     // code there called a tool
}

// whole reads a response in one piece.
func (m *messages) whole(v rawjson.Value) error {
	if v.Get("type").Text() == "error" || v.Get("error").Kind() == rawjson.KindObject {
		return m.refused(v)
	}
	if v.Get("content").Kind() != rawjson.KindArray {
		return fmt.Errorf("%w: no message in %q", llm.ErrProtocol, excerpt(v))
	}
	if err := m.start(v); err != nil {
		return err
	}
	return m.stop()
}

// event reads one event. Types that are not known are passed over, as the format
// demands.
func (m *messages) event(name string, v rawjson.Value) error {
	if t := v.Get("type").Text(); t != "" {
		name = t
	}
	switch name {
	case "message_start":
		return m.start(v.Get("message"))
	case "content_block_start":
		return m.blockStart(v)
	case "content_block_delta":
		return m.blockDelta(v)
	case "content_block_stop":
		n, _ := v.Get("index").Int()
		m.blockStop(n)
	case "message_delta":
		m.reason(v.Get("delta"))
		m.cost(v.Get("usage"))
		m.giveHead()
	case "message_stop":
		if err := m.stop(); err != nil {
			return err
		}
		return io.EOF
	case "error":
		return m.refused(v)
	}
	return nil
}

// refused is the error of a provider that says no.
func (m *messages) refused(v rawjson.Value) error {
	e := apiError(m.provider, v)
	e.RequestID = v.Get("request_id").Text()
	return e
}

// start reads a message, which in a stream is empty but for programmatic tool
// calls. A second one is an echo of the first or two streams in one.
func (m *messages) start(v rawjson.Value) error {
	id := v.Get("id").Text()
	if m.begun {
		if id != m.head.ID {
			return fmt.Errorf("%w: message_start for %.80s while %.80s is open", llm.ErrProtocol, id, m.head.ID)
		}
		return nil
	}
	m.begun = true
	m.about(func(h *llm.Head) { h.ID, h.Model = id, v.Get("model").Text() })
	m.reason(v)
	m.cost(v.Get("usage"))
	m.giveHead()
	for b := range v.Get("content").Elements() {
		block, _ := m.block(b)
		if err := m.put(block); err != nil {
			return err
		}
	}
	return nil
}

// reason reads why a message ended, and where code that it has begun waits.
func (m *messages) reason(v rawjson.Value) {
	if why := v.Get("stop_reason").Text(); why != "" {
		m.about(func(h *llm.Head) { h.Finish = why })
	}
	if c := v.Get("container"); c.Kind() == rawjson.KindObject {
		m.container = bytes.Clone(c)
	}
}

func (m *messages) stop() error {
	for _, n := range slices.Sorted(maps.Keys(m.blocks)) {
		m.blockStop(n)
	}
	m.stopped = true
	if !m.waits || m.container == nil {
		return nil
	}
	return m.put(content.Native{Wire: m.typed("container"), JSON: string(m.container)})
}

// end counts blocks that another followed as whole; but never a call.
func (m *messages) end(bool) bool {
	for _, n := range slices.Sorted(maps.Keys(m.blocks)) {
		if b := m.blocks[n]; b.part != m.last && !isCall(b.block) {
			m.blockStop(n)
		}
	}
	return m.stopped
}

// block is the block that a content block stands for. call tells that its
// arguments may still come, in a stream.
func (m *messages) block(v rawjson.Value) (b content.Block, call bool) {
	i := item{Value: v}
	t := i.text("type")
	switch {
	case t == "text":
		b := content.Text{Wire: m.form(), Of: content.KindAssistant, Text: i.string("text")}
		b.SetExtra(i.rest())
		return b, false
	case t == "thinking":
		b := content.Reasoning{Wire: m.form(), Format: content.FormatAnthropic, Source: "thinking", Text: i.string("thinking")}
		if seal := i.text("signature"); seal != "" {
			b.SetSeal(m.minted(content.Signature, seal))
		}
		b.SetExtra(i.rest())
		return b, false
	case t == "redacted_thinking":
		b := content.Reasoning{Wire: m.form(), Format: content.FormatAnthropic, Source: "redacted_thinking"}
		b.SetSeal(m.minted(content.Redacted, i.text("data")))
		b.SetExtra(i.rest())
		return b, false
	case t == "tool_use" || strings.HasSuffix(t, "_tool_use"):
		b := content.ToolCall{Wire: m.typed(t), CallID: i.text("id"), Name: i.text("name"), Server: t != "tool_use"}
		if b.Arguments = "{}"; i.Get("input") != nil {
			b.Arguments = string(i.take("input"))
		}
		if by := i.Get("caller", "type").Text(); !b.Server && by != "" && by != "direct" {
			m.waits = true
		}
		b.SetExtra(i.rest())
		return b, true
	case strings.HasSuffix(t, "_tool_result"):
		b := content.ToolResult{Wire: m.typed(t), CallID: i.text("tool_use_id"), Text: i.text("content"), Server: true}
		b.SetRole(content.RoleAssistant)
		if c := i.Get("content"); c.Kind() != rawjson.KindString {
			b.Parts = bytes.Clone(i.take("content"))
		}
		b.IsError = i.isError()
		b.SetExtra(i.rest())
		return b, false
	}
	return content.Native{Wire: m.typed(t), JSON: string(v)}, false
}

// cost reads a report of usage. A later one counts where it says something.
//
// Passes of the same request beside the one that answered, such as a compaction,
// are outside the sums of the report: they have been paid all the same.
func (m *messages) cost(v rawjson.Value) {
	if v.Kind() != rawjson.KindObject || len(v)+len(m.used) > content.MaxRawUsage {
		return
	}
	var o rawjson.Object
	for key, value := range v.Members() {
		if value.Kind() != rawjson.KindNull || m.used.Get(key) == nil {
			o.Set(key, value)
		}
	}
	o.Merge(m.used)
	m.used = bytes.Clone(o.Bytes())
	u := messagesUsage(m.used)
	var all content.Usage
	for pass := range m.used.Get("iterations").Elements() {
		p := messagesUsage(pass)
		all.Input, all.Output = all.Input+p.Input, all.Output+p.Output
		all.Cached, all.CacheWrite = all.Cached+p.Cached, all.CacheWrite+p.CacheWrite
	}
	u.Input, u.Output = max(u.Input, all.Input), max(u.Output, all.Output)
	u.Cached, u.CacheWrite = max(u.Cached, all.Cached), max(u.CacheWrite, all.CacheWrite)
	u.Raw = m.used
	m.usage(u)
}

// messagesUsage reads one report. What the format calls input is only the part
// that has nothing to do with a cache.
func messagesUsage(v rawjson.Value) content.Usage {
	n := counts(v)
	u := content.Usage{
		Output: n("output_tokens"), Reasoning: n("output_tokens_details", "thinking_tokens"),
		Cached: n("cache_read_input_tokens"), CacheWrite: n("cache_creation_input_tokens"),
	}
	u.Input = n("input_tokens") + u.Cached + u.CacheWrite
	return u
}
