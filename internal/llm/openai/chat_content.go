package openai

import (
	"strings"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/thinktags"
	"github.com/tract-vcs/tract/internal/llm/wire"
)

// Members that this dialect adds to the Extra of a block. Their names begin with a sign that
// no provider uses.
const (
	extraMessage       = "$message" // members of the message that have no block
	extraCopies        = "$copies"  // fields of the message that repeat its reasoning
	extraDiffers       = "$beside"  // of reasoning: its field differs from the primary field
	extraJSONArguments = "$json"    // of a call: its arguments are JSON, not a string of JSON
)

// reasoningFields are the plain fields for reasoning; see the head of chat_reasoning.go.
var reasoningFields = []string{"reasoning_content", "reasoning", "reasoning_text"}

// answerFields are the fields of the answer. The first of them ends the reasoning.
var answerFields = []string{"content", "refusal", "tool_calls", "function_call"}

// chatFields are the members of a message that become blocks, and the JSON kind that each
// must have. The content may also be a list.
var chatFields = map[string]rawjson.Kind{
	"content":           rawjson.KindString,
	"refusal":           rawjson.KindString,
	"reasoning_content": rawjson.KindString,
	"reasoning":         rawjson.KindString,
	"reasoning_text":    rawjson.KindString,
	"reasoning_details": rawjson.KindArray,
	"reasoning_opaque":  rawjson.KindString,
	"tool_calls":        rawjson.KindArray,
	"function_call":     rawjson.KindObject,
	"executed_tools":    rawjson.KindArray,
	"extra_content":     rawjson.KindObject,
}

// readMessage reads a message, or the delta of a chunk.
func (c *chatReader) readMessage(v rawjson.Value) {
	if c.fields == nil {
		c.fields = make(map[string]rawjson.Value, len(chatFields))
	}
	m := c.fields
	clear(m)
	for key, v := range v.Members() {
		kind, known := chatFields[key]
		isKind := v.Kind() == kind || key == "content" && v.Kind() == rawjson.KindArray
		switch {
		case key == "role" || key == "tool_calls" && isKind && rawjson.IsEmpty(v): // servers refuse an empty list when it is sent back
		case !known, !isKind, c.fromBody && rawjson.IsEmpty(v):
			c.keepUnknownField(key, v)
		default:
			m[key] = v
		}
	}
	c.readReasoning(m)
	for v := range c.Elements(m["executed_tools"]) {
		c.readExecutedTool(v)
	}
	c.readContent(m["content"])
	c.readRefusal(m["refusal"])
	for v := range c.Elements(m["tool_calls"]) {
		c.readToolCall(v)
	}
	c.readFunctionCall(m["function_call"])
	c.readTextSeal(m["extra_content"])
}

// chatText is the state of the content while it arrives.
type chatText struct {
	tags           thinktags.Splitter
	splitterUsed   bool                 // the splitter was given text
	blocks         []*wire.BlockBuilder // the texts
	taggedBlocks   []*wire.BlockBuilder // the reasoning between tags
	current        *wire.BlockBuilder   // the open text block
	openTagged     *wire.BlockBuilder   // the reasoning between tags that is open
	openTag        string               // the opening tag of reasoning that has no text yet
	emptyTags      string               // tags with nothing between them, before the next block
	heldWhitespace []string             // white space that is written only when other text follows
	refusal        *wire.BlockBuilder
}

// takeHeldWhitespace returns the white space that was held back, and clears it.
func (w *chatText) takeHeldWhitespace() string {
	white := strings.Join(w.heldWhitespace, "")
	w.heldWhitespace = nil
	return white
}

// readContent reads the content, which is a string that may hold think tags or a list of
// parts.
func (c *chatReader) readContent(v rawjson.Value) {
	for part := range c.Elements(v) {
		c.readContentPart(part)
	}
	if v.Kind() != rawjson.KindString || len(v) == len(`""`) {
		return
	}
	c.text.splitterUsed = true
	c.text.tags.NoImplicit = c.Quirks.TagsPaired || len(c.reasoning.blocks) > 0
	c.readPieces(c.text.tags.Write(v.Text()))
}

// readPieces reads pieces of the think-tag splitter.
func (c *chatReader) readPieces(list []thinktags.Piece) {
	w := &c.text
	for _, p := range list {
		switch p.Kind {
		case thinktags.Text:
			c.addPlainText(p.Text, "")
		case thinktags.Open:
			w.openTag = w.emptyTags + w.takeHeldWhitespace() + p.Text
			w.emptyTags, w.current = "", nil
		case thinktags.Reasoning:
			if w.openTagged == nil {
				w.openTagged = c.beginBlock(content.Reasoning{Wire: c.BlockForm(), Format: content.FormatThinkTags, Source: "content", Open: w.openTag})
				w.taggedBlocks, w.openTag = append(w.taggedBlocks, w.openTagged), ""
			}
			c.AppendText(w.openTagged, p.Text)
		case thinktags.Close:
			if w.openTagged == nil {
				w.emptyTags, w.openTag = w.openTag+p.Text, ""
				continue
			}
			c.endTaggedReasoning(w.openTagged, p.Text)
			w.openTagged = nil
		case thinktags.Reclassify:
			c.reclassifyTextAsReasoning(p.Text)
		}
	}
}

// endTaggedReasoning ends reasoning between tags.
func (c *chatReader) endTaggedReasoning(p *wire.BlockBuilder, closeTag string) {
	b := p.Block.(content.Reasoning)
	b.Close = closeTag
	p.Block = b
	if !c.fromBody {
		c.End(p)
	}
}

// reclassifyTextAsReasoning turns all texts so far into reasoning, because the closing tag has no opening
// tag.
func (c *chatReader) reclassifyTextAsReasoning(closeTag string) {
	w := &c.text
	if len(w.blocks) == 0 {
		w.emptyTags += w.takeHeldWhitespace() + closeTag
		return
	}
	for i, p := range w.blocks {
		previous := p.Block.Form()
		b := content.Reasoning{Wire: c.BlockForm(), Format: content.FormatThinkTags, Source: "content", Open: rawjson.Value(previous.Extra).Get(wire.ExtraBefore).Text()}
		b.SetSeal(previous.Seal)
		if i == len(w.blocks)-1 {
			b.Close = w.takeHeldWhitespace() + closeTag
		}
		p.Block = b
		c.MarkChanged(p)
		if !c.fromBody {
			c.End(p)
		}
	}
	w.taggedBlocks, w.blocks, w.current = w.blocks, nil, nil
}

// addPlainText appends s to the open text block, or begins one whose type is partType. Leading
// white space is held back until other text follows, because some servers send nothing but
// white space around tool calls, and that is no text block.
func (c *chatReader) addPlainText(s, partType string) {
	w := &c.text
	if w.current == nil || w.current != c.Last {
		w.current = nil
		if strings.TrimSpace(s) == "" {
			w.heldWhitespace = append(w.heldWhitespace, s)
			return
		}
		s = w.takeHeldWhitespace() + s
		b := content.Text{Wire: c.TypedForm(partType), Of: content.KindAssistant}
		if w.emptyTags != "" {
			b.SetExtra(rawjson.WithMember(nil, wire.ExtraBefore, rawjson.AppendString(nil, w.emptyTags)))
		}
		w.emptyTags = ""
		w.current = c.beginBlock(b)
		w.blocks = append(w.blocks, w.current)
	}
	c.AppendText(w.current, s)
}

// readContentPart reads one part of a content list.
func (c *chatReader) readContentPart(v rawjson.Value) {
	i := rawjson.ObjectReader{Value: v}
	kind := i.TakeText("type")
	switch {
	case kind == "text" && c.fromBody && strings.TrimSpace(v.Get("text").Text()) != "":
		b := content.Text{Wire: c.TypedForm(kind), Of: content.KindAssistant, Text: i.TakeText("text")}
		b.SetExtra(i.Rest())
		c.text.blocks = append(c.text.blocks, c.beginBlock(b))
	case kind == "text" && !c.fromBody:
		c.addPlainText(i.TakeText("text"), kind)
	case kind == "thinking":
		c.readThinkingPart(i)
	default:
		c.emitBlock(content.Native{Wire: c.TypedForm(typeContentPart + kind), JSON: string(v)})
	}
}

// readRefusal reads the model's refusal, which becomes a text block.
func (c *chatReader) readRefusal(v rawjson.Value) {
	if rawjson.IsEmpty(v) {
		return
	}
	if c.text.refusal == nil {
		c.text.refusal = c.beginBlock(content.Text{Wire: c.TypedForm(typeRefusal), Of: content.KindAssistant})
	}
	c.AppendText(c.text.refusal, v.Text())
}

// finishText runs at the end of the response. It reads the rest of the splitter, and keeps
// tags and white space that belong to no block.
func (c *chatReader) finishText() {
	w := &c.text
	if w.splitterUsed {
		c.readPieces(w.tags.Close())
	}
	rest := w.emptyTags + w.openTag + w.takeHeldWhitespace()
	switch {
	case rest == "":
	case len(w.blocks) > 0:
		c.AppendText(w.blocks[len(w.blocks)-1], rest)
	case c.Count > 0:
		c.unknownFields.Set("content", rawjson.AppendString(nil, rest))
	case strings.TrimSpace(rest) == "":
		c.AppendText(c.Begin(content.Text{Wire: c.BlockForm(), Of: content.KindAssistant}), rest)
	}
}
