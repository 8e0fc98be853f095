package providers

import (
	"slices"
	"strings"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/llm/rawjson"
)

// chatMinds is the thoughts that come in fields of their own.
type chatMinds struct {
	parts   []*part
	now     *part // the thought in a plain field that more is added to
	details map[chatDetail]*part
	copies  []*chatCopy
}

// chatDetail is what tells the entries of reasoning_details apart in a stream:
// an entry and its seal may share an index.
type chatDetail struct {
	index int64
	kind  string
}

// chatCopy is a field that came beside the thoughts that count.
type chatCopy struct {
	field string
	text  []string
}

// think reads the thoughts of a message.
func (c *chat) think(m *chatMessage) error {
	said := false
	for v := range m.details.Elements() {
		text, err := c.detail(v)
		if err != nil {
			return err
		}
		said = said || text
	}
	for i, field := range chatFields {
		v := m.plain[i]
		switch {
		case hollow(v):
		case said:
			c.copied(field, v.Text())
		default:
			if err := c.plainThought(field, v.Text()); err != nil {
				return err
			}
			said = true
		}
	}
	return c.opaque(m.opaque)
}

// mind begins a thought.
func (c *chat) mind(b content.Reasoning) (*part, error) {
	p, err := c.start(b)
	if err == nil {
		c.minds.parts = append(c.minds.parts, p)
	}
	return p, err
}

// plainThought adds to the thought in a plain field. After anything else it is
// another thought.
func (c *chat) plainThought(field, text string) (err error) {
	p := c.minds.now
	if p == nil || p != c.last || p.block.(content.Reasoning).Source != field {
		if p, err = c.mind(content.Reasoning{Wire: c.form(), Format: content.FormatParsed, Source: field}); err != nil {
			return err
		}
		c.minds.now = p
	}
	c.say(p, text)
	return nil
}

// copied notes what a field says beside the thoughts that count.
func (c *chat) copied(field, text string) {
	i := slices.IndexFunc(c.minds.copies, func(x *chatCopy) bool { return x.field == field })
	if i < 0 {
		i = len(c.minds.copies)
		c.minds.copies = append(c.minds.copies, &chatCopy{field: field})
	}
	c.minds.copies[i].text = append(c.minds.copies[i].text, text)
}

// detail reads an entry of reasoning_details and tells whether it has words. In a
// stream the pieces of an entry share an index and a type; a sealed one comes
// whole.
func (c *chat) detail(v rawjson.Value) (said bool, err error) {
	if v.Kind() != rawjson.KindObject {
		return false, nil
	}
	i := item{Value: v}
	kind := i.text("type")
	form := c.form().Form()
	form.Type, form.ID = kind, i.text("id")
	text := i.text(detailField(kind))
	if data := i.text("data"); data != "" {
		form.Seal = c.minted(content.Encrypted, data)
	} else if data := i.text("signature"); data != "" {
		form.Seal = c.minted(content.Signature, data)
	}
	form.Extra = i.rest()
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
			c.minds.details = map[chatDetail]*part{}
		}
		c.minds.details[key] = p
	}
	c.say(p, text)
	if form.Seal.Data != "" && !c.once {
		c.done(p) // a seal comes last
	}
	return text != "", nil
}

// moreOf adds what a later piece of an entry brings, its words apart. It tells
// whether it is one.
func (c *chat) moreOf(p *part, more *content.Form) bool {
	b := p.block.(content.Reasoning)
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
		if was := rawjson.Value(form.Extra).Get(key); hollow(was) {
			form.Extra = extended(form.Extra, key, v)
		}
	}
	b.Wire = form.Wire()
	p.block = b
	c.changed(p)
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
func (c *chat) opaque(v rawjson.Value) error {
	if hollow(v) {
		return nil
	}
	seal := c.minted(content.Opaque, v.Text())
	if n := len(c.minds.parts); n > 0 {
		p := c.minds.parts[n-1]
		if b := p.block.(content.Reasoning); b.Format == content.FormatParsed && (b.Form().Seal.IsZero() || b.Form().Seal == seal) {
			b.SetSeal(seal)
			p.block = b
			c.changed(p)
			return nil
		}
	}
	return c.alone(seal, "reasoning_opaque")
}

// alone puts out a seal that has no thought to lie on.
func (c *chat) alone(seal content.Seal, source string) error {
	b := content.Reasoning{Wire: c.form(), Format: content.FormatParsed, Source: source}
	b.SetSeal(seal)
	p, err := c.mind(b)
	if err == nil && !c.once {
		c.done(p)
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
		i := item{Value: chunk, taken: []string{"type", "text"}}
		plain = plain && len(words) == 0 && chunk.Get("type").Text() == "text" && i.rest() == nil
		words = append(words, chunk.Get("text").Text())
	}
	return strings.Join(words, ""), plain && len(words) == 1
}

// thinkPart reads a thinking part of a content that is a list.
func (c *chat) thinkPart(i item) error {
	text, plain := thinkWords(i.Get("thinking"))
	if plain || !c.once {
		i.take("thinking")
	}
	const source = "content[].thinking"
	form := c.form().Form()
	if seal := i.text("signature"); seal != "" {
		form.Seal = c.minted(content.Signature, seal)
	}
	form.Extra = i.rest()
	p := c.minds.now
	if c.once || p == nil || p != c.last || p.block.(content.Reasoning).Source != source || !c.moreOf(p, &form) {
		b := content.Reasoning{Wire: form.Wire(), Format: content.FormatMistral, Source: source}
		var err error
		if p, err = c.mind(b); err != nil {
			return err
		}
		c.minds.now = p
	}
	c.say(p, text)
	return nil
}

// endMinds notes with the first thought which fields repeat it, and what they say
// when they do not.
func (c *chat) endMinds() {
	if len(c.minds.copies) == 0 {
		return
	}
	var texts []string
	for _, p := range c.minds.parts {
		texts = append(texts, p.text...)
	}
	all := strings.Join(texts, "")
	var same rawjson.Array
	var other rawjson.Object
	for _, x := range c.minds.copies {
		if text := strings.Join(x.text, ""); text == all {
			same.AddString(x.field)
		} else {
			other.SetString(x.field, text)
		}
	}
	first := c.minds.parts[0]
	first.extend(chatCopies, same.Bytes())
	first.extend(chatOfMessage, other.Bytes())
	c.changed(first)
}
