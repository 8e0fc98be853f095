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

// encodeAssistantMessage returns the message for the blocks of one response. If convertForeignReasoning is
// true, reasoning of other models is written in the server's own form, where it has one.
func encodeAssistantMessage(t wire.Target, blocks []content.Block, convertForeignReasoning bool) rawjson.Value {
	m := chatMessageEncoder{Target: t, convertForeignReasoning: convertForeignReasoning, plainReasoning: map[string][]string{}}
	for _, b := range blocks {
		switch b := b.(type) {
		case content.Text:
			m.addText(b)
		case content.Reasoning:
			m.addReasoning(b)
		case content.ToolCall:
			m.addCall(b)
		case content.ToolResult:
			m.addServerResult(b)
		case content.Native:
			m.addNative(b)
		}
		if t.Owns(b) {
			m.addUnknownFields(rawjson.Value(b.Form().Extra).Get(extraMessage))
		}
	}
	return m.encode()
}

// chatMessageEncoder encodes the blocks of one response as a message.
type chatMessageEncoder struct {
	wire.Target
	convertForeignReasoning bool // reasoning of other models takes the server's own form, where it has one

	text           []string        // the content, unless it is a list
	parts          []rawjson.Value // the content as a list
	isList         bool            // the content must be a list
	refusal        string
	plainReasoning map[string][]string // by field
	details        rawjson.Array
	allReasoning   []string // the text for copyFields
	copyFields     []string // fields that repeat the reasoning
	opaque         string
	googleSeal     string // Google's seal on the message
	calls          rawjson.Array
	functionCall   rawjson.Value
	serverTools    []rawjson.Object // tools that the server ran
	serverToolIDs  []string
	unknown        rawjson.Object // members of the message that have no block
}

// addUnknownFields adds the members of v, which a block kept. A strict server gets only the
// members that it knows.
func (m *chatMessageEncoder) addUnknownFields(v rawjson.Value) {
	for key, member := range v.Members() {
		if !m.Quirks.Strict || key == "content" || key == "refusal" && m.Quirks.RefusalField {
			m.unknown.Set(key, member)
		}
	}
}

// encode returns the message; nil when it would be empty.
func (m *chatMessageEncoder) encode() rawjson.Value {
	var fields, o rawjson.Object
	m.setReasoningFields(&fields)
	m.setCallFields(&fields)
	fields.SetNonEmpty("refusal", m.refusal)
	if m.googleSeal != "" {
		fields.Set("extra_content", withGoogleSeal(m.unknown.Bytes().Get("extra_content"), m.googleSeal))
	}
	o.SetString("role", "assistant")
	rest := m.unknown.Bytes().Get("content")
	switch {
	case m.isList:
		o.Set("content", rawjson.ArrayOf(m.parts...))
	case len(m.text) > 0:
		o.SetString("content", strings.Join(m.text, "")+rest.Text())
	case rest != nil:
		o.Set("content", rest)
	case fields.Bytes().Get("tool_calls") != nil || m.functionCall != nil: // a message with calls needs no content
	case !rawjson.IsEmpty(fields.Bytes()) || rawjson.HasContent(m.unknown.Bytes()):
		o.SetString("content", "")
	}
	o.Merge(fields.Bytes())
	o.Merge(m.unknown.Bytes())
	if !rawjson.HasContent(rawjson.Without(o.Bytes(), "role")) {
		return nil
	}
	return o.Bytes()
}

// setReasoningFields sets the reasoning fields of message o. A vendor that requires reasoning reads
// one field only, so reasoning that came in another field moves there.
func (m *chatMessageEncoder) setReasoningFields(o *rawjson.Object) {
	if required := reasoningFields[0]; m.vendorRequiresReasoningContent() && m.plainReasoning[required] == nil {
		for _, field := range reasoningFields {
			if text := m.plainReasoning[field]; text != nil {
				m.plainReasoning[required] = text
				delete(m.plainReasoning, field)
				break
			}
		}
	}
	for _, field := range reasoningFields {
		if text := m.plainReasoning[field]; text != nil {
			o.SetString(field, strings.Join(text, ""))
		}
	}
	o.Set("reasoning_details", rawjson.NonEmpty(m.details.Bytes()))
	for _, field := range m.copyFields {
		if text := strings.Join(m.allReasoning, ""); text != "" && o.Bytes().Get(field) == nil {
			o.SetString(field, text)
		}
	}
	o.SetNonEmpty("reasoning_opaque", m.opaque)
}

// vendorRequiresReasoningContent reports whether the server's vendor requires reasoning, which it
// reads in reasoning_content only.
func (m *chatMessageEncoder) vendorRequiresReasoningContent() bool {
	return slices.ContainsFunc(wire.ReplayRules, func(r wire.ReplayRule) bool { return r.Vendor == m.Vendor() })
}

// setCallFields sets the fields of message o for calls and server tools.
func (m *chatMessageEncoder) setCallFields(o *rawjson.Object) {
	o.Set("tool_calls", rawjson.NonEmpty(m.calls.Bytes()))
	o.Set("function_call", m.functionCall)
	var runs rawjson.Array
	for i := range m.serverTools {
		runs.Add(m.serverTools[i].Bytes())
	}
	o.Set("executed_tools", rawjson.NonEmpty(runs.Bytes()))
}

// addText adds text to the content or to the refusal.
func (m *chatMessageEncoder) addText(b content.Text) {
	own := m.Owns(b)
	if own && b.Form().Type == typeRefusal && (m.Quirks.RefusalField || !m.Quirks.Strict) {
		m.refusal += b.Text
		return
	}
	extra := rawjson.Value(b.Form().Extra)
	o := rawjson.NewObject("type", "text", "text", b.Text)
	if own && b.Form().Type == "text" {
		m.isList = true
		o.Merge(rawjson.Without(extra, extraMessage, wire.ExtraBefore))
	}
	m.parts = append(m.parts, bytes.Clone(o.Bytes()))
	if own {
		m.text = append(m.text, extra.Get(wire.ExtraBefore).Text())
	}
	m.text = append(m.text, b.Text)
	if own && m.CanOpen(b.Form().Seal) && !m.Quirks.Strict {
		m.googleSeal = b.Form().Seal.Data
	}
}

// addReasoning adds reasoning in its original form if the server knows that form, with its
// seal if the model can open it; otherwise as plain text if the server accepts that.
func (m *chatMessageEncoder) addReasoning(r content.Reasoning) {
	form := r.Form()
	w, own := m.Quirks, m.Owns(r)
	isForeign := form.Seal.Data != "" && !m.CanOpen(form.Seal)
	open := !w.Strict && !w.NoReasoningField
	if own && r.Format != content.FormatThinkTags {
		m.noteCopyFields(r, open)
	}
	switch {
	case own && r.Format == content.FormatThinkTags && !m.vendorRequiresReasoningContent():
		if !isForeign && open && form.Seal.Data != "" {
			m.googleSeal = form.Seal.Data
		}
		m.addTaggedReasoning(r)
	case own && !isForeign && r.Format == content.FormatMistral && (w.ThinkingParts || open && !w.PlainReasoning && !w.ReasoningDetails):
		m.addThinkingPart(r)
	case own && !isForeign && r.Format == content.FormatDetails && open && (!w.PlainReasoning || form.Seal.Data != ""):
		m.addReasoningDetail(r)
	case m.convertForeignReasoning && w.ThinkingParts && r.String() != "":
		m.addThinkingPart(content.Reasoning{Text: r.String()})
	case m.convertForeignReasoning && w.ReasoningDetails && r.String() != "":
		m.addReasoningDetail(content.Reasoning{Wire: content.Form{Type: "reasoning.text"}.Wire(), Text: r.String()})
	default:
		if own && !isForeign && open && r.Source == "extra_content" {
			m.googleSeal = form.Seal.Data
		} else if own && !isForeign && open && form.Seal.Type == content.Opaque {
			m.opaque = form.Seal.Data
		}
		m.addPlainReasoning(r)
	}
}

// noteCopyFields records the fields that repeat the reasoning. Unless the server knows any field, only
// its own one is recorded.
func (m *chatMessageEncoder) noteCopyFields(r content.Reasoning, serverKnowsAnyField bool) {
	if rawjson.Value(r.Form().Extra).Get(extraDiffers) != nil {
		return // the text differs from the primary field
	}
	m.allReasoning = append(m.allReasoning, r.String())
	for field := range rawjson.Value(r.Form().Extra).Get(extraCopies).Elements() {
		if name := field.Text(); serverKnowsAnyField || name == m.Quirks.ReasoningField {
			m.copyFields = append(m.copyFields, name)
		}
	}
}

// addTaggedReasoning adds reasoning and its think tags to the content.
func (m *chatMessageEncoder) addTaggedReasoning(r content.Reasoning) {
	text := r.Open + r.Text + r.Close
	m.text = append(m.text, text)
	m.parts = append(m.parts, rawjson.NewObject("type", "text", "text", text).Bytes())
}

// addPlainReasoning adds reasoning to a plain field, if the server has one. A blank line separates
// reasoning of another dialect from the text before it.
func (m *chatMessageEncoder) addPlainReasoning(r content.Reasoning) {
	w, text := m.Quirks, r.String()
	if text == "" || w.NoReasoningField {
		return
	}
	field := cmp.Or(w.ReasoningField, reasoningFields[0])
	if !w.Strict && slices.Contains(reasoningFields, r.Source) {
		field = r.Source
	}
	if m.plainReasoning[field] != nil && !m.Owns(r) {
		text = "\n\n" + text
	}
	m.plainReasoning[field] = append(m.plainReasoning[field], text)
}

// addThinkingPart adds reasoning as a part of the content.
func (m *chatMessageEncoder) addThinkingPart(r content.Reasoning) {
	m.isList = true
	o := rawjson.NewObject("type", "thinking", "thinking", rawjson.ArrayOf(rawjson.NewObject("type", "text", "text", r.Text).Bytes()))
	o.Set("thinking", rawjson.Value(r.Form().Extra).Get("thinking")) // if it is more than one text
	o.SetNonEmpty("signature", r.Form().Seal.Data)
	o.Merge(rawjson.Without(r.Form().Extra, extraMessage, extraCopies))
	m.parts = append(m.parts, bytes.Clone(o.Bytes()))
}

// addReasoningDetail adds reasoning as an entry of reasoning_details.
func (m *chatMessageEncoder) addReasoningDetail(r content.Reasoning) {
	form := r.Form()
	var o rawjson.Object
	o.SetNonEmpty("type", form.Type)
	o.SetNonEmpty("id", form.ID)
	o.SetNonEmpty(detailTextField(form.Type), r.Text)
	if form.Seal.Type == content.Encrypted {
		o.SetNonEmpty("data", form.Seal.Data)
	} else {
		o.SetNonEmpty("signature", form.Seal.Data)
	}
	o.Merge(rawjson.Without(form.Extra, extraMessage, extraCopies))
	m.details.Add(o.Bytes())
}

// addNative adds a native block of this dialect.
func (m *chatMessageEncoder) addNative(b content.Native) {
	v, w := m.NativeJSON(b), m.Quirks
	switch {
	case v == nil:
	case b.Form().Type == typeMessage:
		m.addUnknownFields(v)
	case strings.HasPrefix(b.Form().Type, typeContentPart) && (w.ThinkingParts || !w.Strict):
		m.isList = true
		m.parts = append(m.parts, v)
	case b.Form().Type == "audio" && w.RefusalField: // OpenAI accepts only the id of the audio
		var o rawjson.Object
		if o.Set("id", v.Get("id")); !rawjson.IsEmpty(o.Bytes()) {
			m.unknown.Set(b.Form().Type, o.Bytes())
		}
	case w.Strict:
	case strings.HasPrefix(b.Form().Type, typeNativeCall):
		m.calls.Add(v)
	default:
		m.unknown.Set(b.Form().Type, v)
	}
}

// withGoogleSeal returns extraContent, the value of extra_content, with Google's seal added.
func withGoogleSeal(extraContent rawjson.Value, seal string) rawjson.Value {
	google := rawjson.NewObject("thought_signature", seal).Merge(extraContent.Get("google"))
	return rawjson.NewObject("google", google).Merge(extraContent).Bytes()
}
