package openai

import (
	"slices"
	"strings"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
)

// How reasoning is found in chat completions.
//
// Servers put it into reasoning_content, reasoning, reasoning_text, entries of
// reasoning_details, parts of type thinking, or between think tags in the content; some
// into two of these at once, with the same text. All of reasoning_details is kept, since
// only its entries have seals. Of the plain fields the first that is not blank counts;
// a field that repeats it is noted in its extra, and one that differs becomes a block of
// its own. While both still grow, a shorter text may catch up, so the comparison waits.

// chatReasoning is the reasoning in fields of its own.
type chatReasoning struct {
	blocks  []*wire.BlockBuilder
	current *wire.BlockBuilder // the reasoning in a plain field that more is appended to
	details map[detailKey]*wire.BlockBuilder

	// field is the plain field that counts: of several, the first that is not blank;
	// empty: none so far. The others mostly repeat it; one that differs is a block of its
	// own.
	field     string
	others    []*otherField
	fieldText []byte // the text of the field that counts, once there are others
}

// detailsField stands for reasoning_details where that is the field that counts.
const detailsField = "reasoning_details"

// detailKey tells the entries of reasoning_details in a stream apart: an entry and its
// seal may share an index.
type detailKey struct {
	index int64
	kind  string
}

// otherField is a plain field beside the one that counts.
type otherField struct {
	field            string
	text             strings.Builder
	hasText          bool               // it is not blank
	comparedComplete int                // how much of the text was compared as complete
	comparedEqual    int                // how much of the text is known to be equal to the field that counts
	block            *wire.BlockBuilder // of a text that differs; nil: it does not so far
}

// readReasoning reads the reasoning of a message.
func (c *chatReader) readReasoning(m map[string]rawjson.Value) {
	for v := range m["reasoning_details"].Elements() {
		if c.readDetail(v) {
			c.reasoning.field = detailsField
		}
	}
	for _, field := range reasoningFields {
		if v := m[field]; !rawjson.IsEmpty(v) {
			c.addReasoning(field, v.Text())
		}
	}
	c.compareFields(slices.ContainsFunc(answerFields, func(field string) bool { return !rawjson.IsEmpty(m[field]) }))
	c.readOpaqueSeal(m["reasoning_opaque"])
}

// addReasoning adds reasoning in a plain field.
func (c *chatReader) addReasoning(field, text string) {
	if field == c.reasoning.field {
		c.addPlainReasoning(field, text)
		return
	}
	other := c.otherFieldFor(field)
	other.text.WriteString(text)
	other.hasText = other.hasText || strings.TrimSpace(text) != ""
	if c.reasoning.field == "" && other.hasText {
		c.reasoning.field = field
		c.reasoning.others = slices.DeleteFunc(c.reasoning.others, func(x *otherField) bool { return x == other })
		c.addPlainReasoning(field, other.text.String())
	} else if other.block != nil {
		c.AppendText(other.block, text)
	}
}

// otherFieldFor returns a plain field that does not count, or not yet.
func (c *chatReader) otherFieldFor(field string) *otherField {
	for _, x := range c.reasoning.others {
		if x.field == field {
			return x
		}
	}
	x := &otherField{field: field}
	if c.reasoning.others = append(c.reasoning.others, x); c.reasoning.fieldText == nil {
		for _, p := range c.reasoning.blocks {
			c.reasoning.fieldText = append(c.reasoning.fieldText, strings.Join(p.Text, "")...)
		}
	}
	return x
}

// appendReasoning appends text to the reasoning that counts.
func (c *chatReader) appendReasoning(p *wire.BlockBuilder, text string) {
	if c.reasoning.others != nil {
		c.reasoning.fieldText = append(c.reasoning.fieldText, text...)
	}
	c.AppendText(p, text)
}

// compareFields begins a block for each other field that differs from the one that counts.
// While one of the two may still catch up with the other, that is unknown; answered says
// that the reasoning before the answer is over.
func (c *chatReader) compareFields(answered bool) {
	if c.reasoning.field == "" {
		return
	}
	for _, x := range c.reasoning.others {
		if x.block != nil || !x.differs(c.reasoning.fieldText, answered) {
			continue
		}
		b := content.Reasoning{Wire: c.BlockForm(), Format: content.FormatParsed, Source: x.field}
		b.SetExtra(rawjson.WithMember(nil, extraDiffers, rawjson.Value("true")))
		last := c.Last // which goes on
		x.block, c.Last = c.Begin(b), last
		c.AppendText(x.block, x.text.String())
	}
}

// differs reports whether the text is not a prefix of counting, the text of the field that
// counts; if both are complete, also whether it goes on after counting.
func (x *otherField) differs(counting []byte, complete bool) bool {
	text := x.text.String()
	if !x.hasText {
		return false
	}
	from, to := x.comparedEqual, min(len(text), len(counting))
	x.comparedEqual = to
	if from < to && text[from:to] != string(counting[from:to]) {
		return true
	}
	complete = complete && x.comparedComplete < len(text) // once is enough, however long the answer is
	if complete {
		x.comparedComplete = len(text)
	}
	return complete && strings.TrimSpace(text[to:]) != ""
}

// beginReasoning begins a reasoning block.
func (c *chatReader) beginReasoning(b content.Reasoning) *wire.BlockBuilder {
	p := c.beginBlock(b)
	c.reasoning.blocks = append(c.reasoning.blocks, p)
	return p
}

// addPlainReasoning appends to the reasoning in a plain field. After any other block it
// begins a new one.
func (c *chatReader) addPlainReasoning(field, text string) {
	p := c.reasoning.current
	if p == nil || p != c.Last || p.Block.(content.Reasoning).Source != field {
		p = c.beginReasoning(content.Reasoning{Wire: c.BlockForm(), Format: content.FormatParsed, Source: field})
		c.reasoning.current = p
	}
	c.appendReasoning(p, text)
}

// readDetail reads an entry of reasoning_details and reports whether it has text. In a
// stream the pieces of an entry share an index and a type; a sealed entry comes whole.
func (c *chatReader) readDetail(v rawjson.Value) (hasText bool) {
	if v.Kind() != rawjson.KindObject {
		return false
	}
	i := rawjson.ObjectReader{Value: v}
	kind := i.TakeText("type")
	form := c.BlockForm().Form()
	form.Type, form.ID = kind, i.TakeText("id")
	text := i.TakeText(detailTextField(kind))
	if data := i.TakeText("data"); data != "" {
		form.Seal = c.NewSeal(content.Encrypted, data)
	} else if data := i.TakeText("signature"); data != "" {
		form.Seal = c.NewSeal(content.Signature, data)
	}
	form.Extra = i.Rest()
	key := detailKey{index: -1, kind: kind}
	if n, ok := v.Get("index").Int(); ok {
		key.index = n
	}
	p := c.reasoning.details[key]
	if p == nil || c.whole || form.Seal.Type == content.Encrypted || !c.continueReasoning(p, &form) {
		p = c.beginReasoning(content.Reasoning{Wire: form.Wire(), Format: content.FormatDetails, Source: "reasoning_details[" + kind + "]"})
		if c.reasoning.details == nil {
			c.reasoning.details = map[detailKey]*wire.BlockBuilder{}
		}
		c.reasoning.details[key] = p
	}
	c.appendReasoning(p, text)
	if form.Seal.Data != "" && !c.whole {
		c.End(p) // a seal comes last
	}
	return text != ""
}

// continueReasoning merges a later piece of an entry into its block, the text apart. It
// reports whether the piece belongs to the block.
func (c *chatReader) continueReasoning(p *wire.BlockBuilder, more *content.Form) bool {
	b := p.Block.(content.Reasoning)
	form := b.Form()
	if form.Seal.Type == content.Encrypted || form.ID != "" && more.ID != "" && form.ID != more.ID {
		return false
	}
	if more.Seal.Data == "" && (more.ID == "" || more.ID == form.ID) && string(form.Extra) == string(more.Extra) {
		return true
	}
	if more.ID != "" {
		form.ID = more.ID
	}
	if more.Seal.Data != "" {
		form.Seal = more.Seal
	}
	for key, v := range rawjson.Value(more.Extra).Members() {
		if previous := rawjson.Value(form.Extra).Get(key); rawjson.IsEmpty(previous) {
			form.Extra = rawjson.WithMember(form.Extra, key, v)
		}
	}
	b.Wire = form.Wire()
	p.Block = b
	c.MarkChanged(p)
	return true
}

// detailTextField returns the member of an entry of reasoning_details that has its text.
func detailTextField(kind string) string {
	if kind == "reasoning.summary" {
		return "summary"
	}
	return "text"
}

// readOpaqueSeal reads a seal of the reasoning before it.
func (c *chatReader) readOpaqueSeal(v rawjson.Value) {
	if rawjson.IsEmpty(v) {
		return
	}
	seal := c.NewSeal(content.Opaque, v.Text())
	if n := len(c.reasoning.blocks); n > 0 {
		p := c.reasoning.blocks[n-1]
		if b := p.Block.(content.Reasoning); b.Format == content.FormatParsed && (b.Form().Seal.IsZero() || b.Form().Seal == seal) {
			b.SetSeal(seal)
			p.Block = b
			c.MarkChanged(p)
			return
		}
	}
	c.emitSeal(seal, "reasoning_opaque")
}

// emitSeal adds a seal that has no reasoning to belong to, as a block without text.
func (c *chatReader) emitSeal(seal content.Seal, source string) {
	b := content.Reasoning{Wire: c.BlockForm(), Format: content.FormatParsed, Source: source}
	b.SetSeal(seal)
	if p := c.beginReasoning(b); !c.whole {
		c.End(p)
	}
}

// thinkingText returns the text of a thinking part: a string, or a list of chunks. plain
// is true when that is all that one chunk has.
func thinkingText(v rawjson.Value) (text string, plain bool) {
	if v.Kind() == rawjson.KindString {
		return v.Text(), false
	}
	var texts []string
	plain = true
	for chunk := range v.Elements() {
		i := rawjson.ObjectReader{Value: chunk, Taken: []string{"type", "text"}}
		plain = plain && len(texts) == 0 && chunk.Get("type").Text() == "text" && i.Rest() == nil
		texts = append(texts, chunk.Get("text").Text())
	}
	return strings.Join(texts, ""), plain && len(texts) == 1
}

// readThinkingPart reads a thinking part of a content that is a list.
func (c *chatReader) readThinkingPart(i rawjson.ObjectReader) {
	text, plain := thinkingText(i.Get("thinking"))
	if plain || !c.whole {
		i.Take("thinking")
	}
	const source = "content[].thinking"
	form := c.BlockForm().Form()
	if seal := i.TakeText("signature"); seal != "" {
		form.Seal = c.NewSeal(content.Signature, seal)
	}
	form.Extra = i.Rest()
	p := c.reasoning.current
	if c.whole || p == nil || p != c.Last || p.Block.(content.Reasoning).Source != source || !c.continueReasoning(p, &form) {
		p = c.beginReasoning(content.Reasoning{Wire: form.Wire(), Format: content.FormatMistral, Source: source})
		c.reasoning.current = p
	}
	c.AppendText(p, text)
}

// endReasoning notes in the extra of the first reasoning block which fields repeat it, and
// the fields that say less: nothing, or only its beginning.
func (c *chatReader) endReasoning() {
	c.compareFields(true)
	var same rawjson.Array
	var less rawjson.Object
	for _, x := range c.reasoning.others {
		switch text := x.text.String(); {
		case x.block != nil:
			if !c.whole {
				c.End(x.block)
			}
		case c.reasoning.field != "" && text == string(c.reasoning.fieldText):
			same.AddString(x.field)
		default:
			less.SetString(x.field, text)
		}
	}
	if len(c.reasoning.blocks) == 0 {
		for key, v := range less.Bytes().Members() {
			c.unknownFields.Set(key, v)
		}
		return
	}
	first := c.reasoning.blocks[0]
	first.AddExtra(extraCopies, same.Bytes())
	first.AddExtra(extraMessage, less.Bytes())
	c.MarkChanged(first)
}
