package wire

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/llm"
)

// DecodeMessages completes a request whose settings and tools are decoded already. It reads
// the messages with q from the body's array member, and then calls [Target.KeepUnknownFields],
// which does not compare that member and the other members.
func (t Target) DecodeMessages(req *llm.Request, body rawjson.Value, q MessageReader, member string, other ...string) (*llm.Request, error) {
	list := body.Get(member)
	if list.Kind() != rawjson.KindArray {
		return nil, fmt.Errorf("want an array under %q", member)
	}
	c := cmp.Or(t.continuation, &Continuation{})
	outside, n := len(*q.Messages()), 0
	if c.From != nil {
		c.From.restore(q)
		n = c.From.elements
	}
	kept := -1
	if c.isMemberOfBody(list, member) {
		c.Member, c.Elements = member, -c.Tail
		for range list.Elements() {
			c.Elements++
		}
		kept = n + c.Elements
	}
	for v := range list.Elements() {
		if n == kept {
			c.Made = &Checkpoint{reader: q.Copy(), elements: n, outside: outside}
		}
		if err := q.Next(v); err != nil {
			return nil, fmt.Errorf("%s[%d]: %w", member, n, err)
		}
		n++
	}
	if err := q.End(); err != nil {
		return nil, fmt.Errorf("%s[%d]: %w", member, n, err)
	}
	req.Messages = *q.Messages()
	return req, t.KeepUnknownFields(req, body, append(other, member)...)
}

// KeepUnknownFields changes the settings of a request so that encoding the request gives the
// same body. It puts members that encoding would omit or write differently into Extra, and
// drops a setting that would add a member. It does not compare the members in skip, which
// hold the conversation or the tools that [DecodeTools] decoded; an empty list of tools is
// compared.
func (t Target) KeepUnknownFields(req *llm.Request, body rawjson.Value, skip ...string) error {
	t = t.ForSettings(req.Settings)
	if len(req.Tools) == 0 {
		skip = slices.DeleteFunc(skip, func(member string) bool { return member == "tools" })
	}
	body = rawjson.Without(body, skip...)
	var probe rawjson.Value
	for _, simpler := range []func(){
		func() {},
		func() { req.Settings.Reasoning.Hidden = true },
		func() { req.Settings.Reasoning = llm.Reasoning{Hidden: true} },
		func() { req.Stream = false },
	} {
		simpler()
		bare := *req
		bare.Messages = nil
		v, err := t.Encode(&bare)
		if err != nil {
			return err
		}
		if probe = rawjson.Without(v, skip...); !hasOtherMembers(probe, body) {
			break
		}
	}
	var extra rawjson.Object
	for key, m := range body.Members() {
		if !rawjson.Equal(probe.Get(key), m) {
			extra.Set(key, m)
		}
	}
	if !rawjson.IsEmpty(extra.Bytes()) {
		req.Settings.Extra = bytes.Clone(extra.Bytes())
	}
	return nil
}

// hasOtherMembers reports whether object v has a member that than does not have.
func hasOtherMembers(v, than rawjson.Value) bool {
	for key := range v.Members() {
		if than.Get(key) == nil {
			return true
		}
	}
	return false
}

// DecodeTools decodes the definitions of tools. encode is the dialect's encoder: a tool that it
// would write differently keeps its JSON.
func DecodeTools(list rawjson.Value, encode func([]llm.Tool) rawjson.Value) []llm.Tool {
	var tools []llm.Tool
	for v := range list.Elements() {
		tool, err := ParseTool(v)
		if err != nil {
			tool = llm.Tool{Name: v.Get("name").Text()}
		}
		if len(tool.Native) == 0 && (err != nil || !rawjson.Equal(encode([]llm.Tool{tool}).At(0), v)) {
			tool.Native = bytes.Clone(v)
		}
		tools = append(tools, tool)
	}
	return tools
}

// DecodeNumber returns a number; nil if v is not a number.
func DecodeNumber(v rawjson.Value) *float64 {
	if v.Kind() != rawjson.KindNumber {
		return nil
	}
	f, err := strconv.ParseFloat(string(v), 64)
	if err != nil {
		return nil
	}
	return &f
}

// DecodeCommon decodes the settings that [SetCommon] sets; limit is the field of the output
// limit.
func DecodeCommon(v rawjson.Value, limit string) llm.Settings {
	return llm.Settings{MaxOutputTokens: DecodeTokenLimit(v.Get(limit)), Temperature: DecodeNumber(v.Get("temperature"))}
}

// DecodeTokenLimit returns a number of tokens; 0 if v is not a positive integer.
func DecodeTokenLimit(v rawjson.Value) int {
	n, _ := v.Int()
	return int(max(n, 0))
}

// AppendMessage appends blocks to a conversation as a message of a role. Consecutive tool
// results get a message of their own.
func AppendMessage(list []content.Message, role content.Role, blocks ...content.Block) []content.Message {
	for i, b := range blocks {
		to := role
		if result, ok := b.(content.ToolResult); ok && !result.Server {
			to = content.RoleTool
		}
		last := len(list) - 1
		if last >= 0 && list[last].Role == to && (i > 0 || to == content.RoleTool) {
			list[last].Blocks = append(list[last].Blocks, b)
			continue
		}
		list = append(list, content.Message{Role: to, Blocks: []content.Block{b}})
	}
	return list
}

// InRole returns a block that was read as part of a response, changed for a message of a role.
func InRole(b content.Block, role content.Role) content.Block {
	switch b := b.(type) {
	case content.Text:
		b.Of = TextKind(role)
		return b
	case content.Media:
		if b.SetRole(role); role == content.RoleUser {
			b.SetRole(content.NoRole) // the default for media
		}
		return b
	case content.Native:
		b.SetRole(role)
		return b
	}
	return b
}

// TextKind returns the kind of a text block in a message of a role.
func TextKind(role content.Role) content.Kind {
	switch role {
	case content.RoleSystem:
		return content.KindSystem
	case content.RoleAssistant:
		return content.KindAssistant
	}
	return content.KindUser
}

// PendingCalls are the calls of a request that have no result yet.
type PendingCalls []content.ToolCall

// Match finds the call of a result, for APIs in which the result need not have a call id. With
// an id it is the call with that id; else with a name the first call of that tool; else the
// first call. Match removes the call and sets the call id of the result.
func (o *PendingCalls) Match(r *content.ToolResult) {
	at := slices.IndexFunc(*o, func(c content.ToolCall) bool {
		if r.CallID != "" {
			return c.CallID == r.CallID
		}
		return r.Name == "" || c.Name == r.Name
	})
	if at >= 0 {
		r.CallID = (*o)[at].CallID
		*o = slices.Delete(*o, at, at+1)
	}
}

// ParseTool decodes the definition of one tool: in OpenAI's form, nested under function or flat,
// in Anthropic's form, or as a provider's own tool, whose JSON it keeps.
func ParseTool(v rawjson.Value) (llm.Tool, error) {
	if v.Kind() != rawjson.KindObject {
		return llm.Tool{}, fmt.Errorf("want an object, have %s %s", v.Kind(), rawjson.Excerpt(v))
	}
	kind, name := v.Get("type").Text(), v.Get("name").Text()
	inner := v
	if f := v.Get("function"); f.Kind() == rawjson.KindObject {
		inner, name = f, f.Get("name").Text()
	}
	schema := inner.Get("parameters")
	for _, key := range []string{"input_schema", "inputSchema"} {
		if schema == nil {
			schema = inner.Get(key)
		}
	}
	switch {
	case kind != "" && kind != "function" && schema == nil:
		return llm.Tool{Name: name, Native: bytes.Clone(v)}, nil
	case name == "":
		return llm.Tool{}, errors.New(`it has no "name"`)
	case schema != nil && schema.Kind() != rawjson.KindNull && schema.Kind() != rawjson.KindObject:
		return llm.Tool{}, fmt.Errorf("%q: its schema is no object but %s", name, schema.Kind())
	}
	t := llm.Tool{Name: name, Description: inner.Get("description").Text()}
	if schema.Kind() == rawjson.KindObject {
		t.Schema = bytes.Clone(schema)
	}
	return t, nil
}

// MessageReader reads the messages of a request one by one. The last message may still grow
// with the next call of Next, because consecutive results are one message.
type MessageReader interface {
	// Next reads the next element of the list.
	Next(v rawjson.Value) error
	// End is called after the last element.
	End() error
	// Messages returns the messages so far.
	Messages() *[]content.Message
	// Copy returns a reader in the same state. Each reads on without an effect on the other.
	Copy() MessageReader
}

// MessageList collects the messages of a [MessageReader]. A reader that embeds it needs only
// the method Next, unless it holds back elements until End.
type MessageList struct{ list []content.Message }

// Append appends blocks as a message of a role, as [AppendMessage] does.
func (l *MessageList) Append(role content.Role, blocks ...content.Block) {
	l.list = AppendMessage(l.list, role, blocks...)
}

// CopyList returns a list to which messages can be appended without an effect on l. The blocks are
// shared.
func (l *MessageList) CopyList() MessageList {
	list := slices.Clone(l.list)
	if n := len(list); n > 0 {
		list[n-1].Blocks = slices.Clip(list[n-1].Blocks)
	}
	return MessageList{list}
}

// End does nothing.
func (l *MessageList) End() error { return nil }

// Messages returns the messages so far.
func (l *MessageList) Messages() *[]content.Message { return &l.list }
