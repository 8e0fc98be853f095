package openai

import (
	"slices"
	"strings"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
)

// How the chat reader finds reasoning.
//
// Servers send reasoning in one of several places: reasoning_content, reasoning or
// reasoning_text (the plain fields), entries of reasoning_details, content parts of type
// thinking, or between think tags in the content. Some servers send the same text in two
// of these places. The reader keeps all of reasoning_details, since only its entries have
// seals. The first plain field that is not blank is the primary field. The reader lists
// the fields that repeat the primary field in the extra of its block; a field that differs
// becomes a block of its own. In a stream both texts grow, and the shorter one may still
// catch up, so the reader compares only what both have so far.

// chatReasoning is the state of the reasoning that does not come between think tags.
type chatReasoning struct {
	blocks  []*wire.BlockBuilder
	current *wire.BlockBuilder // the open block of a plain field or of thinking parts
	details map[detailKey]*wire.BlockBuilder

	// primary is the first plain field that is not blank; empty: there is none so far. The
	// secondary fields mostly repeat it; one that differs is a block of its own.
	primary     string
	secondary   []*secondaryField
	primaryText []byte // the text of the primary field; kept only once there is a secondary field
}

// detailsField is the value of primary when reasoning_details has text.
const detailsField = "reasoning_details"

// detailKey identifies an entry of reasoning_details in a stream. The kind is part of the
// key because an entry and its seal may share an index.
type detailKey struct {
	index int64
	kind  string
}

// secondaryField is a plain field of reasoning other than the primary field.
type secondaryField struct {
	field            string
	text             strings.Builder
	hasText          bool               // it is not blank
	comparedComplete int                // how much of the text was compared with the complete primary field
	comparedEqual    int                // how much of the text is known to equal the primary field
	block            *wire.BlockBuilder // of a text that differs from the primary field; nil: it does not differ so far
}

// readReasoning reads the reasoning of a message.
func (c *chatReader) readReasoning(m map[string]rawjson.Value) {
	for v := range c.Elements(m["reasoning_details"]) {
		if c.readReasoningDetail(v) {
			c.reasoning.primary = detailsField
		}
	}
	for _, field := range reasoningFields {
		if v := m[field]; !rawjson.IsEmpty(v) {
			c.addPrimaryOrSecondaryReasoning(field, v.Text())
		}
	}
	c.beginDivergingFields(slices.ContainsFunc(answerFields, func(field string) bool { return !rawjson.IsEmpty(m[field]) }))
	c.readReasoningOpaque(m["reasoning_opaque"])
}

// addPrimaryOrSecondaryReasoning adds the text of a plain field: to its block if the field is the
// primary one or becomes it now, else to the text that is compared with the primary field.
func (c *chatReader) addPrimaryOrSecondaryReasoning(field, text string) {
	if field == c.reasoning.primary {
		c.addPlainReasoning(field, text)
		return
	}
	second := c.findOrAddSecondaryField(field)
	second.text.WriteString(text)
	second.hasText = second.hasText || strings.TrimSpace(text) != ""
	if c.reasoning.primary == "" && second.hasText {
		c.reasoning.primary = field
		c.reasoning.secondary = slices.DeleteFunc(c.reasoning.secondary, func(x *secondaryField) bool { return x == second })
		c.addPlainReasoning(field, second.text.String())
	} else if second.block != nil {
		c.AppendText(second.block, text)
	}
}

// findOrAddSecondaryField returns the state of a plain field of reasoning that is not the primary one,
// or not yet.
func (c *chatReader) findOrAddSecondaryField(field string) *secondaryField {
	for _, x := range c.reasoning.secondary {
		if x.field == field {
			return x
		}
	}
	x := &secondaryField{field: field}
	if c.reasoning.secondary = append(c.reasoning.secondary, x); c.reasoning.primaryText == nil {
		for _, p := range c.reasoning.blocks {
			c.reasoning.primaryText = append(c.reasoning.primaryText, strings.Join(p.Text, "")...)
		}
	}
	return x
}

// appendPrimaryText appends text of the primary field to its open block p.
func (c *chatReader) appendPrimaryText(p *wire.BlockBuilder, text string) {
	if c.reasoning.secondary != nil {
		c.reasoning.primaryText = append(c.reasoning.primaryText, text...)
	}
	c.AppendText(p, text)
}

// beginDivergingFields begins a block for each secondary field that differs from the primary field.
// If the primary field is complete, a secondary field that is longer differs too.
func (c *chatReader) beginDivergingFields(primaryIsComplete bool) {
	if c.reasoning.primary == "" {
		return
	}
	for _, x := range c.reasoning.secondary {
		if x.block != nil || !x.divergesFrom(c.reasoning.primaryText, primaryIsComplete) {
			continue
		}
		b := content.Reasoning{Wire: c.BlockForm(), Format: content.FormatParsed, Source: x.field}
		b.SetExtra(rawjson.WithMember(nil, extraDiffers, rawjson.Value("true")))
		last := c.Last // more is appended to it
		x.block, c.Last = c.Begin(b), last
		c.AppendText(x.block, x.text.String())
	}
}

// divergesFrom reports whether neither of the text and primary, the text of the primary
// field, is a prefix of the other. If primary is complete, it also reports true when the text is
// longer by more than white space.
func (x *secondaryField) divergesFrom(primary []byte, primaryIsComplete bool) bool {
	text := x.text.String()
	if !x.hasText {
		return false
	}
	from, to := x.comparedEqual, min(len(text), len(primary))
	x.comparedEqual = to
	if from < to && text[from:to] != string(primary[from:to]) {
		return true
	}
	if !primaryIsComplete || x.comparedComplete >= len(text) { // once is enough, however long the answer is
		return false
	}
	x.comparedComplete = len(text)
	return strings.TrimSpace(text[to:]) != ""
}

// addNewReasoningBlock begins another reasoning block, and keeps it with those of this response.
func (c *chatReader) addNewReasoningBlock(b content.Reasoning) *wire.BlockBuilder {
	p := c.beginBlock(b)
	c.reasoning.blocks = append(c.reasoning.blocks, p)
	return p
}

// addPlainReasoning appends to the reasoning in a plain field. After any other block it
// begins a new one.
func (c *chatReader) addPlainReasoning(field, text string) {
	p := c.reasoning.current
	if p == nil || p != c.Last || p.Block.(content.Reasoning).Source != field {
		p = c.addNewReasoningBlock(content.Reasoning{Wire: c.BlockForm(), Format: content.FormatParsed, Source: field})
		c.reasoning.current = p
	}
	c.appendPrimaryText(p, text)
}

// readReasoningDetail reads an entry of reasoning_details and reports whether it has text. In a
// stream the pieces of an entry share an index and a type; a sealed entry comes whole.
func (c *chatReader) readReasoningDetail(v rawjson.Value) (hasText bool) {
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
	if p == nil || c.fromBody || form.Seal.Type == content.Encrypted || !c.continueReasoning(p, &form) {
		p = c.addNewReasoningBlock(content.Reasoning{Wire: form.Wire(), Format: content.FormatDetails, Source: "reasoning_details[" + kind + "]"})
		if c.reasoning.details == nil {
			c.reasoning.details = map[detailKey]*wire.BlockBuilder{}
		}
		c.reasoning.details[key] = p
	}
	c.appendPrimaryText(p, text)
	if form.Seal.Data != "" && !c.fromBody {
		c.End(p) // a seal comes last
	}
	return text != ""
}

// continueReasoning merges the id, seal and extra of a later piece of an entry into its
// block; the caller appends the text. It reports whether the piece belongs to the block.
func (c *chatReader) continueReasoning(p *wire.BlockBuilder, more *content.Form) (continues bool) {
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

// readReasoningOpaque reads reasoning_opaque, the seal of the reasoning before it.
func (c *chatReader) readReasoningOpaque(v rawjson.Value) {
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
	c.emitSealWithoutText(seal, "reasoning_opaque")
}

// emitSealWithoutText adds a seal that belongs to no reasoning block, as a new block without
// text. field is the field that held the seal.
func (c *chatReader) emitSealWithoutText(seal content.Seal, field string) {
	b := content.Reasoning{Wire: c.BlockForm(), Format: content.FormatParsed, Source: field}
	b.SetSeal(seal)
	if p := c.addNewReasoningBlock(b); !c.fromBody {
		c.End(p)
	}
}

// thinkingText returns the text of a thinking part, which is a string or a list of chunks.
// isSingleChunk reports whether it is a list of one chunk that has nothing but a text.
func thinkingText(v rawjson.Value) (text string, isSingleChunk bool) {
	if v.Kind() == rawjson.KindString {
		return v.Text(), false
	}
	var texts []string
	isSingleChunk = true
	for chunk := range v.Elements() {
		i := rawjson.ObjectReader{Value: chunk, Taken: []string{"type", "text"}}
		isSingleChunk = isSingleChunk && len(texts) == 0 && chunk.Get("type").Text() == "text" && i.Rest() == nil
		texts = append(texts, chunk.Get("text").Text())
	}
	return strings.Join(texts, ""), isSingleChunk && len(texts) == 1
}

// readThinkingPart reads a part of type thinking of a content list.
func (c *chatReader) readThinkingPart(i rawjson.ObjectReader) {
	text, isSingleChunk := thinkingText(i.Get("thinking"))
	if isSingleChunk || !c.fromBody {
		i.Take("thinking")
	}
	const source = "content[].thinking"
	form := c.BlockForm().Form()
	if seal := i.TakeText("signature"); seal != "" {
		form.Seal = c.NewSeal(content.Signature, seal)
	}
	form.Extra = i.Rest()
	p := c.reasoning.current
	if c.fromBody || p == nil || p != c.Last || p.Block.(content.Reasoning).Source != source || !c.continueReasoning(p, &form) {
		p = c.addNewReasoningBlock(content.Reasoning{Wire: form.Wire(), Format: content.FormatMistral, Source: source})
		c.reasoning.current = p
	}
	c.AppendText(p, text)
}

// finishSecondaryReasoningFields runs at the end of the response. It ends the blocks of the fields that
// differ from the primary field. It lists the fields that repeat it in the extra of the first reasoning
// block, and keeps there the fields that are blank or have only the beginning of its text. Without
// reasoning blocks these fields are unknown fields.
func (c *chatReader) finishSecondaryReasoningFields() {
	c.beginDivergingFields(true)
	var same rawjson.Array
	var less rawjson.Object
	for _, x := range c.reasoning.secondary {
		switch text := x.text.String(); {
		case x.block != nil:
			if !c.fromBody {
				c.End(x.block)
			}
		case c.reasoning.primary != "" && text == string(c.reasoning.primaryText):
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
