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

// The ollama dialect: /api/chat of Ollama itself
// (https://docs.ollama.com/api/chat). A stream is lines of JSON, each a response
// with a piece of the message; one piece is one such line. Calls may have no ids,
// and their arguments are objects.
var Ollama = &wire.Dialect{
	Name:               "ollama",
	Path:               func(string, bool) string { return "/api/chat" },
	Sign:               wire.SignBearer,
	NewReader:          func(o *wire.BlockWriter) wire.ResponseReader { return &ollama{BlockWriter: o} },
	Encode:             encodeOllama,
	Replay:             replayOllama,
	NeedsLoopReasoning: func(wire.Target) bool { return true },
	DecodeRequest:      requestOllama,
	Outline:            outlineOllama,

	ReasoningOffFields: [][]string{{"think"}},
	NeedsModel:         true,
}

// ollamaString is the type of a call whose arguments came as a string.
const ollamaString = "string"

// ollama reads one response.
type ollama struct {
	*wire.BlockWriter
	tags     thinktags.Splitter
	open     string             // tags with nothing between them so far
	now      *wire.BlockBuilder // the text or the thought that more is added to
	source   string             // of now
	calls    int
	finished bool
	rest     wire.FieldAccumulator // members of the message that are not known
}

// whole reads a response in one piece.
func (o *ollama) ReadBody(v rawjson.Value) error {
	if v.Get("message").Kind() != rawjson.KindObject && v.Get("error") == nil && !v.Get("done").Bool() {
		return fmt.Errorf("%w: no message in %q", llm.ErrProtocol, rawjson.Excerpt(v))
	}
	return o.ReadEvent("", v)
}

// event reads one line.
func (o *ollama) ReadEvent(_ string, v rawjson.Value) error {
	if !rawjson.IsEmpty(v.Get("error")) {
		return wire.NewAPIError(o.Provider, v)
	}
	o.SetHead(func(h *llm.Head) { h.Model = cmp.Or(v.Get("model").Text(), h.Model) })
	o.EmitHead()
	if err := o.message(v); err != nil || !v.Get("done").Bool() {
		return err
	}
	o.finished = true
	o.SetHead(func(h *llm.Head) { h.Finish = v.Get("done_reason").Text() })
	o.cost(v)
	return nil
}

// cost reads the usage, which lies among the other members of the last line.
func (o *ollama) cost(v rawjson.Value) {
	count := wire.TokenCounts(v)
	input, output := count("prompt_eval_count"), count("eval_count")
	if v.Get("eval_count").Kind() != rawjson.KindNumber && input == 0 {
		return
	}
	raw := rawjson.Without(v, "message", "model", "created_at", "done", "done_reason")
	o.SetUsage(content.Usage{Input: input, Output: output, Raw: bytes.Clone(raw)})
}

// message reads a message, or a piece of one.
func (o *ollama) message(line rawjson.Value) (err error) {
	var thought, words, calls rawjson.Value
	for key, m := range line.Get("message").Members() {
		switch key {
		case "role":
		case "thinking":
			thought = m
		case "content":
			words = m
		case "tool_calls":
			calls = m
		default:
			if !rawjson.IsEmpty(m) {
				o.rest.Field(key).Add(m)
			}
		}
	}
	if text := thought.Text(); text != "" {
		err = o.more(text, ollamaThought)
	}
	if text := words.Text(); err == nil && text != "" {
		o.tags.NoImplicit = true
		err = o.pieces(o.tags.Write(text))
	}
	for c := range calls.Elements() {
		if err == nil {
			err = o.call(c, line.Get("created_at"))
		}
	}
	return err
}

// Where words come from: the fields of thoughts, and what is between tags in a
// content. Text has none.
const (
	ollamaText    = ""
	ollamaThought = "thinking"
	ollamaTagged  = "content"
)

// more adds words to the block that is open, or to a new one when that is of
// another sort.
func (o *ollama) more(text, source string) (err error) {
	if o.now == nil || o.now != o.Last || o.now.Done || o.source != source {
		o.endBlock()
		if o.now, err = o.Begin(o.begun(source)); err != nil {
			return err
		}
		o.source = source
	}
	o.AppendText(o.now, text)
	return nil
}

// begun is a block that begins.
func (o *ollama) begun(source string) content.Block {
	open := o.open
	switch source {
	case ollamaThought:
		return content.Reasoning{Wire: o.BlockForm(), Format: content.FormatParsed, Source: source}
	case ollamaTagged:
		o.open = ""
		return content.Reasoning{Wire: o.BlockForm(), Format: content.FormatThinkTags, Source: source, Open: open}
	}
	b := content.Text{Wire: o.BlockForm(), Of: content.KindAssistant}
	if o.open = ""; open != "" {
		b.SetExtra(rawjson.WithMember(nil, wire.ExtraBefore, rawjson.AppendString(nil, open)))
	}
	return b
}

// endBlock ends the block that is open.
func (o *ollama) endBlock() {
	if o.now != nil {
		o.End(o.now)
		o.now = nil
	}
}

// pieces takes a content apart at its think tags.
func (o *ollama) pieces(list []thinktags.Piece) (err error) {
	for _, p := range list {
		switch p.Kind {
		case thinktags.Text:
			err = o.more(p.Text, ollamaText)
		case thinktags.Open:
			o.open += p.Text
			o.endBlock()
		case thinktags.Reasoning:
			err = o.more(p.Text, ollamaTagged)
		case thinktags.Close:
			if o.now == nil || o.source != ollamaTagged {
				o.open += p.Text // nothing was thought, or something else came between
				continue
			}
			b := o.now.Block.(content.Reasoning)
			b.Close = p.Text
			o.now.Block = b
			o.endBlock()
		case thinktags.Reclassify: // not asked for
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// call reads a call. One without an id gets one, from the time of its line.
func (o *ollama) call(v, when rawjson.Value) error {
	o.endBlock()
	i := rawjson.ObjectReader{Value: v}
	f := i.TakeObject("function")
	b := content.ToolCall{Wire: o.BlockForm(), Name: f.TakeText("name"), Arguments: "{}"}
	b.SetID(i.TakeText("id"))
	b.CallID = b.Form().ID
	if b.CallID == "" {
		b.CallID = fmt.Sprintf("%s/%d", cmp.Or(when.Text(), "call"), o.calls)
	}
	switch args := f.Take("arguments"); args.Kind() {
	case rawjson.KindString:
		b.Arguments = args.Text()
		b.SetType(ollamaString)
	case rawjson.KindAbsent:
	default:
		b.Arguments = string(args)
	}
	b.SetExtra(rawjson.WithMember(i.Rest(), "function", f.Rest()))
	o.calls++
	return o.Emit(b)
}

// end puts out what was held back.
func (o *ollama) Finish(bool) bool {
	if o.pieces(o.tags.Close()) != nil {
		return o.finished
	}
	if left := o.open; left != "" && o.finished {
		o.open = ""
		if o.more(left, ollamaText) != nil {
			return true
		}
	}
	if !o.finished {
		return false
	}
	o.endBlock()
	for _, key := range o.rest.Keys {
		b := content.Native{Wire: o.BlockForm(), JSON: string(o.rest.Fields[key].Value())}
		if b.SetType(key); b.JSON != "" && o.Emit(b) != nil {
			break
		}
	}
	return true
}
