package providers

import (
	"bytes"
	"strings"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
)

// messagesBlock is a content block that is being streamed.
type messagesBlock struct {
	*part
	input string          // a call's arguments as the start gave them
	cites []rawjson.Value // of a text
	grown growing         // members of a block that is not known
}

// blockStart reads the start of a content block. Most are empty, but any may be
// complete already.
func (m *messages) blockStart(v rawjson.Value) error {
	n, _ := v.Get("index").Int()
	m.blockStop(n)
	start := v.Get("content_block")
	if start.Kind() != rawjson.KindObject {
		return nil // deltas may tell what it is
	}
	block, call := m.block(start)
	b := &messagesBlock{}
	if c, ok := block.(content.ToolCall); ok && call {
		b.input, c.Arguments = c.Arguments, ""
		block = c
	}
	return m.enter(n, b, block)
}

// enter begins the block at an index of the wire.
func (m *messages) enter(n int64, b *messagesBlock, block content.Block) (err error) {
	if b.part, err = m.follow(block); err == nil {
		m.blocks[n] = b
	}
	return err
}

// blockDelta reads more of a block. What is not known, and what does not belong
// to the block, is passed over.
func (m *messages) blockDelta(v rawjson.Value) error {
	n, _ := v.Get("index").Int()
	d := v.Get("delta")
	b := m.blocks[n]
	if b == nil {
		b = &messagesBlock{}
		var block content.Block
		switch d.Get("type").Text() {
		case "text_delta":
			block = content.Text{Wire: m.form(), Of: content.KindAssistant}
		case "thinking_delta":
			block = content.Reasoning{Wire: m.form(), Format: content.FormatAnthropic, Source: "thinking"}
		default:
			return nil
		}
		if err := m.enter(n, b, block); err != nil {
			return err
		}
	}
	m.more(b, d)
	return nil
}

// more adds a delta to a block.
func (m *messages) more(b *messagesBlock, d rawjson.Value) {
	switch block := b.block.(type) {
	case content.Text:
		m.say(b.part, d.Get("text").Text())
		if c := d.Get("citation"); c != nil {
			b.cites = append(b.cites, bytes.Clone(c))
		}
	case content.Reasoning:
		m.say(b.part, d.Get("thinking").Text())
		m.signed(b.part, d.Get("signature").Text())
	case content.ToolCall:
		m.say(b.part, d.Get("partial_json").Text())
	case content.Native:
		b.grow(block.JSON, d)
	}
}

// grow adds a delta to a block that is not known: strings grow, as they do in
// every delta of the format, all else is replaced.
func (b *messagesBlock) grow(block string, d rawjson.Value) {
	for key, value := range d.Members() {
		if key == "type" || value.Kind() == rawjson.KindNull {
			continue
		}
		if value.Kind() != rawjson.KindString {
			b.grown.set(key, value)
			continue
		}
		was := rawjson.Value(block).Get(key)
		if b.grown.members[key] == nil && was.Kind() == rawjson.KindString {
			b.grown.member(key).add(was)
		}
		g := b.grown.member(key)
		g.value = nil
		g.add(value)
	}
}

// blockStop ends the block at an index of the wire, if one is open.
func (m *messages) blockStop(n int64) {
	if b := m.blocks[n]; b != nil {
		delete(m.blocks, n)
		m.finish(b)
	}
}

// finish ends a block.
func (m *messages) finish(b *messagesBlock) {
	switch block := b.block.(type) {
	case content.Text:
		block.SetExtra(b.cited(block.Form().Extra))
		b.block = block
	case content.Reasoning:
		if form := block.Form(); form.Seal.Type == content.Signature && form.Extra != nil {
			block.SetExtra((&item{Value: form.Extra, taken: []string{"signature"}}).rest())
			b.block = block
		}
	case content.ToolCall:
		if text := strings.Join(b.text, ""); strings.TrimSpace(text) == "" {
			b.text, block.Arguments = nil, b.input
		} else {
			block.SetIncomplete(cutShort(text))
		}
		b.block = block
	case content.Native:
		if b.grown.keys != nil {
			whole := new(rawjson.Object).Merge(b.grown.object())
			block.JSON = string(whole.Merge(rawjson.Value(block.JSON)).Bytes())
			b.block = block
		}
	}
	m.done(b.part)
}

// cited is the extra of a text with the citations that came.
func (b *messagesBlock) cited(extra []byte) []byte {
	if b.cites == nil {
		return extra
	}
	var o rawjson.Object
	var list rawjson.Array
	o.Merge(extra)
	for c := range o.Bytes().Get("citations").Elements() {
		list.Add(c)
	}
	for _, c := range b.cites {
		list.Add(c)
	}
	o.Set("citations", list.Bytes())
	return o.Bytes()
}
