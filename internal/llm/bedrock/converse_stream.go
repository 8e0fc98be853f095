package bedrock

import (
	"bytes"
	"encoding/base64"
	"strings"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
)

// streamBlock is a content block that is being streamed.
type streamBlock struct {
	*wire.BlockBuilder
	redacted     []string              // pieces of redacted reasoning, in base64
	elements     []rawjson.Value       // citations of a text, or parts of a tool result
	unknownBlock wire.ValueAccumulator // a block of an unknown type
}

// readBlockStart reads the start of a content block. Only blocks whose deltas do not say
// what they are have one.
func (c *converseReader) readBlockStart(v rawjson.Value) {
	n, _ := v.Get("contentBlockIndex").Int()
	c.endBlockAt(n)
	start := v.Get("start")
	if rawjson.IsEmpty(start) {
		return
	}
	b := &streamBlock{}
	block := c.contentBlock(start)
	switch whole := block.(type) {
	case content.ToolCall:
		if whole.Arguments == "{}" {
			whole.Arguments = ""
		}
		block = whole
	case content.ToolResult:
		for e := range rawjson.Value(whole.Parts).Elements() {
			b.elements = append(b.elements, bytes.Clone(e))
		}
		whole.Parts = nil
		block = whole
	case content.Native:
		b.unknownBlock.Add(start)
	}
	c.beginBlock(n, b, block)
}

// beginBlock begins the block at an index of the wire.
func (c *converseReader) beginBlock(n int64, b *streamBlock, block content.Block) {
	b.BlockBuilder = c.BeginStreamed(block)
	c.blocks[n], b.BeforeEnd = b, b.setFinalBlock
}

// readBlockDelta reads more of a block, which may begin with it.
func (c *converseReader) readBlockDelta(v rawjson.Value) {
	n, _ := v.Get("contentBlockIndex").Int()
	d := v.Get("delta")
	b := c.blocks[n]
	if b != nil {
		if r, ok := b.Block.(content.Reasoning); ok && r.Source != reasoningSource(d) {
			c.endBlockAt(n) // the other sort of reasoning is another block
			b = nil
		}
	}
	if b == nil {
		block := c.newBlockFor(d)
		if block == nil {
			return
		}
		b = &streamBlock{}
		c.beginBlock(n, b, block)
	}
	c.addDelta(b, d)
}

// reasoningSource returns the Source of the reasoning block that delta d belongs to, which is a
// member of the whole block: reasoningText or redactedContent.
func reasoningSource(d rawjson.Value) string {
	if d.Get("reasoningContent", memberRedactedContent) != nil {
		return memberRedactedContent
	}
	return memberReasoningText
}

// newBlockFor returns the block that begins with a delta; nil when none does.
func (c *converseReader) newBlockFor(d rawjson.Value) content.Block {
	for key := range d.Members() {
		switch key {
		case "text", "citation":
			return content.Text{Wire: c.BlockForm(), Of: content.KindAssistant}
		case "reasoningContent":
			b := content.Reasoning{Wire: c.BlockForm(), Format: content.FormatBedrock, Source: reasoningSource(d)}
			if b.Source == memberRedactedContent {
				b.SetSeal(c.NewSeal(content.Redacted, ""))
			}
			return b
		case "toolUse", "toolResult":
			return nil // the delta does not say of which call
		}
		b := content.Native{Wire: c.TypedForm(key)}
		return b
	}
	return nil
}

// addDelta adds a delta to a block. What does not belong to the block is skipped.
func (c *converseReader) addDelta(b *streamBlock, d rawjson.Value) {
	switch b.Block.(type) {
	case content.Text:
		c.AppendText(b.BlockBuilder, d.Get("text").Text())
		if cited := d.Get("citation"); cited != nil {
			b.elements = append(b.elements, bytes.Clone(cited))
		}
	case content.Reasoning:
		d = d.Get("reasoningContent")
		c.AppendText(b.BlockBuilder, d.Get("text").Text())
		c.AppendSignature(b.BlockBuilder, d.Get("signature").Text())
		if data := d.Get(memberRedactedContent).Text(); data != "" {
			b.redacted = append(b.redacted, data)
		}
	case content.ToolCall:
		c.AppendText(b.BlockBuilder, rawjson.TextOrJSON(d.Get("toolUse", "input")))
	case content.ToolResult:
		for e := range d.Get("toolResult").Elements() {
			b.elements = append(b.elements, bytes.Clone(e))
		}
	case content.Native:
		b.unknownBlock.Add(d)
	}
}

// endBlockAt ends the block at an index of the wire, if one is open.
func (c *converseReader) endBlockAt(n int64) {
	if b := c.blocks[n]; b != nil {
		delete(c.blocks, n)
		c.End(b.BlockBuilder)
	}
}

// setFinalBlock runs when the block ends. It adds to the block what deltas brought beside text:
// citations, redacted reasoning, the parts of a result and unknown members.
func (b *streamBlock) setFinalBlock() {
	switch block := b.Block.(type) {
	case content.Text:
		if b.elements != nil {
			cited := rawjson.NewObject("citations", rawjson.ArrayOf(b.elements...))
			block.SetType(typeCitations)
			block.SetExtra(rawjson.WithMember(block.Form().Extra, typeCitations, cited.Bytes()))
		}
		b.Block = block
	case content.Reasoning:
		if b.redacted != nil {
			b.Signature = []string{joinBase64(b.redacted)}
		}
	case content.ToolCall:
		if strings.TrimSpace(strings.Join(b.Text, "")) != "" {
			block.Arguments = ""
		} else if b.Text = nil; block.Arguments == "" {
			block.Arguments = "{}"
		}
		b.Block = block
		b.MarkTruncatedCall()
	case content.ToolResult:
		block.Parts = bytes.Clone(rawjson.ArrayOf(b.elements...))
		b.Block = block
	case content.Native:
		block.JSON = string(b.unknownBlock.Value())
		b.Block = block
	}
}

// joinBase64 joins the bytes of pieces in base64. A single piece stays as it came, and so
// do pieces that are not base64.
func joinBase64(pieces []string) string {
	if len(pieces) == 1 {
		return pieces[0]
	}
	var all []byte
	for _, piece := range pieces {
		b, err := base64.StdEncoding.DecodeString(piece)
		if err != nil {
			return strings.Join(pieces, "")
		}
		all = append(all, b...)
	}
	return base64.StdEncoding.EncodeToString(all)
}
