package openai

import (
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
)

// Types of blocks of this dialect. Those that end in a colon are prefixes.
const (
	typeContentPart  = "content:"   // a part of a content list
	typeNativeCall   = "tool_call:" // an element of tool_calls
	typeMessage      = "message"    // members of a message that has no other block
	typeRefusal      = "refusal"
	typeFunctionCall = "function_call"
)

// keepUnknownField keeps a member of the message that has no block. In a stream, numbers,
// booleans and nulls describe one chunk only, so they are dropped.
func (c *chatReader) keepUnknownField(key string, v rawjson.Value) {
	switch v.Kind() {
	case rawjson.KindString, rawjson.KindArray, rawjson.KindObject:
		if !c.fromBody {
			c.unknownFields.Field(key).Add(v)
			return
		}
	}
	if c.fromBody {
		c.unknownFields.Set(key, v)
	}
}

// finishUnknownFields runs at the end of the response. It puts the unknown members into the
// extra of a block: a text, else a call, else reasoning. Images and audio become blocks of
// their own.
func (c *chatReader) finishUnknownFields() {
	keys := c.unknownFields.Keys
	c.unknownFields.Keys = nil
	full := false
	for _, key := range keys {
		v := c.unknownFields.Fields[key].Value()
		if (key == "images" || key == "audio") && !rawjson.IsEmpty(v) {
			c.Emit(content.Native{Wire: c.TypedForm(key), JSON: string(v)})
			continue
		}
		c.unknownFields.Keys = append(c.unknownFields.Keys, key)
		full = full || !rawjson.IsEmpty(v)
	}
	if len(c.unknownFields.Keys) == 0 {
		return
	}
	rest := c.unknownFields.Object()
	switch p := c.blockForUnknownFields(); {
	case p != nil:
		p.AddExtra(extraMessage, rest)
		c.MarkChanged(p)
	case full:
		c.Emit(content.Native{Wire: c.TypedForm(typeMessage), JSON: string(rest)})
	}
}

// blockForUnknownFields returns the block whose extra keeps the unknown members; nil: there
// is none.
func (c *chatReader) blockForUnknownFields() *wire.BlockBuilder {
	switch {
	case len(c.text.blocks) > 0:
		return c.text.blocks[0]
	case c.text.refusal != nil:
		return c.text.refusal
	case c.calls.first != nil:
		return c.calls.first.BlockBuilder
	case c.calls.functionCall != nil:
		return c.calls.functionCall
	case len(c.reasoning.blocks) > 0:
		return c.reasoning.blocks[0]
	case len(c.text.taggedBlocks) > 0:
		return c.text.taggedBlocks[0]
	}
	return c.Last
}
