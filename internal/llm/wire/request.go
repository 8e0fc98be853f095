package wire

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/llm"
)

// errNoMessages says that a body holds no conversation.
var ErrNoMessages = errors.New(`want an array under "messages"`)

// settle makes the settings of a request give the body again: what encode would
// leave out or write in another way goes into Extra, and a field that makes encode
// write what the body does not have is given up. said is the members of the body
// that hold the conversation; they are not looked at.
func (t Target) KeepUnknownFields(req *llm.Request, body rawjson.Value, text ...string) error {
	t = t.ForSettings(req.Settings)
	body = rawjson.Without(body, text...)
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
		if probe = rawjson.Without(v, text...); !hasMore(probe, body) {
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

// more tells whether an object has a member that another has not.
func hasMore(v, than rawjson.Value) bool {
	for key := range v.Members() {
		if than.Get(key) == nil {
			return true
		}
	}
	return false
}

// askedTools reads a list of definitions as the body has it. written is what
// encode makes of them: one that comes out otherwise keeps its JSON.
func DecodeTools(list rawjson.Value, written func([]llm.Tool) rawjson.Value) []llm.Tool {
	var tools []llm.Tool
	for v := range list.Elements() {
		tool, err := ParseTool(v)
		if err != nil {
			tool = llm.Tool{Name: v.Get("name").Text()}
		}
		if len(tool.Native) == 0 && (err != nil || !rawjson.Equal(written([]llm.Tool{tool}).At(0), v)) {
			tool.Native = bytes.Clone(v)
		}
		tools = append(tools, tool)
	}
	return tools
}

// askedNumber is a number of a body as a setting, nil when it is none.
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

// askedLimit is a number of tokens of a body, 0 when it is none.
func DecodeTokenLimit(v rawjson.Value) int {
	n, _ := v.Int()
	return int(max(n, 0))
}

// answered reads an answer of the model that a request repeats, given as the body
// of a response.
func (t Target) DecodeAssistant(body rawjson.Value) ([]content.Block, error) {
	r, err := llm.Collect(t.Decode(bytes.NewReader(body), llm.FramingJSON), nil)
	if r == nil || err != nil && !errors.Is(err, llm.ErrTruncated) {
		return nil, err
	}
	return r.Blocks, nil
}

// say adds blocks to a conversation. What tools gave is a message of its own.
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

// textOf is the kind of a text that a role says.
func TextKind(role content.Role) content.Kind {
	switch role {
	case content.RoleSystem:
		return content.KindSystem
	case content.RoleAssistant:
		return content.KindAssistant
	}
	return content.KindUser
}

// owed is the calls that a request has no result for, so far.
type PendingCalls []content.ToolCall

// answers tells which call a result is for, of formats in which it need not say: the
// one with its id, else the first of its name, else the first.
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

// talk reads the messages of a request one after the other. A message that was read
// may still grow: results of tools that follow one another are one message.
type MessageReader interface {
	// next reads the next element of the list.
	Next(v rawjson.Value) error
	// end is called when there are no more.
	End() error
	// gathered is the messages so far.
	Messages() *[]content.Message
}

// readTalk reads a list whose member of a request has a name.
func ReadMessages(q MessageReader, member string, list rawjson.Value) ([]content.Message, error) {
	n := 0
	for v := range list.Elements() {
		if err := q.Next(v); err != nil {
			return nil, fmt.Errorf("%s[%d]: %w", member, n, err)
		}
		n++
	}
	if err := q.End(); err != nil {
		return nil, fmt.Errorf("%s[%d]: %w", member, n, err)
	}
	return *q.Messages(), nil
}
