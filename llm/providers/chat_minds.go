package providers

import (
	"slices"
	"strings"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
)

// chatMinds is the reasoning that comes in fields of its own.
type chatMinds struct {
	parts   []*part
	now     *part // the thought in a plain field that more is added to
	details map[chatDetail]*part

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
	words bool  // it is not blank
	seen  int   // so much of the text was looked at when it had to be complete
	same  int   // so much of the text is known to be what the field that counts says
	part  *part // of a text that differs; nil: it does not so far
}

// think reads the reasoning of a message.
func (c *chat) think(m *chatMessage) error {
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
		if v := m.plain[i]; !hollow(v) {
			if err := c.thinkIn(field, v.Text()); err != nil {
				return err
			}
		}
	}
	answered := !hollow(m.content) || !hollow(m.refusal) || !hollow(m.calls) || !hollow(m.call)
	if err := c.compare(answered); err != nil {
		return err
	}
	return c.opaque(m.opaque)
}

// thinkIn adds to the reasoning in a plain field.
func (c *chat) thinkIn(field, text string) error {
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
		c.say(other.part, text)
	}
	return nil
}

// other is a plain field that does not count, or not yet.
func (c *chat) other(field string) *chatOther {
	for _, x := range c.minds.others {
		if x.field == field {
			return x
		}
	}
	x := &chatOther{field: field}
	if c.minds.others = append(c.minds.others, x); c.minds.said == nil {
		for _, p := range c.minds.parts {
			c.minds.said = append(c.minds.said, strings.Join(p.text, "")...)
		}
	}
	return x
}

// muse adds to the reasoning that counts.
func (c *chat) muse(p *part, text string) {
	if c.minds.others != nil {
		c.minds.said = append(c.minds.said, text...)
	}
	c.say(p, text)
}

// compare begins a block for each other field that says something else than the one
// that counts. While one of the two may still catch up with the other, that is not
// known; answered tells that the reasoning before the answer is over.
func (c *chat) compare(answered bool) error {
	if c.minds.field == "" {
		return nil
	}
	for _, x := range c.minds.others {
		if x.part != nil || !x.differs(c.minds.said, answered) {
			continue
		}
		b := content.Reasoning{Wire: c.form(), Format: content.FormatParsed, Source: x.field}
		b.SetExtra(extended(nil, chatBeside, rawjson.Value("true")))
		last := c.last // which goes on
		var err error
		if x.part, err = c.begin(b); err != nil {
			return err
		}
		c.last = last
		c.say(x.part, x.text.String())
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
	c.muse(p, text)
	return nil
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
	c.muse(p, text)
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

// endMinds notes with the first thought which fields repeat it, and those that say
// less: nothing, or only its beginning.
func (c *chat) endMinds() {
	if c.compare(true) != nil {
		return // too many blocks: what was held back is lost with the rest
	}
	var same rawjson.Array
	var less rawjson.Object
	for _, x := range c.minds.others {
		switch text := x.text.String(); {
		case x.part != nil:
			if !c.once {
				c.done(x.part)
			}
		case c.minds.field != "" && text == string(c.minds.said):
			same.AddString(x.field)
		default:
			less.SetString(x.field, text)
		}
	}
	if len(c.minds.parts) == 0 {
		for key, v := range less.Bytes().Members() {
			c.rest.set(key, v)
		}
		return
	}
	first := c.minds.parts[0]
	first.extend(chatCopies, same.Bytes())
	first.extend(chatOfMessage, less.Bytes())
	c.changed(first)
}
