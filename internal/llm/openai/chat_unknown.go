package openai

import (
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
)

// Types of blocks that this dialect keeps as they came.
const (
	chatPart       = "content:"   // a part of a content that is a list
	chatNativeCall = "tool_call:" // an element of tool_calls
	chatWhole      = "message"    // members of a message that has no other block
	chatRefusal    = "refusal"
	chatLegacy     = "function_call"
)

// keep notes a member. In a stream numbers and the like are notes on one chunk.
func (c *chatReader) keep(key string, v rawjson.Value) {
	switch v.Kind() {
	case rawjson.KindString, rawjson.KindArray, rawjson.KindObject:
		if !c.once {
			c.rest.Field(key).Add(v)
			return
		}
	}
	if c.once {
		c.rest.Set(key, v)
	}
}

// endRest puts what is left of the message with one of its blocks: a text, else a
// call, else a thought. Pictures and sounds are blocks of their own.
func (c *chatReader) endRest() {
	keys := c.rest.Keys
	c.rest.Keys = nil
	full := false
	for _, key := range keys {
		v := c.rest.Fields[key].Value()
		if (key == "images" || key == "audio") && !rawjson.IsEmpty(v) {
			b := content.Native{Wire: c.TypedForm(key), JSON: string(v)}
			if c.Emit(b) != nil {
				return
			}
			continue
		}
		c.rest.Keys = append(c.rest.Keys, key)
		full = full || !rawjson.IsEmpty(v)
	}
	if len(c.rest.Keys) == 0 {
		return
	}
	rest := c.rest.Object()
	switch p := c.carrier(); {
	case p != nil:
		p.AddExtra(chatOfMessage, rest)
		c.MarkChanged(p)
	case full:
		b := content.Native{Wire: c.TypedForm(chatWhole), JSON: string(rest)}
		_ = c.Emit(b) // with too many blocks there is a carrier
	}
}

func (c *chatReader) carrier() *wire.BlockBuilder {
	switch {
	case len(c.words.parts) > 0:
		return c.words.parts[0]
	case c.words.refuse != nil:
		return c.words.refuse
	case c.calls.first != nil:
		return c.calls.first.BlockBuilder
	case c.calls.legacy != nil:
		return c.calls.legacy
	case len(c.minds.parts) > 0:
		return c.minds.parts[0]
	case len(c.words.minds) > 0:
		return c.words.minds[0]
	}
	return c.Last
}
