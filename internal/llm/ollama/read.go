package ollama

import (
	"bytes"
	"cmp"
	"fmt"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/thinktags"
	"github.com/tract-vcs/tract/internal/llm/wire"
	"github.com/tract-vcs/tract/llm"
)

// Ollama is Ollama's own /api/chat (https://docs.ollama.com/api/chat). A stream is lines
// of JSON, each a response with a piece of the message; a response in one piece is one
// such line. Calls may have no ids, and their arguments are objects. Requests and responses
// of /api/generate are read too, and never written.
var Ollama = &wire.Dialect{
	Name:          "ollama",
	Path:          func(string, bool) string { return "/api/chat" },
	Sign:          wire.SignBearer,
	NewReader:     func(o *wire.BlockWriter) wire.ResponseReader { return &reader{BlockWriter: o} },
	Encode:        encode,
	Replay:        encodeAssistantMessage,
	DecodeRequest: decodeRequest,
	Outline:       outlineMessages,

	ReasoningOffFields: [][]string{{"think"}},
	NeedsModel:         true,
}

// typeStringArguments is the type of a call whose arguments came as a string.
const typeStringArguments = "string"

// reader reads one response.
type reader struct {
	*wire.BlockWriter
	tags          thinktags.Splitter
	emptyTags     string             // tags with nothing between them so far
	current       *wire.BlockBuilder // the text or the reasoning that more is added to
	source        string             // of current
	calls         int
	finished      bool
	unknownFields wire.FieldAccumulator // members of the message that are not known
}

// ReadBody reads a response in one piece.
func (o *reader) ReadBody(v rawjson.Value) error {
	if messageOf(v).Kind() != rawjson.KindObject && v.Get("error") == nil && !v.Get("done").Bool() {
		return fmt.Errorf("%w: no message in %q", llm.ErrProtocol, rawjson.Excerpt(v))
	}
	return o.ReadEvent("", v)
}

// ReadEvent reads one line.
func (o *reader) ReadEvent(_ string, v rawjson.Value) error {
	if !rawjson.IsEmpty(v.Get("error")) {
		return wire.NewAPIError(o.Provider, v)
	}
	o.SetHead(func(h *llm.Head) { h.Model = cmp.Or(v.Get("model").Text(), h.Model) })
	o.EmitHead()
	if o.readMessage(v); !v.Get("done").Bool() {
		return nil
	}
	o.finished = true
	o.SetHead(func(h *llm.Head) { h.Finish = v.Get("done_reason").Text() })
	o.readUsage(v)
	return nil
}

// readUsage reads the usage, which lies among the other members of the last line.
func (o *reader) readUsage(v rawjson.Value) {
	count := wire.TokenCounts(v)
	input, output := count("prompt_eval_count"), count("eval_count")
	if v.Get("eval_count").Kind() != rawjson.KindNumber && input == 0 {
		return
	}
	raw := rawjson.Without(v, "message", "response", "thinking", "tool_calls", "context", "model", "created_at", "done", "done_reason")
	o.SetUsage(content.Usage{Input: input, Output: output, Raw: bytes.Clone(raw)})
}

// readMessage reads a message, or a piece of one.
func (o *reader) readMessage(line rawjson.Value) {
	var reasoning, answer, calls rawjson.Value
	for key, m := range messageOf(line).Members() {
		switch key {
		case "role":
		case "thinking":
			reasoning = m
		case "content":
			answer = m
		case "tool_calls":
			calls = m
		default:
			if !rawjson.IsEmpty(m) {
				o.unknownFields.Field(key).Add(m)
			}
		}
	}
	if text := reasoning.Text(); text != "" {
		o.addText(text, sourceThinking)
	}
	if text := answer.Text(); text != "" {
		o.tags.NoImplicit = true
		o.readPieces(o.tags.Write(text))
	}
	createdAt := line.Get("created_at")
	for c := range o.Elements(calls) {
		o.readCall(c, createdAt)
	}
}

// The sources of text: the field of reasoning, and what is between tags in a content. Text
// of the answer has none.
const (
	sourceText     = ""
	sourceThinking = "thinking"
	sourceTags     = "content"
)

// addText appends text to the open block, or begins a new one when the text has another
// source.
func (o *reader) addText(text, source string) {
	if o.current == nil || o.current != o.Last || o.current.Done || o.source != source {
		o.endOpenBlock()
		o.beginBlock(source)
	}
	o.AppendText(o.current, text)
}

// beginBlock begins a block for text of a source. A block of the content takes the empty tags before it.
func (o *reader) beginBlock(source string) {
	tags := o.emptyTags
	if source != sourceThinking {
		o.emptyTags = ""
	}
	var b content.Block
	switch source {
	case sourceThinking:
		b = content.Reasoning{Wire: o.BlockForm(), Format: content.FormatParsed, Source: source}
	case sourceTags:
		b = content.Reasoning{Wire: o.BlockForm(), Format: content.FormatThinkTags, Source: source, Open: tags}
	default:
		text := content.Text{Wire: o.BlockForm(), Of: content.KindAssistant}
		if tags != "" {
			text.SetExtra(rawjson.WithMember(nil, wire.ExtraBefore, rawjson.AppendString(nil, tags)))
		}
		b = text
	}
	o.current, o.source = o.Begin(b), source
}

// endOpenBlock ends the block that is open.
func (o *reader) endOpenBlock() {
	if o.current != nil {
		o.End(o.current)
		o.current = nil
	}
}

// readPieces reads the pieces of a content that the splitter cut at think tags.
func (o *reader) readPieces(list []thinktags.Piece) {
	for _, p := range list {
		switch p.Kind {
		case thinktags.Text:
			o.addText(p.Text, sourceText)
		case thinktags.Open:
			o.emptyTags += p.Text
			o.endOpenBlock()
		case thinktags.Reasoning:
			o.addText(p.Text, sourceTags)
		case thinktags.Close:
			if o.current == nil || o.source != sourceTags {
				o.emptyTags += p.Text // there was no reasoning, or something else came between
				continue
			}
			b := o.current.Block.(content.Reasoning)
			b.Close = p.Text
			o.current.Block = b
			o.endOpenBlock()
		case thinktags.Reclassify: // not asked for
		}
	}
}

// readCall reads a call. A call without an id gets one made from the time of its line.
func (o *reader) readCall(v, createdAt rawjson.Value) {
	o.endOpenBlock()
	i := rawjson.ObjectReader{Value: v}
	f := i.TakeObject("function")
	b := content.ToolCall{Wire: o.BlockForm(), Name: f.TakeText("name"), Arguments: "{}"}
	b.SetID(i.TakeText("id"))
	b.CallID = b.Form().ID
	if b.CallID == "" {
		b.CallID = fmt.Sprintf("%s/%d", cmp.Or(createdAt.Text(), "call"), o.calls)
	}
	switch args := f.Take("arguments"); args.Kind() {
	case rawjson.KindString:
		b.Arguments = args.Text()
		b.SetType(typeStringArguments)
	case rawjson.KindAbsent:
	default:
		b.Arguments = string(args)
	}
	b.SetExtra(rawjson.WithMember(i.Rest(), "function", f.Rest()))
	o.calls++
	o.Emit(b)
}

// Finish writes what was held back.
func (o *reader) Finish(bool) bool {
	o.readPieces(o.tags.Close())
	if rest := o.emptyTags; rest != "" && o.finished {
		o.emptyTags = ""
		o.addText(rest, sourceText)
	}
	if !o.finished {
		return false
	}
	o.endOpenBlock()
	for _, key := range o.unknownFields.Keys {
		b := content.Native{Wire: o.BlockForm(), JSON: string(o.unknownFields.Fields[key].Value())}
		if b.SetType(key); b.JSON != "" {
			o.Emit(b)
		}
	}
	return true
}
