package providers

import (
	"strings"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/llm/rawjson"
)

// Types of blocks that this dialect keeps as they came.
const (
	chatPart       = "content:"   // a part of a content that is a list
	chatNativeCall = "tool_call:" // an element of tool_calls
	chatWhole      = "message"    // members of a message that has no other block
	chatRefusal    = "refusal"
	chatLegacy     = "function_call"
)

// chatRest is the members of a message that no block stands for.
type chatRest struct {
	keys    []string
	members map[string]*growth
}

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

func (r *chatRest) member(key string) *growth {
	if r.members == nil {
		r.members = map[string]*growth{}
	}
	g := r.members[key]
	if g == nil {
		g = &growth{}
		r.keys, r.members[key] = append(r.keys, key), g
	}
	return g
}

func (r *chatRest) set(key string, v rawjson.Value) { *r.member(key) = growth{value: clone(v)} }

// growth is a value that comes in pieces: strings and lists get longer, objects
// get more members, of all else the last counts.
type growth struct {
	value rawjson.Value
	text  []string
	list  []rawjson.Value
	below chatRest
}

func (g *growth) add(v rawjson.Value) {
	switch v.Kind() {
	case rawjson.KindString:
		g.text = append(g.text, v.Text())
	case rawjson.KindArray:
		for e := range v.Elements() {
			g.list = append(g.list, clone(e))
		}
	case rawjson.KindObject:
		for key, m := range v.Members() {
			g.below.member(key).add(m)
		}
	case rawjson.KindNumber, rawjson.KindBool:
		g.value = clone(v)
	case rawjson.KindAbsent, rawjson.KindNull:
	}
}

// bytes is what it has become, or nil.
func (g *growth) bytes() rawjson.Value {
	switch {
	case g.value != nil:
		return g.value
	case len(g.text) > 0:
		return rawjson.AppendString(nil, strings.Join(g.text, ""))
	case len(g.list) > 0:
		var a rawjson.Array
		for _, e := range g.list {
			a.Add(e)
		}
		return a.Bytes()
	case len(g.below.keys) > 0:
		return g.below.object()
	}
	return nil
}

func (r *chatRest) object() rawjson.Value {
	var o rawjson.Object
	for _, key := range r.keys {
		o.Set(key, r.members[key].bytes())
	}
	return o.Bytes()
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
			b := content.Native{Wire: c.form(), JSON: string(v)}
			b.Type = key
			if c.put(b) != nil {
				return
			}
			continue
		}
		c.rest.keys = append(c.rest.keys, key)
		full = full || v != nil && !hollow(v)
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
		b := content.Native{Wire: c.form(), JSON: string(rest)}
		b.Type = chatWhole
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

// extend adds a member to the extra of a block, into the object that may be there.
func (p *part) extend(key string, v rawjson.Value) {
	if hollow(v) {
		return
	}
	switch b := p.block.(type) {
	case content.Text:
		b.Extra = extended(b.Extra, key, v)
		p.block = b
	case content.Reasoning:
		b.Extra = extended(b.Extra, key, v)
		p.block = b
	case content.ToolCall:
		b.Extra = extended(b.Extra, key, v)
		p.block = b
	case content.ToolResult:
		b.Extra = extended(b.Extra, key, v)
		p.block = b
	case content.Native:
		b.Extra = extended(b.Extra, key, v)
		p.block = b
	}
}

// extended is an extra with one more member. Two objects become one.
func extended(extra []byte, key string, v rawjson.Value) []byte {
	if v == nil {
		return extra
	}
	var o, both rawjson.Object
	o.Merge(extra)
	if was := o.Bytes().Get(key); was.Kind() == rawjson.KindObject && v.Kind() == rawjson.KindObject {
		both.Merge(v)
		both.Merge(was)
		v = both.Bytes()
	}
	o.Set(key, v)
	return clone(o.Bytes())
}
