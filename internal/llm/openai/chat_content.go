package openai

import (
	"slices"
	"strings"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/thinktags"
	"github.com/tract-vcs/tract/internal/llm/wire"
)

// Members that a block's Extra has in this dialect beside those of its item.
// They begin with a sign that no provider uses.
const (
	chatOfMessage = "$message" // members of the message that no block stands for
	chatCopies    = "$copies"  // fields of the message that repeat its reasoning
	chatBeside    = "$beside"  // of reasoning: it differs from that of the field before it
	chatVerbatim  = "$json"    // of a call: its arguments are JSON, not a string of JSON
)

// chatFields are the plain fields for reasoning. The first that is not blank counts.
var chatFields = []string{"reasoning_content", "reasoning", "reasoning_text"}

// chatMessage is the members of a message that become blocks.
type chatMessage struct {
	content, refusal, details, opaque, calls, call, ran, google rawjson.Value
	plain                                                       [3]rawjson.Value // by the order of chatFields
}

// place is where a member is put that becomes blocks, and the kind it has then;
// nil for one that is not known.
func (m *chatMessage) place(key string) (*rawjson.Value, rawjson.Kind) {
	switch key {
	case "content":
		return &m.content, rawjson.KindString // or a list
	case "refusal":
		return &m.refusal, rawjson.KindString
	case "reasoning_details":
		return &m.details, rawjson.KindArray
	case "reasoning_opaque":
		return &m.opaque, rawjson.KindString
	case "tool_calls":
		return &m.calls, rawjson.KindArray
	case "function_call":
		return &m.call, rawjson.KindObject
	case "executed_tools":
		return &m.ran, rawjson.KindArray
	case "extra_content":
		return &m.google, rawjson.KindObject
	}
	if i := slices.Index(chatFields, key); i >= 0 {
		return &m.plain[i], rawjson.KindString
	}
	return nil, rawjson.KindAbsent
}

// message reads a message, or the part of one that a chunk brings.
func (c *chatReader) message(v rawjson.Value) error {
	var m chatMessage
	for key, v := range v.Members() {
		at, kind := m.place(key)
		list := v.Kind() == rawjson.KindArray && (key == "content" || kind == rawjson.KindArray)
		switch {
		case key == "role" || key == "tool_calls" && list && rawjson.IsEmpty(v): // no calls in a list are refused when they come back
		case at == nil, v.Kind() != kind && !list, c.once && rawjson.IsEmpty(v):
			c.keep(key, v)
		default:
			*at = v
		}
	}
	if err := c.think(&m); err != nil {
		return err
	}
	for v := range m.ran.Elements() {
		if err := c.execute(v); err != nil {
			return err
		}
	}
	if err := c.content(m.content); err != nil {
		return err
	}
	if err := c.refuse(m.refusal); err != nil {
		return err
	}
	for v := range m.calls.Elements() {
		if err := c.toolCall(v); err != nil {
			return err
		}
	}
	if err := c.functionCall(m.call); err != nil {
		return err
	}
	return c.sealText(m.google)
}

// chatWords is the content as it comes.
type chatWords struct {
	tags   thinktags.Splitter
	tagged bool                 // the splitter was used
	parts  []*wire.BlockBuilder // the texts
	minds  []*wire.BlockBuilder // the thoughts
	now    *wire.BlockBuilder   // the text that more is added to
	mind   *wire.BlockBuilder   // the thought between tags that is open
	open   string               // the opening tag of a thought that has no words yet
	before string               // tags with nothing between them, before the next block
	white  []string             // white space that may turn out to be all there is
	refuse *wire.BlockBuilder
}

// takeWhite is the white space that waits, which then does so no more.
func (w *chatWords) takeWhite() string {
	white := strings.Join(w.white, "")
	w.white = nil
	return white
}

// content reads a content: a string, which may hold think tags, or a list.
func (c *chatReader) content(v rawjson.Value) error {
	for part := range v.Elements() {
		if err := c.contentPart(part); err != nil {
			return err
		}
	}
	if v.Kind() != rawjson.KindString || len(v) == len(`""`) {
		return nil
	}
	c.words.tagged = true
	c.words.tags.NoImplicit = c.Quirks.TagsPaired || len(c.minds.parts) > 0
	return c.pieces(c.words.tags.Write(v.Text()))
}

// pieces takes what the splitter found.
func (c *chatReader) pieces(list []thinktags.Piece) (err error) {
	w := &c.words
	for _, p := range list {
		switch p.Kind {
		case thinktags.Text:
			err = c.text(p.Text, "")
		case thinktags.Open:
			w.open = w.before + w.takeWhite() + p.Text
			w.before, w.now = "", nil
		case thinktags.Reasoning:
			if w.mind == nil {
				w.mind, err = c.start(content.Reasoning{Wire: c.BlockForm(), Format: content.FormatThinkTags, Source: "content", Open: w.open})
				if err != nil {
					return err
				}
				w.minds, w.open = append(w.minds, w.mind), ""
			}
			c.AppendText(w.mind, p.Text)
		case thinktags.Close:
			if w.mind == nil {
				w.before, w.open = w.open+p.Text, ""
				continue
			}
			c.closeTag(w.mind, p.Text)
			w.mind = nil
		case thinktags.Reclassify:
			c.reclassify(p.Text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *chatReader) closeTag(p *wire.BlockBuilder, tag string) {
	b := p.Block.(content.Reasoning)
	b.Close = tag
	p.Block = b
	if !c.once {
		c.End(p)
	}
}

// reclassify makes thoughts of all texts so far: what ends here had no opening
// tag.
func (c *chatReader) reclassify(tag string) {
	w := &c.words
	if len(w.parts) == 0 {
		w.before += w.takeWhite() + tag
		return
	}
	for i, p := range w.parts {
		was := p.Block.Form()
		b := content.Reasoning{Wire: c.BlockForm(), Format: content.FormatThinkTags, Source: "content", Open: rawjson.Value(was.Extra).Get(wire.ExtraBefore).Text()}
		b.SetSeal(was.Seal)
		if i == len(w.parts)-1 {
			b.Close = w.takeWhite() + tag
		}
		p.Block = b
		c.MarkChanged(p)
		if !c.once {
			c.End(p)
		}
	}
	w.minds, w.parts, w.now = w.parts, nil, nil
}

// text adds to the answer. White space waits for a word: around tool calls some
// servers send nothing else, and that is no text of its own.
func (c *chatReader) text(s, kind string) (err error) {
	w := &c.words
	if w.now == nil || w.now != c.Last {
		w.now = nil
		if strings.TrimSpace(s) == "" {
			w.white = append(w.white, s)
			return nil
		}
		s = w.takeWhite() + s
		b := content.Text{Wire: c.TypedForm(kind), Of: content.KindAssistant}
		if w.before != "" {
			b.SetExtra(rawjson.WithMember(nil, wire.ExtraBefore, rawjson.AppendString(nil, w.before)))
		}
		w.before = ""
		if w.now, err = c.start(b); err != nil {
			return err
		}
		w.parts = append(w.parts, w.now)
	}
	c.AppendText(w.now, s)
	return nil
}

// contentPart reads one part of a content that is a list.
func (c *chatReader) contentPart(v rawjson.Value) error {
	i := rawjson.ObjectReader{Value: v}
	kind := i.TakeText("type")
	switch {
	case kind == "text" && c.once && strings.TrimSpace(v.Get("text").Text()) != "":
		b := content.Text{Wire: c.TypedForm(kind), Of: content.KindAssistant, Text: i.TakeText("text")}
		b.SetExtra(i.Rest())
		p, err := c.start(b)
		if err == nil {
			c.words.parts = append(c.words.parts, p)
		}
		return err
	case kind == "text" && !c.once:
		return c.text(i.TakeText("text"), kind)
	case kind == "thinking":
		return c.thinkPart(i)
	}
	b := content.Native{Wire: c.TypedForm(chatPart + kind), JSON: string(v)}
	_, err := c.came(b)
	return err
}

// refuse reads the model's words for why it does not answer. They are its text.
func (c *chatReader) refuse(v rawjson.Value) (err error) {
	if rawjson.IsEmpty(v) {
		return nil
	}
	if c.words.refuse == nil {
		b := content.Text{Wire: c.TypedForm(chatRefusal), Of: content.KindAssistant}
		if c.words.refuse, err = c.start(b); err != nil {
			return err
		}
	}
	c.AppendText(c.words.refuse, v.Text())
	return nil
}

// endWords ends the content.
func (c *chatReader) endWords() {
	w := &c.words
	if w.tagged {
		if c.pieces(w.tags.Close()) != nil {
			return // too many blocks: what was held back is lost with the rest
		}
	}
	left := w.before + w.open + w.takeWhite()
	switch {
	case left == "":
	case len(w.parts) > 0:
		c.AppendText(w.parts[len(w.parts)-1], left)
	case c.Count > 0:
		c.rest.Set("content", rawjson.AppendString(nil, left))
	case strings.TrimSpace(left) == "":
		p, err := c.Begin(content.Text{Wire: c.BlockForm(), Of: content.KindAssistant})
		if err == nil {
			c.AppendText(p, left)
		}
	}
}
