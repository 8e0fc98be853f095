package anthropic

import (
	"cmp"
	"strings"
	"unicode/utf8"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
	"github.com/tract-vcs/tract/llm"
)

// defaultMaxTokens is the output limit, in tokens, when the settings have none. The API requires
// a limit, and all current models allow this one.
const defaultMaxTokens = 8192

// Encode encodes a request body. Equal requests give equal bytes.
func Encode(t wire.Target, req *llm.Request) (rawjson.Value, error) {
	s := req.Settings
	var body rawjson.Object
	body.SetNonEmpty("model", t.Model)
	p := newMessageEncoder(t)
	for _, m := range req.Messages {
		for _, b := range m.Blocks {
			if r, ok := b.(content.ToolResult); ok && r.Server && !t.Owns(r) {
				p.unsentCalls[r.CallID] = true
			}
		}
	}
	wire.EncodeBlocks(p, req.Messages)
	limit := SetThinking(t, LoopSettings(t, req), &body)
	body.SetInt("max_tokens", int64(limit))
	body.Set("system", p.encodeSystem())
	body.Set("messages", p.List.Bytes())
	if p.container != "" && p.HasResults {
		body.SetString("container", p.container)
	}
	if len(req.Tools) > 0 {
		body.Set("tools", encodeTools(req.Tools))
		body.Set("tool_choice", encodeToolChoice(s.ToolChoice))
	}
	wire.SetTemperature(&body, s)
	body.SetTrue("stream", req.Stream)
	return t.FinishBody(&body, s)
}

// encodeAssistantMessage returns the message for the blocks of one response.
func encodeAssistantMessage(t wire.Target, blocks []content.Block) rawjson.Value {
	p := newMessageEncoder(t)
	wire.EncodeBlocks(p, wire.AssistantMessage(blocks))
	return p.List.Bytes().At(0)
}

// messageEncoder encodes blocks as messages whose roles alternate.
type messageEncoder struct {
	wire.Target
	wire.MessageBuilder
	unsentCalls map[string]bool // ids of server tool calls whose results cannot be sent
	container   string          // id of the container in which code waits for a tool result

	systemIsString bool // the last system block came as a string
}

// encodeSystem returns the system prompt, as a list of blocks or as the string that it was; nil
// when there is none.
func (p *messageEncoder) encodeSystem() rawjson.Value {
	list := p.System.Bytes()
	if list.At(0) == nil {
		return nil
	}
	if text := list.At(0).Get("text"); p.systemIsString && text != nil && list.At(1) == nil {
		return text
	}
	return list
}

func newMessageEncoder(t wire.Target) *messageEncoder {
	return &messageEncoder{Target: t, MessageBuilder: wire.MessageBuilder{ModelRole: "assistant", BlocksField: "content"}, unsentCalls: map[string]bool{}}
}

// Add adds a block of a message. See [wire.EncodeBlocks].
func (p *messageEncoder) Add(role content.Role, b content.Block) {
	if n, ok := b.(content.Native); ok && n.Form().Type == "container" && p.Owns(b) {
		p.container = rawjson.Value(n.JSON).Get("id").Text()
		return
	}
	if _, media := b.(content.Media); media && role == content.RoleAssistant {
		return // the API allows no media in a message of the model
	}
	v := p.encodeBlock(b)
	form := p.FormOf(b)
	to, begun := form.Get("role").Text(), false
	if v != nil && to != "" { // an instruction among the messages
		begun = p.StartMessageOf(to, form.Get("first").Bool())
	} else {
		if form.Get("first").Bool() {
			p.Flush()
		}
		to, begun = p.StartMessage(role, b, v)
	}
	if begun && to == p.ModelRole {
		p.container = ""
	}
	if begun && form.Get("string").Bool() {
		p.AsString()
	}
	if to == "" && role == content.RoleSystem {
		p.systemIsString = form.Get("string").Bool()
	}
	if v != nil && to != "" {
		p.AppendBlock(b, v)
	}
}

// encodeBlock returns the content block; nil when the block cannot be sent.
func (p *messageEncoder) encodeBlock(b content.Block) rawjson.Value {
	var o *rawjson.Object
	switch b := b.(type) {
	case content.Text:
		if strings.TrimSpace(b.Text) != "" { // the API refuses blank text
			o = rawjson.NewObject("type", "text", "text", b.Text)
		}
	case content.Reasoning:
		o = p.encodeReasoning(b)
	case content.ToolCall:
		if !b.Server || !p.unsentCalls[b.CallID] {
			o = rawjson.NewObject("type", cmp.Or(p.originalType(b), "tool_use"), "id", wire.SafeCallID(b.CallID, 0), "name", b.Name, "input", wire.ArgumentsObject(b.Arguments))
		}
	case content.ToolResult:
		if !b.Server || p.Owns(b) {
			o = rawjson.NewObject("type", cmp.Or(p.originalType(b), "tool_result"), "tool_use_id", wire.SafeCallID(b.CallID, 0), "content", p.encodeResultContent(b))
			o.SetTrue("is_error", b.IsError)
		}
	case content.Media:
		source := encodeMediaSource(b)
		if source == nil && p.Extra(b).Get("source") == nil {
			return nil
		}
		o = rawjson.NewObject("type", "image")
		if b.Of != content.KindImage {
			o = rawjson.NewObject("type", "document")
			o.SetNonEmpty("title", b.Name)
		}
		o.Set("source", source)
	case content.Native:
		return p.NativeJSON(b)
	}
	if o == nil {
		return nil
	}
	return o.Merge(p.Extra(b)).Bytes()
}

// originalType returns the API's type of a block of this dialect; empty for other blocks.
func (p *messageEncoder) originalType(b content.Block) string {
	if p.Owns(b) {
		return b.Form().Type
	}
	return ""
}

// encodeReasoning returns the content block of reasoning, with its seal; nil when it cannot be
// sent. Anthropic gets no reasoning without a seal. Other servers with this API may not seal
// reasoning at all; they get their own reasoning back without a seal.
func (p *messageEncoder) encodeReasoning(r content.Reasoning) *rawjson.Object {
	form := r.Form()
	switch {
	case !p.Owns(r) || form.Incomplete:
		return nil
	case p.CanOpen(form.Seal) && form.Seal.Type == content.Redacted:
		return rawjson.NewObject("type", "redacted_thinking", "data", form.Seal.Data)
	case p.CanOpen(form.Seal):
		return rawjson.NewObject("type", "thinking", "thinking", r.String(), "signature", form.Seal.Data)
	case form.Seal.Data == "" && r.String() != "" && p.Provider != "anthropic":
		return rawjson.NewObject("type", "thinking", "thinking", r.String())
	}
	return nil
}

// encodeResultContent returns the content of a result; nil when the result is empty. Parts of another
// dialect are sent as the text of their JSON unless they are valid content here.
func (p *messageEncoder) encodeResultContent(r content.ToolResult) rawjson.Value {
	if v, err := rawjson.Parse(r.Parts); err == nil && (p.Owns(r) || isContentList(v)) {
		return v
	}
	text := r.String()
	if text == "" {
		if !r.IsError {
			return nil
		}
		text = "error" // the API refuses an error without text
	}
	return rawjson.AppendString(nil, text)
}

// isContentList reports whether v is a list of text, image and document blocks of the API only.
func isContentList(v rawjson.Value) bool {
	if v.Kind() != rawjson.KindArray {
		return false
	}
	for part := range v.Elements() {
		switch part.Get("type").Text() {
		case "text":
			if part.Get("text").Kind() != rawjson.KindString {
				return false
			}
		case "image", "document":
			if part.Get("source").Kind() != rawjson.KindObject {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// encodeMediaSource returns the source of an image or a file, with its bytes or its URL; nil when
// it has neither.
func encodeMediaSource(m content.Media) rawjson.Value {
	switch media, data, inline := wire.InlineData(m); {
	case !inline && m.URL == "":
		return nil
	case !inline:
		return rawjson.NewObject("type", "url", "url", m.URL).Bytes()
	case m.Of == content.KindFile && media != "application/pdf" && utf8.ValidString(data):
		return rawjson.NewObject("type", "text", "media_type", "text/plain", "data", data).Bytes()
	default:
		return rawjson.NewObject("type", "base64", "media_type", media, "data", wire.Base64(data)).Bytes()
	}
}
