package openai

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
	"github.com/tract-vcs/tract/llm"
)

// decodeResponsesRequest decodes a request body.
func decodeResponsesRequest(t wire.Target, v rawjson.Value) (*llm.Request, error) {
	req := &llm.Request{Settings: decodeKnownResponsesSettings(t.Quirks, v), Stream: v.Get("stream").Bool()}
	req.Tools = wire.DecodeTools(v.Get("tools"), encodeResponsesTools)
	q := newResponsesItemReader(t).(*responsesItemReader)
	var skip, written []string // members not to compare; markers for how the input was written
	if v.Get("store") == nil {
		skip = append(skip, "store")
	}
	var err error
	switch input := v.Get("input"); input.Kind() {
	case rawjson.KindString:
		q.Append(content.RoleUser, content.Text{Wire: t.BlockForm(), Of: content.KindUser, Text: input.Text()})
		req.Messages = *q.Messages()
		written = append(written, extraInputString)
		err = t.KeepUnknownFields(req, v, append(skip, "input")...)
	case rawjson.KindArray:
		_, err = t.DecodeMessages(req, v, q, "input", skip...)
	default:
		err = errors.New(`want a string or an array under "input"`)
	}
	if err != nil {
		return nil, err
	}
	if q.hasItemIDs {
		written = append(written, extraItemIDs)
	}
	if v.Get("store") == nil { // the provider decides whether to keep the conversation
		req.Settings.Extra = rawjson.WithMember(req.Settings.Extra, "store", rawjson.Value("null"))
	}
	for _, name := range written {
		req.Settings.Extra = rawjson.WithMember(req.Settings.Extra, name, rawjson.Value("true"))
	}
	return req, nil
}

// Members of the settings' extra that keep how the input of a request was written; see
// [wire.ExtraForm].
const (
	extraInputString = "$input_string" // true: the input is a string
	extraItemIDs     = "$item_ids"     // true: items of the model have their ids, and none is left out
)

// decodeKnownResponsesSettings decodes the settings of request body v that tract knows; the
// caller keeps the other members.
func decodeKnownResponsesSettings(quirks wire.Quirks, v rawjson.Value) llm.Settings {
	s := wire.DecodeCommon(v, "max_output_tokens")
	s.Model = v.Get("model").Text()
	choice := v.Get("tool_choice")
	s.ToolChoice = cmp.Or(choice.Text(), choice.Get("name").Text(), choice.Get("type").Text())
	r := v.Get("reasoning")
	s.Reasoning = llm.Reasoning{Effort: r.Get("effort").Text(), Summary: r.Get("summary").Text()}
	if quirks.EffortObject == "reasoning" {
		s.Reasoning.MaxTokens = wire.DecodeTokenLimit(r.Get("max_tokens"))
	}
	if s.Reasoning.Summary == "" {
		s.Reasoning.Summary = "none"
	}
	return s
}

// responsesItemReader reads the items of a request.
type responsesItemReader struct {
	wire.Target
	wire.MessageList
	assistantItems []rawjson.Value // consecutive items of the model that End reads as one response
	clientCalls    map[string]bool // ids of calls that need a result from the client
	order          wire.ResultOrder
	hasItemIDs     bool // an item of the model has an id, or is reasoning
}

func newResponsesItemReader(t wire.Target) wire.MessageReader {
	return &responsesItemReader{Target: t, clientCalls: map[string]bool{}}
}

// Copy returns an independent copy of the reader.
func (q *responsesItemReader) Copy() wire.MessageReader {
	c := *q
	c.MessageList, c.order = q.CopyList(), q.order.Copy()
	c.assistantItems, c.clientCalls = slices.Clip(q.assistantItems), maps.Clone(q.clientCalls)
	return &c
}

// Next reads one item.
func (q *responsesItemReader) Next(v rawjson.Value) error {
	kind, role, callID := v.Get("type").Text(), v.Get("role").Text(), v.Get("call_id").Text()
	switch {
	case role == "assistant", role == "" && kind != "" && !isClientResult(v, q.clientCalls[callID]) && kind != "item_reference":
		q.assistantItems = append(q.assistantItems, bytes.Clone(v)) // the caller may reuse the memory of v
		q.hasItemIDs = q.hasItemIDs || kind == "reasoning" || v.Get("id") != nil
		if isClientCall(v) {
			q.clientCalls[callID] = true
		}
		return nil
	case role == "" && kind == "":
		return fmt.Errorf("want an item with a type or a role, have %q", rawjson.Excerpt(v))
	}
	if err := q.End(); err != nil {
		return err
	}
	switch {
	case role == "system", role == "developer":
		q.Append(content.RoleSystem, q.messageBlocks(content.RoleSystem, v)...)
	case role != "":
		q.Append(content.RoleUser, q.messageBlocks(content.RoleUser, v)...)
	case kind == "item_reference":
		b := content.Native{Wire: q.BlockForm(), JSON: string(v)}
		b.SetType(kind)
		b.SetRole(content.RoleUser)
		q.Append(content.RoleUser, b)
	default:
		result := []content.Block{q.resultBlock(v)}
		q.order.Note(result)
		q.Append(content.RoleTool, result...)
	}
	return nil
}

// End reads the collected items of the model as the output of one response.
func (q *responsesItemReader) End() error {
	if len(q.assistantItems) == 0 {
		return nil
	}
	var list rawjson.Array
	for _, v := range q.assistantItems {
		if v.Get("type") == nil {
			v = rawjson.NewObject("type", "message", memberUntyped, rawjson.Value("true")).Merge(v).Bytes()
		}
		list.Add(v)
	}
	q.assistantItems = nil
	blocks, err := q.DecodeAssistant(rawjson.NewObject("object", "response", "status", "completed", "output", list.Bytes()).Bytes())
	q.order.Note(blocks)
	q.Append(content.RoleAssistant, blocks...)
	return err
}

// memberUntyped marks a message of the model that has no type in the request.
const memberUntyped = "$untyped"

// extraItemForm is the member of a block's extra that keeps the members of its message. Its
// member content is true if the content of the message is a string.
const extraItemForm = "$item"

// messageBlocks returns the blocks of message v, whose content is a string or a list of
// parts. The extra of the first block keeps the other members.
func (q *responsesItemReader) messageBlocks(role content.Role, v rawjson.Value) []content.Block {
	var list []content.Block
	c := v.Get("content")
	if c.Kind() == rawjson.KindString {
		list = append(list, content.Text{Wire: q.BlockForm(), Of: wire.TextKind(role), Text: c.Text()})
	}
	for part := range c.Elements() {
		list = append(list, q.partBlock(role, part))
	}
	if len(list) == 0 { // a message without content, such as a change of the tools
		b := content.Native{Wire: q.BlockForm(), JSON: string(v)}
		b.SetType("message")
		b.SetRole(role)
		return []content.Block{b}
	}
	form := new(rawjson.Object).Merge(rawjson.Without(v, "content"))
	form.SetTrue("content", c.Kind() == rawjson.KindString)
	first := list[0].Form()
	first.Extra = rawjson.WithMember(first.Extra, extraItemForm, form.Bytes())
	list[0] = content.WithForm(list[0], first)
	return list
}

// withOriginalForm returns message with the role, the other members and the form of content
// that the decoded message had, which its first block keeps.
func (p *responsesEncoder) withOriginalForm(message rawjson.Value, firstBlock content.Block) rawjson.Value {
	form := rawjson.Value(firstBlock.Form().Extra).Get(extraItemForm)
	if !p.Owns(firstBlock) || form.Kind() != rawjson.KindObject {
		return message
	}
	o := new(rawjson.Object).Merge(rawjson.Without(form, "content"))
	o.Set("content", message.Get("content"))
	if parts := message.Get("content"); form.Get("content").Bool() && parts.At(0) != nil && parts.At(1) == nil {
		o.Set("content", parts.At(0).Get("text"))
	}
	return o.Bytes()
}

// partBlock reads a part of a content list.
func (q *responsesItemReader) partBlock(role content.Role, v rawjson.Value) content.Block {
	i := rawjson.ObjectReader{Value: v}
	kind := i.TakeText("type")
	p := responsesEncoder{Target: q.Target}
	m := content.Media{Wire: q.BlockForm()}
	switch kind {
	case "input_text", "text", "output_text":
		b := content.Text{Wire: q.BlockForm(), Of: wire.TextKind(role), Text: i.TakeString("text")}
		rest := new(rawjson.Object).Merge(i.Rest())
		if kind != "input_text" {
			rest.SetString("type", kind)
		}
		if !rawjson.IsEmpty(rest.Bytes()) {
			b.SetExtra(rawjson.WithMember(nil, extraItemPart, bytes.Clone(rest.Bytes())))
		}
		return b
	case "input_image":
		m.Of, m.URL = content.KindImage, i.TakeText("image_url")
	case "input_file":
		m.Of, m.URL = content.KindFile, i.TakeText("file_url")
		if data := i.TakeText("file_data"); data != "" {
			m.URL, m.Name = data, i.TakeText("filename")
		}
	}
	m.SetExtra(i.Rest())
	for _, read := range []content.Media{wire.Inlined(m), m} {
		if read.Of != 0 && rawjson.Equal(p.encodeMedia(read), v) {
			return read
		}
	}
	b := content.Native{Wire: q.BlockForm(), JSON: string(v)}
	b.SetType(typeItemPart + kind)
	b.SetRole(role)
	return b
}

// resultBlock reads an item that is the result of a call.
func (q *responsesItemReader) resultBlock(v rawjson.Value) content.Block {
	i := rawjson.ObjectReader{Value: v}
	i.Take("type")
	b := content.ToolResult{Wire: q.BlockForm(), CallID: i.TakeText("call_id")}
	if out := i.Take("output"); out.Kind() == rawjson.KindString {
		b.Text = out.Text()
	} else {
		b.Parts = bytes.Clone(out)
	}
	b.SetExtra(i.Rest())
	return b
}
