package anthropic

import (
	"bytes"
	"strings"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
)

// How the events of a stream become blocks.
//
// A content block arrives as content_block_start, content_block_delta events and
// content_block_stop. The reader keeps a streamBlock for each index. Text, reasoning and
// arguments are appended to the block as they come; citations and members of unknown
// blocks are collected. When the block ends, setFinalBlock adds what was collected. Some
// servers leave out events: a delta may begin a block, and the end of the message ends
// all blocks.

// streamBlock is a content block that is being streamed.
type streamBlock struct {
	*wire.BlockBuilder
	startInput    string                // arguments in the start event of a call
	citations     []rawjson.Value       // citations of a text
	unknownFields wire.FieldAccumulator // members of an unknown block
}

// readBlockStart reads content_block_start. Most blocks are empty there, but a block may also be
// complete.
func (m *reader) readBlockStart(v rawjson.Value) {
	n, _ := v.Get("index").Int()
	m.endBlockAt(n)
	start := v.Get("content_block")
	if start.Kind() != rawjson.KindObject {
		return // the first delta will begin the block
	}
	block := m.contentBlock(start)
	b := &streamBlock{}
	if c, ok := block.(content.ToolCall); ok { // the arguments may follow in deltas
		b.startInput, c.Arguments = c.Arguments, ""
		block = c
	}
	m.beginBlock(n, b, block)
}

// beginBlock begins block, with state b, as the block with index n.
func (m *reader) beginBlock(n int64, b *streamBlock, block content.Block) {
	b.BlockBuilder = m.BeginStreamed(block)
	m.blocks[n], b.BeforeEnd = b, b.setFinalBlock
}

// readBlockDelta reads content_block_delta. It skips deltas that do not fit the block. If no
// block has the index, a text or thinking delta begins one.
func (m *reader) readBlockDelta(v rawjson.Value) {
	n, _ := v.Get("index").Int()
	d := v.Get("delta")
	b := m.blocks[n]
	if b == nil {
		block := m.newBlockFor(d)
		if block == nil {
			return
		}
		b = &streamBlock{}
		m.beginBlock(n, b, block)
	}
	m.addDelta(b, d)
}

// newBlockFor returns the block that begins with delta d; nil if a delta of its type begins none.
func (m *reader) newBlockFor(d rawjson.Value) content.Block {
	switch d.Get("type").Text() {
	case "text_delta":
		return content.Text{Wire: m.BlockForm(), Of: content.KindAssistant}
	case "thinking_delta":
		return content.Reasoning{Wire: m.BlockForm(), Format: content.FormatAnthropic, Source: "thinking"}
	}
	return nil
}

// addDelta adds delta d to block b.
func (m *reader) addDelta(b *streamBlock, d rawjson.Value) {
	switch block := b.Block.(type) {
	case content.Text:
		m.AppendText(b.BlockBuilder, d.Get("text").Text())
		if c := d.Get("citation"); c != nil {
			b.citations = append(b.citations, bytes.Clone(c))
		}
	case content.Reasoning:
		m.AppendText(b.BlockBuilder, d.Get("thinking").Text())
		m.AppendSignature(b.BlockBuilder, d.Get("signature").Text())
	case content.ToolCall:
		m.AppendText(b.BlockBuilder, d.Get("partial_json").Text())
	case content.Native:
		b.appendUnknownFields(block.JSON, d)
	}
}

// appendUnknownFields adds the members of delta d to a block of an unknown type, whose JSON in
// the start event is startJSON. It appends strings, as all deltas of the API do, and replaces
// other values.
func (b *streamBlock) appendUnknownFields(startJSON string, d rawjson.Value) {
	for key, value := range d.Members() {
		if key == "type" || value.Kind() == rawjson.KindNull {
			continue
		}
		if value.Kind() != rawjson.KindString {
			b.unknownFields.Set(key, value)
			continue
		}
		previous := rawjson.Value(startJSON).Get(key)
		if b.unknownFields.Fields[key] == nil && previous.Kind() == rawjson.KindString {
			b.unknownFields.Field(key).Add(previous)
		}
		b.unknownFields.Field(key).Add(value)
	}
}

// endBlockAt ends the block with index n, if it is open.
func (m *reader) endBlockAt(n int64) {
	if b := m.blocks[n]; b != nil {
		delete(m.blocks, n)
		m.End(b.BlockBuilder)
	}
}

// setFinalBlock runs when the block ends. It adds the collected citations or unknown members, and
// sets the arguments of a call that had no deltas.
func (b *streamBlock) setFinalBlock() {
	switch block := b.Block.(type) {
	case content.Text:
		block.SetExtra(b.withCitations(block.Form().Extra))
		b.Block = block
	case content.Reasoning:
		if form := block.Form(); form.Seal.Type == content.Signature && form.Extra != nil {
			block.SetExtra((&rawjson.ObjectReader{Value: form.Extra, Taken: []string{"signature"}}).Rest())
			b.Block = block
		}
	case content.ToolCall:
		if strings.TrimSpace(strings.Join(b.Text, "")) == "" {
			b.Text, block.Arguments = nil, b.startInput
			b.Block = block
		}
		b.MarkTruncatedCall()
	case content.Native:
		if b.unknownFields.Keys != nil {
			whole := new(rawjson.Object).Merge(b.unknownFields.Object())
			block.JSON = string(whole.Merge(rawjson.Value(block.JSON)).Bytes())
			b.Block = block
		}
	}
}

// withCitations returns the extra of a text with the collected citations added.
func (b *streamBlock) withCitations(extra []byte) []byte {
	if b.citations == nil {
		return extra
	}
	var o rawjson.Object
	var list rawjson.Array
	o.Merge(extra)
	for c := range o.Bytes().Get("citations").Elements() {
		list.Add(c)
	}
	for _, c := range b.citations {
		list.Add(c)
	}
	o.Set("citations", list.Bytes())
	return o.Bytes()
}
