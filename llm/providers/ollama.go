package providers

import (
	"bytes"
	"cmp"
	"fmt"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/llm"
)

// The ollama dialect: /api/chat of Ollama itself
// (https://docs.ollama.com/api/chat). A stream is lines of JSON, each a response
// with a piece of the message; one piece is one such line. Calls may have no ids,
// and their arguments are objects.
var Ollama = &dialect{
	name:      "ollama",
	path:      func(string, bool) string { return "/api/chat" },
	sign:      signBearer,
	read:      func(o *output) reader { return &ollama{output: o} },
	encode:    encodeOllama,
	replay:    replayOllama,
	wantsTurn: func(target) bool { return true },
	request:   requestOllama,
	outline:   outlineOllama,

	off:        [][]string{{"think"}},
	needsModel: true,
}

// ollamaString is the type of a call whose arguments came as a string.
const ollamaString = "string"

// ollama reads one response.
type ollama struct {
	*output
	tags     llm.TagSplitter
	open     string // tags with nothing between them so far
	now      *part  // the text or the thought that more is added to
	source   string // of now
	calls    int
	finished bool
	rest     growing // members of the message that are not known
}

// whole reads a response in one piece.
func (o *ollama) whole(v rawjson.Value) error {
	if v.Get("message").Kind() != rawjson.KindObject && v.Get("error") == nil && !v.Get("done").Bool() {
		return fmt.Errorf("%w: no message in %q", llm.ErrProtocol, excerpt(v))
	}
	return o.event("", v)
}

// event reads one line.
func (o *ollama) event(_ string, v rawjson.Value) error {
	if !hollow(v.Get("error")) {
		return apiError(o.provider, v)
	}
	o.about(func(h *llm.Head) { h.Model = cmp.Or(v.Get("model").Text(), h.Model) })
	o.giveHead()
	if err := o.message(v); err != nil || !v.Get("done").Bool() {
		return err
	}
	o.finished = true
	o.about(func(h *llm.Head) { h.Finish = v.Get("done_reason").Text() })
	o.cost(v)
	return nil
}

// cost reads the usage, which lies among the other members of the last line.
func (o *ollama) cost(v rawjson.Value) {
	count := counts(v)
	input, output := count("prompt_eval_count"), count("eval_count")
	if v.Get("eval_count").Kind() != rawjson.KindNumber && input == 0 {
		return
	}
	raw := rawjson.Without(v, "message", "model", "created_at", "done", "done_reason")
	o.usage(content.Usage{Input: input, Output: output, Raw: bytes.Clone(raw)})
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
			if !hollow(m) {
				o.rest.member(key).add(m)
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
	if o.now == nil || o.now != o.last || o.now.done || o.source != source {
		o.endBlock()
		if o.now, err = o.begin(o.begun(source)); err != nil {
			return err
		}
		o.source = source
	}
	o.say(o.now, text)
	return nil
}

// begun is a block that begins.
func (o *ollama) begun(source string) content.Block {
	open := o.open
	switch source {
	case ollamaThought:
		return content.Reasoning{Wire: o.form(), Format: content.FormatParsed, Source: source}
	case ollamaTagged:
		o.open = ""
		return content.Reasoning{Wire: o.form(), Format: content.FormatThinkTags, Source: source, Open: open}
	}
	b := content.Text{Wire: o.form(), Of: content.KindAssistant}
	if o.open = ""; open != "" {
		b.SetExtra(extended(nil, chatBefore, rawjson.AppendString(nil, open)))
	}
	return b
}

// endBlock ends the block that is open.
func (o *ollama) endBlock() {
	if o.now != nil {
		o.done(o.now)
		o.now = nil
	}
}

// pieces takes a content apart at its think tags.
func (o *ollama) pieces(list []llm.Piece) (err error) {
	for _, p := range list {
		switch p.Kind {
		case llm.PieceText:
			err = o.more(p.Text, ollamaText)
		case llm.PieceOpen:
			o.open += p.Text
			o.endBlock()
		case llm.PieceReasoning:
			err = o.more(p.Text, ollamaTagged)
		case llm.PieceClose:
			if o.now == nil || o.source != ollamaTagged {
				o.open += p.Text // nothing was thought, or something else came between
				continue
			}
			b := o.now.block.(content.Reasoning)
			b.Close = p.Text
			o.now.block = b
			o.endBlock()
		case llm.PieceReclassify: // not asked for
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
	i := item{Value: v}
	f := i.inner("function")
	b := content.ToolCall{Wire: o.form(), Name: f.text("name"), Arguments: "{}"}
	b.SetID(i.text("id"))
	b.CallID = b.Form().ID
	if b.CallID == "" {
		b.CallID = fmt.Sprintf("%s/%d", cmp.Or(when.Text(), "call"), o.calls)
	}
	switch args := f.take("arguments"); args.Kind() {
	case rawjson.KindString:
		b.Arguments = args.Text()
		b.SetType(ollamaString)
	case rawjson.KindAbsent:
	default:
		b.Arguments = string(args)
	}
	b.SetExtra(extended(i.rest(), "function", f.rest()))
	o.calls++
	return o.put(b)
}

// end puts out what was held back.
func (o *ollama) end(bool) bool {
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
	for _, key := range o.rest.keys {
		b := content.Native{Wire: o.form(), JSON: string(o.rest.members[key].bytes())}
		if b.SetType(key); b.JSON != "" && o.put(b) != nil {
			break
		}
	}
	return true
}
