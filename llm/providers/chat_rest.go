package providers

import (
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
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
func (c *chat) keep(key string, v rawjson.Value) {
	switch v.Kind() {
	case rawjson.KindString, rawjson.KindArray, rawjson.KindObject:
		if !c.once {
			c.rest.member(key).add(v)
			return
		}
	}
	if c.once {
		c.rest.set(key, v)
	}
}

// endRest puts what is left of the message with one of its blocks: a text, else a
// call, else a thought. Pictures and sounds are blocks of their own.
func (c *chat) endRest() {
	keys := c.rest.keys
	c.rest.keys = nil
	full := false
	for _, key := range keys {
		v := c.rest.members[key].bytes()
		if (key == "images" || key == "audio") && !hollow(v) {
			b := content.Native{Wire: c.typed(key), JSON: string(v)}
			if c.put(b) != nil {
				return
			}
			continue
		}
		c.rest.keys = append(c.rest.keys, key)
		full = full || !hollow(v)
	}
	if len(c.rest.keys) == 0 {
		return
	}
	rest := c.rest.object()
	switch p := c.carrier(); {
	case p != nil:
		p.extend(chatOfMessage, rest)
		c.changed(p)
	case full:
		b := content.Native{Wire: c.typed(chatWhole), JSON: string(rest)}
		_ = c.put(b) // with too many blocks there is a carrier
	}
}

func (c *chat) carrier() *part {
	switch {
	case len(c.words.parts) > 0:
		return c.words.parts[0]
	case c.words.refuse != nil:
		return c.words.refuse
	case c.calls.first != nil:
		return c.calls.first.part
	case c.calls.legacy != nil:
		return c.calls.legacy
	case len(c.minds.parts) > 0:
		return c.minds.parts[0]
	case len(c.words.minds) > 0:
		return c.words.minds[0]
	}
	return c.last
}
