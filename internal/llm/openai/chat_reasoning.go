package openai

import (
	"slices"
	"strings"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
)

// chatMinds is the reasoning that comes in fields of its own.
type chatMinds struct {
	parts   []*wire.BlockBuilder
	now     *wire.BlockBuilder // the thought in a plain field that more is added to
	details map[chatDetail]*wire.BlockBuilder

	// Of several fields the first that is not blank counts. The others mostly repeat
	// it; what differs is a block of its own.
	field  string // the one that counts; empty: none was seen that is not blank
	others []*chatOther
	said   []byte // what the field that counts said, once there are others
}

// detailsField stands for reasoning_details where that is the field that counts.
const detailsField = "reasoning_details"

// chatDetail is what tells the entries of reasoning_details apart in a stream:
// an entry and its seal may share an index.
type chatDetail struct {
	index int64
	kind  string
}

// chatOther is a plain field beside the one that counts.
type chatOther struct {
	field string
	text  strings.Builder
	words bool               // it is not blank
	seen  int                // so much of the text was looked at when it had to be complete
	same  int                // so much of the text is known to be what the field that counts says
	part  *wire.BlockBuilder // of a text that differs; nil: it does not so far
}

// think reads the reasoning of a message.
func (c *chatReader) think(m *chatMessage) error {
	for v := range m.details.Elements() {
		text, err := c.detail(v)
		if err != nil {
			return err
		}
		if text {
			c.minds.field = detailsField
		}
	}
	for i, field := range chatFields {
		if v := m.plain[i]; !rawjson.IsEmpty(v) {
			if err := c.thinkIn(field, v.Text()); err != nil {
				return err
			}
		}
	}
	answered := !rawjson.IsEmpty(m.content) || !rawjson.IsEmpty(m.refusal) || !rawjson.IsEmpty(m.calls) || !rawjson.IsEmpty(m.call)
	if err := c.compare(answered); err != nil {
		return err
	}
	return c.opaque(m.opaque)
}

// thinkIn adds to the reasoning in a plain field.
func (c *chatReader) thinkIn(field, text string) error {
	if field == c.minds.field {
		return c.plainThought(field, text)
	}
	other := c.other(field)
	other.text.WriteString(text)
	other.words = other.words || strings.TrimSpace(text) != ""
	if c.minds.field == "" && other.words {
		c.minds.field = field
		c.minds.others = slices.DeleteFunc(c.minds.others, func(x *chatOther) bool { return x == other })
		return c.plainThought(field, other.text.String())
	}
	if other.part != nil {
		c.AppendText(other.part, text)
	}
	return nil
}

// other is a plain field that does not count, or not yet.
func (c *chatReader) other(field string) *chatOther {
	for _, x := range c.minds.others {
		if x.field == field {
			return x
		}
	}
	x := &chatOther{field: field}
	if c.minds.others = append(c.minds.others, x); c.minds.said == nil {
		for _, p := range c.minds.parts {
			c.minds.said = append(c.minds.said, strings.Join(p.Text, "")...)
		}
	}
	return x
}

// muse adds to the reasoning that counts.
func (c *chatReader) muse(p *wire.BlockBuilder, text string) {
	if c.minds.others != nil {
		c.minds.said = append(c.minds.said, text...)
	}
	c.AppendText(p, text)
}

// compare begins a block for each other field that says something else than the one
// that counts. While one of the two may still catch up with the other, that is not
// known; answered tells that the reasoning before the answer is over.
func (c *chatReader) compare(answered bool) error {
	if c.minds.field == "" {
		return nil
	}
	for _, x := range c.minds.others {
		if x.part != nil || !x.differs(c.minds.said, answered) {
			continue
		}
		b := content.Reasoning{Wire: c.BlockForm(), Format: content.FormatParsed, Source: x.field}
		b.SetExtra(rawjson.WithMember(nil, chatBeside, rawjson.Value("true")))
		last := c.Last // which goes on
		var err error
		if x.part, err = c.Begin(b); err != nil {
			return err
		}
		c.Last = last
		c.AppendText(x.part, x.text.String())
	}
	return nil
}

// differs reports whether the text of a field is not the beginning of what the field
// that counts said; when nothing more comes, also whether it goes on after that.
func (x *chatOther) differs(said []byte, complete bool) bool {
	text := x.text.String()
	if !x.words {
		return false
	}
	from, to := x.same, min(len(text), len(said))
	x.same = to
	if from < to && text[from:to] != string(said[from:to]) {
		return true
	}
	complete = complete && x.seen < len(text) // once is enough, however long the answer is
	if complete {
		x.seen = len(text)
	}
	return complete && strings.TrimSpace(text[to:]) != ""
}

// mind begins a thought.
func (c *chatReader) mind(b content.Reasoning) (*wire.BlockBuilder, error) {
	p, err := c.start(b)
	if err == nil {
		c.minds.parts = append(c.minds.parts, p)
	}
	return p, err
}

// plainThought adds to the thought in a plain field. After anything else it is
// another thought.
func (c *chatReader) plainThought(field, text string) (err error) {
	p := c.minds.now
	if p == nil || p != c.Last || p.Block.(content.Reasoning).Source != field {
		if p, err = c.mind(content.Reasoning{Wire: c.BlockForm(), Format: content.FormatParsed, Source: field}); err != nil {
			return err
		}
		c.minds.now = p
	}
	c.muse(p, text)
	return nil
}

// detail reads an entry of reasoning_details and tells whether it has words. In a
// stream the pieces of an entry share an index and a type; a sealed one comes
// whole.
func (c *chatReader) detail(v rawjson.Value) (said bool, err error) {
	if v.Kind() != rawjson.KindObject {
		return false, nil
	}
	i := rawjson.ObjectReader{Value: v}
	kind := i.TakeText("type")
	form := c.BlockForm().Form()
	form.Type, form.ID = kind, i.TakeText("id")
	text := i.TakeText(detailField(kind))
	if data := i.TakeText("data"); data != "" {
		form.Seal = c.NewSeal(content.Encrypted, data)
	} else if data := i.TakeText("signature"); data != "" {
		form.Seal = c.NewSeal(content.Signature, data)
	}
	form.Extra = i.Rest()
	key := chatDetail{index: -1, kind: kind}
	if n, ok := v.Get("index").Int(); ok {
		key.index = n
	}
	p := c.minds.details[key]
	if p == nil || c.once || form.Seal.Type == content.Encrypted || !c.moreOf(p, &form) {
		b := content.Reasoning{Wire: form.Wire(), Format: content.FormatDetails, Source: "reasoning_details[" + kind + "]"}
		if p, err = c.mind(b); err != nil {
			return false, err
		}
		if c.minds.details == nil {
			c.minds.details = map[chatDetail]*wire.BlockBuilder{}
		}
		c.minds.details[key] = p
	}
	c.muse(p, text)
	if form.Seal.Data != "" && !c.once {
		c.End(p) // a seal comes last
	}
	return text != "", nil
}

// moreOf adds what a later piece of an entry brings, its words apart. It tells
// whether it is one.
func (c *chatReader) moreOf(p *wire.BlockBuilder, more *content.Form) bool {
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
		if was := rawjson.Value(form.Extra).Get(key); rawjson.IsEmpty(was) {
			form.Extra = rawjson.WithMember(form.Extra, key, v)
		}
	}
	b.Wire = form.Wire()
	p.Block = b
	c.MarkChanged(p)
	return true
}

// detailField is where an entry of reasoning_details has its words.
func detailField(kind string) string {
	if kind == "reasoning.summary" {
		return "summary"
	}
	return "text"
}

// opaque reads a seal that belongs to the thoughts before it, wherever it comes.
func (c *chatReader) opaque(v rawjson.Value) error {
	if rawjson.IsEmpty(v) {
		return nil
	}
	seal := c.NewSeal(content.Opaque, v.Text())
	if n := len(c.minds.parts); n > 0 {
		p := c.minds.parts[n-1]
		if b := p.Block.(content.Reasoning); b.Format == content.FormatParsed && (b.Form().Seal.IsZero() || b.Form().Seal == seal) {
			b.SetSeal(seal)
			p.Block = b
			c.MarkChanged(p)
			return nil
		}
	}
	return c.alone(seal, "reasoning_opaque")
}

// alone puts out a seal that has no thought to lie on.
func (c *chatReader) alone(seal content.Seal, source string) error {
	b := content.Reasoning{Wire: c.BlockForm(), Format: content.FormatParsed, Source: source}
	b.SetSeal(seal)
	p, err := c.mind(b)
	if err == nil && !c.once {
		c.End(p)
	}
	return err
}

// thinkWords is the words of a thinking part: a string, or a list of chunks. plain
// tells that they are all that one chunk has.
func thinkWords(v rawjson.Value) (text string, plain bool) {
	if v.Kind() == rawjson.KindString {
		return v.Text(), false
	}
	var words []string
	plain = true
	for chunk := range v.Elements() {
		i := rawjson.ObjectReader{Value: chunk, Taken: []string{"type", "text"}}
		plain = plain && len(words) == 0 && chunk.Get("type").Text() == "text" && i.Rest() == nil
		words = append(words, chunk.Get("text").Text())
	}
	return strings.Join(words, ""), plain && len(words) == 1
}

// thinkPart reads a thinking part of a content that is a list.
func (c *chatReader) thinkPart(i rawjson.ObjectReader) error {
	text, plain := thinkWords(i.Get("thinking"))
	if plain || !c.once {
		i.Take("thinking")
	}
	const source = "content[].thinking"
	form := c.BlockForm().Form()
	if seal := i.TakeText("signature"); seal != "" {
		form.Seal = c.NewSeal(content.Signature, seal)
	}
	form.Extra = i.Rest()
	p := c.minds.now
	if c.once || p == nil || p != c.Last || p.Block.(content.Reasoning).Source != source || !c.moreOf(p, &form) {
		b := content.Reasoning{Wire: form.Wire(), Format: content.FormatMistral, Source: source}
		var err error
		if p, err = c.mind(b); err != nil {
			return err
		}
		c.minds.now = p
	}
	c.AppendText(p, text)
	return nil
}

// endMinds notes with the first thought which fields repeat it, and those that say
// less: nothing, or only its beginning.
func (c *chatReader) endMinds() {
	if c.compare(true) != nil {
		return // too many blocks: what was held back is lost with the rest
	}
	var same rawjson.Array
	var less rawjson.Object
	for _, x := range c.minds.others {
		switch text := x.text.String(); {
		case x.part != nil:
			if !c.once {
				c.End(x.part)
			}
		case c.minds.field != "" && text == string(c.minds.said):
			same.AddString(x.field)
		default:
			less.SetString(x.field, text)
		}
	}
	if len(c.minds.parts) == 0 {
		for key, v := range less.Bytes().Members() {
			c.rest.Set(key, v)
		}
		return
	}
	first := c.minds.parts[0]
	first.AddExtra(chatCopies, same.Bytes())
	first.AddExtra(chatOfMessage, less.Bytes())
	c.MarkChanged(first)
}
