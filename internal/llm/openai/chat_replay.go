package openai

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
)

// replayChat writes the assistant message that stands for one response. native
// asks for thoughts of others in the server's own form, where it has one.
func replayChat(t wire.Target, blocks []content.Block, native bool) rawjson.Value {
	m := chatTurn{Target: t, native: native, plain: map[string][]string{}}
	for _, b := range blocks {
		switch b := b.(type) {
		case content.Text:
			m.text(b)
		case content.Reasoning:
			m.think(b)
		case content.ToolCall:
			m.call(b)
		case content.ToolResult:
			m.answered(b)
		case content.Native:
			m.known(b)
		}
		if t.Owns(b) {
			m.rest(rawjson.Value(b.Form().Extra).Get(chatOfMessage))
		}
	}
	return rawjson.ValidUTF8(m.message())
}

// chatTurn gathers the blocks of one response into a message.
type chatTurn struct {
	wire.Target
	native bool

	words   []string        // the content, unless it is a list
	parts   []rawjson.Value // the content as a list
	listed  bool            // it has to be one
	refusal string
	plain   map[string][]string // plain fields of thoughts
	details rawjson.Array
	said    []string // all thoughts, as the fields that repeat them say it
	copies  []string // those fields
	opaque  string
	google  string // Google's seal on the message
	calls   rawjson.Array
	legacy  rawjson.Value
	runs    []rawjson.Object // tools that the server ran
	runIDs  []string
	more    rawjson.Object // members of the message that are no block
}

// rest takes members of the message that a block brought along.
func (m *chatTurn) rest(v rawjson.Value) {
	for key, member := range v.Members() {
		if !m.Quirks.Strict || key == "content" || key == "refusal" && m.Quirks.RefusalField {
			m.more.Set(key, member)
		}
	}
}

// message puts it together; nil when there is nothing to say.
func (m *chatTurn) message() rawjson.Value {
	var fields, o rawjson.Object
	m.thoughts(&fields)
	m.called(&fields)
	fields.SetNonEmpty("refusal", m.refusal)
	if m.google != "" {
		fields.Set("extra_content", googled(m.more.Bytes().Get("extra_content"), m.google))
	}
	o.SetString("role", "assistant")
	left := m.more.Bytes().Get("content")
	switch {
	case m.listed:
		var list rawjson.Array
		for _, part := range m.parts {
			list.Add(part)
		}
		o.Set("content", list.Bytes())
	case len(m.words) > 0:
		o.SetString("content", strings.Join(m.words, "")+left.Text())
	case left != nil:
		o.Set("content", left)
	case fields.Bytes().Get("tool_calls") != nil || m.legacy != nil: // then none is needed
	case !rawjson.IsEmpty(fields.Bytes()) || rawjson.HasContent(m.more.Bytes()):
		o.SetString("content", "")
	}
	o.Merge(fields.Bytes())
	o.Merge(m.more.Bytes())
	if !rawjson.HasContent(rawjson.Without(o.Bytes(), "role")) {
		return nil
	}
	return o.Bytes()
}

// thoughts writes the fields for thoughts. A vendor that demands them back reads
// one field, whichever they came in.
func (m *chatTurn) thoughts(o *rawjson.Object) {
	if own := chatFields[0]; m.ownField() && m.plain[own] == nil {
		for _, field := range chatFields {
			if text := m.plain[field]; text != nil {
				m.plain[own] = text
				delete(m.plain, field)
				break
			}
		}
	}
	for _, field := range chatFields {
		if text := m.plain[field]; text != nil {
			o.SetString(field, strings.Join(text, ""))
		}
	}
	o.Set("reasoning_details", rawjson.NonEmpty(m.details.Bytes()))
	for _, field := range m.copies {
		if said := strings.Join(m.said, ""); said != "" && o.Bytes().Get(field) == nil {
			o.SetString(field, said)
		}
	}
	o.SetNonEmpty("reasoning_opaque", m.opaque)
}

// ownField reports whether the server is that of the vendor of models that demand
// their reasoning back in its own field.
func (m *chatTurn) ownField() bool {
	return slices.ContainsFunc(wire.ReplayRules, func(r wire.ReplayRule) bool { return r.Vendor == m.Vendor() })
}

// called writes the fields for calls.
func (m *chatTurn) called(o *rawjson.Object) {
	o.Set("tool_calls", rawjson.NonEmpty(m.calls.Bytes()))
	o.Set("function_call", m.legacy)
	var runs rawjson.Array
	for i := range m.runs {
		runs.Add(m.runs[i].Bytes())
	}
	o.Set("executed_tools", rawjson.NonEmpty(runs.Bytes()))
}

// text adds to the content.
func (m *chatTurn) text(b content.Text) {
	if b.Kind() == content.KindNote {
		return
	}
	own := m.Owns(b)
	if own && b.Form().Type == chatRefusal && (m.Quirks.RefusalField || !m.Quirks.Strict) {
		m.refusal += b.Text
		return
	}
	extra := rawjson.Value(b.Form().Extra)
	o := rawjson.NewObject("type", "text", "text", b.Text)
	if own && b.Form().Type == "text" {
		m.listed = true
		o.Merge(rawjson.Without(extra, chatOfMessage, wire.ExtraBefore))
	}
	m.parts = append(m.parts, bytes.Clone(o.Bytes()))
	if own {
		m.words = append(m.words, extra.Get(wire.ExtraBefore).Text())
	}
	m.words = append(m.words, b.Text)
	if own && m.CanOpen(b.Form().Seal) && !m.Quirks.Strict {
		m.google = b.Form().Seal.Data
	}
}

// think adds a thought: in the form it came in where the server knows that, with
// its seal where that opens, or as plain words where the server takes those.
func (m *chatTurn) think(r content.Reasoning) {
	form := r.Form()
	w, own := m.Quirks, m.Owns(r)
	foreign := form.Seal.Data != "" && !m.CanOpen(form.Seal)
	open := !w.Strict && !w.NoReasoningField
	if own && r.Format != content.FormatThinkTags {
		m.repeated(r, open)
	}
	switch {
	case own && r.Format == content.FormatThinkTags && !m.ownField():
		if !foreign && open && form.Seal.Data != "" {
			m.google = form.Seal.Data
		}
		m.tagged(r)
	case own && !foreign && r.Format == content.FormatMistral && (w.ThinkingParts || open && !w.PlainReasoning && !w.ReasoningDetails):
		m.chunk(r)
	case own && !foreign && r.Format == content.FormatDetails && open && (!w.PlainReasoning || form.Seal.Data != ""):
		m.detail(r)
	case m.native && w.ThinkingParts && r.String() != "":
		m.chunk(content.Reasoning{Text: r.String()})
	case m.native && w.ReasoningDetails && r.String() != "":
		m.detail(content.Reasoning{Wire: content.Form{Type: "reasoning.text"}.Wire(), Text: r.String()})
	default:
		if own && !foreign && open && r.Source == "extra_content" {
			m.google = form.Seal.Data
		} else if own && !foreign && open && form.Seal.Type == content.Opaque {
			m.opaque = form.Seal.Data
		}
		m.plainThought(r, own)
	}
}

// repeated notes the fields that say a thought again. One whose server takes no
// open thoughts knows its own field only.
func (m *chatTurn) repeated(r content.Reasoning, open bool) {
	if rawjson.Value(r.Form().Extra).Get(chatBeside) != nil {
		return // it says something else
	}
	m.said = append(m.said, r.String())
	for field := range rawjson.Value(r.Form().Extra).Get(chatCopies).Elements() {
		if name := field.Text(); open || name == m.Quirks.ReasoningField {
			m.copies = append(m.copies, name)
		}
	}
}

// tagged adds a thought between its tags to the content.
func (m *chatTurn) tagged(r content.Reasoning) {
	text := r.Open + r.Text + r.Close
	m.words = append(m.words, text)
	m.parts = append(m.parts, rawjson.NewObject("type", "text", "text", text).Bytes())
}

// plainThought adds a thought to a plain field.
func (m *chatTurn) plainThought(r content.Reasoning, own bool) {
	w, text := m.Quirks, r.String()
	if text == "" || w.NoReasoningField {
		return
	}
	field := cmp.Or(w.ReasoningField, chatFields[0])
	if !w.Strict && slices.Contains(chatFields, r.Source) {
		field = r.Source
	}
	if m.plain[field] != nil && !own {
		text = "\n\n" + text
	}
	m.plain[field] = append(m.plain[field], text)
}

// chunk adds a thought as a part of the content.
func (m *chatTurn) chunk(r content.Reasoning) {
	m.listed = true
	var o, part rawjson.Object
	var list rawjson.Array
	o.SetString("type", "thinking")
	part.SetString("type", "text")
	part.SetString("text", r.Text)
	list.Add(part.Bytes())
	if extra := rawjson.Value(r.Form().Extra); extra.Get("thinking") != nil {
		o.Set("thinking", extra.Get("thinking"))
	} else {
		o.Set("thinking", list.Bytes())
	}
	o.SetNonEmpty("signature", r.Form().Seal.Data)
	o.Merge(rawjson.Without(r.Form().Extra, chatOfMessage, chatCopies))
	m.parts = append(m.parts, bytes.Clone(o.Bytes()))
}

// detail adds a thought as an entry of reasoning_details.
func (m *chatTurn) detail(r content.Reasoning) {
	form := r.Form()
	var o rawjson.Object
	for _, member := range []struct{ key, value string }{{"type", form.Type}, {"id", form.ID}, {detailField(form.Type), r.Text}} {
		if member.value != "" {
			o.SetString(member.key, member.value)
		}
	}
	switch {
	case form.Seal.Data == "":
	case form.Seal.Type == content.Encrypted:
		o.SetString("data", form.Seal.Data)
	default:
		o.SetString("signature", form.Seal.Data)
	}
	o.Merge(rawjson.Without(form.Extra, chatOfMessage, chatCopies))
	m.details.Add(o.Bytes())
}

// known adds an item of this dialect that was kept as it came.
func (m *chatTurn) known(b content.Native) {
	v, err := rawjson.Parse([]byte(b.JSON))
	if err != nil || !m.Owns(b) {
		return
	}
	w := m.Quirks
	switch {
	case b.Form().Type == chatWhole:
		m.rest(v)
	case strings.HasPrefix(b.Form().Type, chatPart) && (w.ThinkingParts || !w.Strict):
		m.listed = true
		m.parts = append(m.parts, v)
	case b.Form().Type == "audio" && w.RefusalField: // OpenAI wants it named, not sent
		var o rawjson.Object
		if o.Set("id", v.Get("id")); !rawjson.IsEmpty(o.Bytes()) {
			m.more.Set(b.Form().Type, o.Bytes())
		}
	case w.Strict:
	case strings.HasPrefix(b.Form().Type, chatNativeCall):
		m.calls.Add(v)
	default:
		m.more.Set(b.Form().Type, v)
	}
}

// googled is an extra_content with Google's seal in it.
func googled(v rawjson.Value, seal string) rawjson.Value {
	var o, google rawjson.Object
	google.SetString("thought_signature", seal)
	google.Merge(v.Get("google"))
	o.Set("google", google.Bytes())
	return o.Merge(v).Bytes()
}
