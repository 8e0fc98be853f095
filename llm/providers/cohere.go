package providers

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/llm"
)

// The cohere dialect: version 2 of Cohere's chat
// (https://docs.cohere.com/reference/chat). A message has a content, which is a
// list of thoughts and texts, a plan in plain words before its tool calls, and
// the calls. What else it has goes back as it came, in a block for each member.
var Cohere = &dialect{
	name:      "cohere",
	path:      func(string, bool) string { return "/chat" },
	sign:      signBearer,
	read:      func(o *output) reader { return &cohere{output: o, blocks: map[int64]*part{}, calls: map[int64]*part{}} },
	encode:    encodeCohere,
	replay:    replayCohere,
	wantsTurn: func(target) bool { return true },
	request:   requestCohere,
	outline:   outlineChat,

	off:        [][]string{{"thinking"}},
	needsModel: true,
}

const (
	coherePlan = "tool_plan" // the type of the text that is a plan
	coherePart = "content:"  // before the type of a part of a content that is not known
)

// cohere reads one response.
type cohere struct {
	*output
	blocks  map[int64]*part // parts of the content that are being streamed, by the index of the wire
	calls   map[int64]*part // calls, likewise
	plan    *part
	rest    growing // members of the message that are not known
	stopped bool
}

// whole reads a response in one piece.
func (c *cohere) whole(v rawjson.Value) error {
	m := v.Get("message")
	if m.Kind() != rawjson.KindObject {
		if v.Get("type") != nil && m == nil {
			return c.event("", v) // a stream of which only this came
		}
		if plain(m) != "" || v.Get("error") != nil {
			return apiError(c.provider, v)
		}
		return fmt.Errorf("%w: no message in %q", llm.ErrProtocol, excerpt(v))
	}
	if err := c.start(v.Get("id"), m); err != nil {
		return err
	}
	return c.stop(v)
}

// event reads one event. Types that are not known are passed over.
func (c *cohere) event(name string, v rawjson.Value) (err error) {
	name = cmp.Or(v.Get("type").Text(), name)
	n, _ := v.Get("index").Int()
	m := v.Get("delta", "message")
	switch name {
	case "message-start":
		err = c.start(v.Get("id"), m)
	case "content-start":
		err = c.part(n, m.Get("content"))
	case "content-delta":
		err = c.more(n, m.Get("content"))
	case "content-end":
		c.ended(c.blocks, n)
	case "tool-plan-delta":
		err = c.planned(m.Get(coherePlan).Text())
	case "tool-call-start":
		c.ended(c.calls, n)
		err = c.call(n, m.Get("tool_calls"))
	case "tool-call-delta":
		if p := c.calls[n]; p != nil {
			c.say(p, m.Get("tool_calls", "function", "arguments").Text())
		}
	case "tool-call-end":
		c.ended(c.calls, n)
	case "citation-start":
		for key, member := range m.Members() {
			c.cited(key, member)
		}
	case "message-end":
		err = c.stop(v.Get("delta"))
	default:
		if said := v.Get("message"); said.Kind() == rawjson.KindString || v.Get("error") != nil {
			err = apiError(c.provider, v)
		}
	}
	return err
}

// start reads a message, which in a stream is empty.
func (c *cohere) start(id, m rawjson.Value) error {
	c.about(func(h *llm.Head) { h.ID = id.Text() })
	c.giveHead()
	words := m.Get("content")
	if text := words.Text(); text != "" {
		if err := c.put(content.Text{Wire: c.form(), Of: content.KindAssistant, Text: text}); err != nil {
			return err
		}
	}
	var n int64
	for part := range words.Elements() {
		if err := c.part(n, part); err != nil {
			return err
		}
		c.ended(c.blocks, n)
		n++
	}
	if err := c.planned(m.Get(coherePlan).Text()); err != nil {
		return err
	}
	n = 0
	for call := range m.Get("tool_calls").Elements() {
		if err := c.call(n, call); err != nil {
			return err
		}
		c.ended(c.calls, n)
		n++
	}
	for key, member := range m.Members() {
		if !hollow(member) && !slices.Contains([]string{"role", "content", coherePlan, "tool_calls"}, key) {
			c.rest.member(key).add(member)
		}
	}
	return nil
}

// cited notes a citation, of which a stream brings one at a time.
func (c *cohere) cited(key string, v rawjson.Value) {
	if v.Kind() == rawjson.KindObject {
		v = array([]rawjson.Value{v})
	}
	c.rest.member(key).add(v)
}

// part begins a part of the content.
func (c *cohere) part(n int64, v rawjson.Value) (err error) {
	c.ended(c.blocks, n)
	if v.Kind() != rawjson.KindObject {
		return nil
	}
	i := item{Value: v}
	kind := i.text("type")
	words := i.string(kind)
	switch kind {
	case "text":
		b := content.Text{Wire: c.form(), Of: content.KindAssistant}
		b.SetExtra(i.rest())
		c.blocks[n], err = c.begin(b)
	case "thinking":
		b := content.Reasoning{Wire: c.form(), Format: content.FormatCohere, Source: "thinking"}
		b.SetExtra(i.rest())
		c.blocks[n], err = c.begin(b)
	default:
		b := content.Native{Wire: c.typed(coherePart + kind), JSON: string(v)}
		return c.put(b)
	}
	if err == nil {
		c.say(c.blocks[n], words)
	}
	return err
}

// more adds a delta to a part of the content, which may begin with it.
func (c *cohere) more(n int64, v rawjson.Value) error {
	for _, kind := range []string{"thinking", "text"} {
		text := v.Get(kind).Text()
		if c.blocks[n] == nil && text != "" {
			if err := c.part(n, cohereText(kind, "")); err != nil {
				return err
			}
		}
		if p := c.blocks[n]; p != nil {
			c.say(p, text)
		}
	}
	return nil
}

// planned adds to the plan.
func (c *cohere) planned(text string) (err error) {
	if text == "" {
		return nil
	}
	if c.plan == nil || c.plan.done {
		b := content.Text{Wire: c.typed(coherePlan), Of: content.KindAssistant}
		if c.plan, err = c.begin(b); err != nil {
			return err
		}
	}
	c.say(c.plan, text)
	return nil
}

// call begins a call. The plan before it is whole then.
func (c *cohere) call(n int64, v rawjson.Value) error {
	if c.plan != nil {
		c.done(c.plan)
	}
	i := item{Value: v}
	f := i.inner("function")
	b := content.ToolCall{Wire: c.form(), CallID: i.text("id"), Name: f.text("name")}
	b.SetType(i.text("type"))
	args := plain(f.take("arguments"))
	b.SetExtra(extended(i.rest(), "function", f.rest()))
	p, err := c.begin(b)
	if err != nil {
		return err
	}
	c.calls[n] = p
	c.say(p, args)
	return nil
}

// ended ends a part of the content or a call, if one is open.
func (c *cohere) ended(open map[int64]*part, n int64) {
	p := open[n]
	if p == nil {
		return
	}
	delete(open, n)
	if b, ok := p.block.(content.ToolCall); ok && len(p.text) > 0 {
		b.SetIncomplete(cutShort(p.whole().String()))
		p.block = b
	}
	c.done(p)
}

// stop reads how a message ended.
func (c *cohere) stop(v rawjson.Value) error {
	for _, open := range []map[int64]*part{c.blocks, c.calls} {
		for _, n := range slices.Sorted(maps.Keys(open)) {
			c.ended(open, n)
		}
	}
	if c.plan != nil {
		c.done(c.plan)
	}
	for _, key := range c.rest.keys {
		b := content.Native{Wire: c.typed(key), JSON: string(c.rest.members[key].bytes())}
		if b.JSON == "" {
			continue
		}
		if err := c.put(b); err != nil {
			return err
		}
	}
	c.rest.keys = nil
	why := v.Get("finish_reason").Text()
	c.about(func(h *llm.Head) { h.Finish = why })
	c.cost(v.Get("usage"))
	if e := v.Get("error"); why == "ERROR" || !hollow(e) {
		return apiError(c.provider, v)
	}
	c.stopped = true
	return nil
}

// end tells whether the message ended.
func (c *cohere) end(bool) bool { return c.stopped }

// cost reads the usage. What is billed leaves out what the service adds to the
// prompt: what the model read and wrote counts.
func (c *cohere) cost(v rawjson.Value) {
	if v.Kind() != rawjson.KindObject {
		return
	}
	n := counts(v)
	u := content.Usage{Input: n("tokens", "input_tokens"), Output: n("tokens", "output_tokens"), Cached: n("cached_tokens"), Raw: bytes.Clone(v)}
	if v.Get("tokens") == nil {
		u.Input, u.Output = n("billed_units", "input_tokens"), n("billed_units", "output_tokens")
	}
	c.usage(u)
}
