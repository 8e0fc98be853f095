package openai

import (
	"slices"
	"strings"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
)

// chatMinds is the reasoning that comes in fields of its own.
type chatReasoning struct {
	blocks  []*wire.BlockBuilder
	current *wire.BlockBuilder // the thought in a plain field that more is added to
	details map[detailKey]*wire.BlockBuilder

	// Of several fields the first that is not blank counts. The others mostly repeat
	// it; what differs is a block of its own.
	field     string // the one that counts; empty: none was seen that is not blank
	others    []*otherField
	fieldText []byte // what the field that counts said, once there are others
}

// detailsField stands for reasoning_details where that is the field that counts.
const detailsField = "reasoning_details"

// chatDetail is what tells the entries of reasoning_details apart in a stream:
// an entry and its seal may share an index.
type detailKey struct {
	index int64
	kind  string
}

// chatOther is a plain field beside the one that counts.
type otherField struct {
	field            string
	text             strings.Builder
	hasText          bool               // it is not blank
	comparedComplete int                // so much of the text was looked at when it had to be complete
	comparedEqual    int                // so much of the text is known to be what the field that counts says
	block            *wire.BlockBuilder // of a text that differs; nil: it does not so far
}

// think reads the reasoning of a message.
func (c *chatReader) readReasoning(m *chatFields) error {
	for v := range m.details.Elements() {
		text, err := c.readDetail(v)
		if err != nil {
			return err
		}
		if text {
			c.reasoning.field = detailsField
		}
	}
	for i, field := range reasoningFields {
		if v := m.reasoning[i]; !rawjson.IsEmpty(v) {
			if err := c.addReasoning(field, v.Text()); err != nil {
				return err
			}
		}
	}
	answered := !rawjson.IsEmpty(m.content) || !rawjson.IsEmpty(m.refusal) || !rawjson.IsEmpty(m.toolCalls) || !rawjson.IsEmpty(m.functionCall)
	if err := c.compareFields(answered); err != nil {
		return err
	}
	return c.readOpaqueSeal(m.opaque)
}

// thinkIn adds to the reasoning in a plain field.
func (c *chatReader) addReasoning(field, text string) error {
	if field == c.reasoning.field {
		return c.addPlainReasoning(field, text)
	}
	other := c.otherField(field)
	other.text.WriteString(text)
	other.hasText = other.hasText || strings.TrimSpace(text) != ""
	if c.reasoning.field == "" && other.hasText {
		c.reasoning.field = field
		c.reasoning.others = slices.DeleteFunc(c.reasoning.others, func(x *otherField) bool { return x == other })
		return c.addPlainReasoning(field, other.text.String())
	}
	if other.block != nil {
		c.AppendText(other.block, text)
	}
	return nil
}

// other is a plain field that does not count, or not yet.
func (c *chatReader) otherField(field string) *otherField {
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

// muse adds to the reasoning that counts.
func (c *chatReader) appendReasoning(p *wire.BlockBuilder, text string) {
	if c.reasoning.others != nil {
		c.reasoning.fieldText = append(c.reasoning.fieldText, text...)
	}
	c.AppendText(p, text)
}

// compare begins a block for each other field that says something else than the one
// that counts. While one of the two may still catch up with the other, that is not
// known; answered tells that the reasoning before the answer is over.
func (c *chatReader) compareFields(answered bool) error {
	if c.reasoning.field == "" {
		return nil
	}
	for _, x := range c.reasoning.others {
		if x.block != nil || !x.differs(c.reasoning.fieldText, answered) {
			continue
		}
		b := content.Reasoning{Wire: c.BlockForm(), Format: content.FormatParsed, Source: x.field}
		b.SetExtra(rawjson.WithMember(nil, extraDiffers, rawjson.Value("true")))
		last := c.Last // which goes on
		var err error
		if x.block, err = c.Begin(b); err != nil {
			return err
		}
		c.Last = last
		c.AppendText(x.block, x.text.String())
	}
	return nil
}

// differs reports whether the text of a field is not the beginning of what the field
// that counts said; when nothing more comes, also whether it goes on after that.
func (x *otherField) differs(said []byte, complete bool) bool {
	text := x.text.String()
	if !x.hasText {
		return false
	}
	from, to := x.comparedEqual, min(len(text), len(said))
	x.comparedEqual = to
	if from < to && text[from:to] != string(said[from:to]) {
		return true
	}
	complete = complete && x.comparedComplete < len(text) // once is enough, however long the answer is
	if complete {
		x.comparedComplete = len(text)
	}
	return complete && strings.TrimSpace(text[to:]) != ""
}

// mind begins a thought.
func (c *chatReader) beginReasoning(b content.Reasoning) (*wire.BlockBuilder, error) {
	p, err := c.beginBlock(b)
	if err == nil {
		c.reasoning.blocks = append(c.reasoning.blocks, p)
	}
	return p, err
}

// plainThought adds to the thought in a plain field. After anything else it is
// another thought.
func (c *chatReader) addPlainReasoning(field, text string) (err error) {
	p := c.reasoning.current
	if p == nil || p != c.Last || p.Block.(content.Reasoning).Source != field {
		if p, err = c.beginReasoning(content.Reasoning{Wire: c.BlockForm(), Format: content.FormatParsed, Source: field}); err != nil {
			return err
		}
		c.reasoning.current = p
	}
	c.appendReasoning(p, text)
	return nil
}

// detail reads an entry of reasoning_details and tells whether it has words. In a
// stream the pieces of an entry share an index and a type; a sealed one comes
// whole.
func (c *chatReader) readDetail(v rawjson.Value) (said bool, err error) {
	if v.Kind() != rawjson.KindObject {
		return false, nil
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
		b := content.Reasoning{Wire: form.Wire(), Format: content.FormatDetails, Source: "reasoning_details[" + kind + "]"}
		if p, err = c.beginReasoning(b); err != nil {
			return false, err
		}
		if c.reasoning.details == nil {
			c.reasoning.details = map[detailKey]*wire.BlockBuilder{}
		}
		c.reasoning.details[key] = p
	}
	c.appendReasoning(p, text)
	if form.Seal.Data != "" && !c.whole {
		c.End(p) // a seal comes last
	}
	return text != "", nil
}

// moreOf adds what a later piece of an entry brings, its words apart. It tells
// whether it is one.
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

// detailField is where an entry of reasoning_details has its words.
func detailTextField(kind string) string {
	if kind == "reasoning.summary" {
		return "summary"
	}
	return "text"
}

// opaque reads a seal that belongs to the thoughts before it, wherever it comes.
func (c *chatReader) readOpaqueSeal(v rawjson.Value) error {
	if rawjson.IsEmpty(v) {
		return nil
	}
	seal := c.NewSeal(content.Opaque, v.Text())
	if n := len(c.reasoning.blocks); n > 0 {
		p := c.reasoning.blocks[n-1]
		if b := p.Block.(content.Reasoning); b.Format == content.FormatParsed && (b.Form().Seal.IsZero() || b.Form().Seal == seal) {
			b.SetSeal(seal)
			p.Block = b
			c.MarkChanged(p)
			return nil
		}
	}
	return c.emitSeal(seal, "reasoning_opaque")
}

// alone puts out a seal that has no thought to lie on.
func (c *chatReader) emitSeal(seal content.Seal, source string) error {
	b := content.Reasoning{Wire: c.BlockForm(), Format: content.FormatParsed, Source: source}
	b.SetSeal(seal)
	p, err := c.beginReasoning(b)
	if err == nil && !c.whole {
		c.End(p)
	}
	return err
}

// thinkWords is the words of a thinking part: a string, or a list of chunks. plain
// tells that they are all that one chunk has.
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

// thinkPart reads a thinking part of a content that is a list.
func (c *chatReader) readThinkingPart(i rawjson.ObjectReader) error {
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
		b := content.Reasoning{Wire: form.Wire(), Format: content.FormatMistral, Source: source}
		var err error
		if p, err = c.beginReasoning(b); err != nil {
			return err
		}
		c.reasoning.current = p
	}
	c.AppendText(p, text)
	return nil
}

// endMinds notes with the first thought which fields repeat it, and those that say
// less: nothing, or only its beginning.
func (c *chatReader) endReasoning() {
	if c.compareFields(true) != nil {
		return // too many blocks: what was held back is lost with the rest
	}
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
