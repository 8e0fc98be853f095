package openai

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
	"github.com/tract-vcs/tract/llm"
)

// decodeResponsesRequest reads a request body.
func decodeResponsesRequest(t wire.Target, v rawjson.Value) (*llm.Request, error) {
	req := &llm.Request{Settings: decodeResponsesSettings(t.Quirks, v), Stream: v.Get("stream").Bool()}
	req.Tools = wire.DecodeTools(v.Get("tools"), encodeResponsesTools)
	q := newResponsesItemReader(t).(*responsesItemReader)
	switch input := v.Get("input"); input.Kind() {
	case rawjson.KindString:
		req.Messages = wire.AppendMessage(nil, content.RoleUser, content.Text{Wire: t.BlockForm(), Of: content.KindUser, Text: input.Text()})
		err := q.keepUnknownFields(req, v)
		req.Settings.Extra = rawjson.WithMember(req.Settings.Extra, extraInputString, rawjson.Value("true"))
		return req, err
	case rawjson.KindArray:
	default:
		return nil, errors.New(`want a string or an array under "input"`)
	}
	var err error
	if req.Messages, err = wire.ReadMessages(q, "input", v.Get("input")); err != nil {
		return nil, err
	}
	err = q.keepUnknownFields(req, v)
	if q.hasItemIDs {
		req.Settings.Extra = rawjson.WithMember(req.Settings.Extra, extraItemIDs, rawjson.Value("true"))
	}
	return req, err
}

// Members of the extra of the settings that hold how the input of a request was written,
// see [wire.ExtraForm].
const (
	extraInputString = "$input_string" // true: the input is a string
	extraItemIDs     = "$item_ids"     // true: items of the model have their ids, and none is left out
)

// keepUnknownFields is [wire.Target.KeepUnknownFields]. A body that leaves it to the
// provider whether to keep the conversation stays so.
func (q *responsesItemReader) keepUnknownFields(req *llm.Request, v rawjson.Value) error {
	if v.Get("store") != nil {
		return q.Target.KeepUnknownFields(req, v, "input")
	}
	err := q.Target.KeepUnknownFields(req, v, "input", "store")
	req.Settings.Extra = rawjson.WithMember(req.Settings.Extra, "store", rawjson.Value("null"))
	return err
}

// decodeResponsesSettings reads the settings.
func decodeResponsesSettings(w wire.Quirks, v rawjson.Value) llm.Settings {
	s := llm.Settings{
		Model: v.Get("model").Text(), MaxOutputTokens: wire.DecodeTokenLimit(v.Get("max_output_tokens")),
		Temperature: wire.DecodeNumber(v.Get("temperature")), ToolChoice: v.Get("tool_choice").Text(),
	}
	if choice := v.Get("tool_choice"); s.ToolChoice == "" {
		s.ToolChoice = cmp.Or(choice.Get("name").Text(), choice.Get("type").Text())
	}
	r := v.Get("reasoning")
	s.Reasoning = llm.Reasoning{Effort: r.Get("effort").Text(), Summary: r.Get("summary").Text()}
	if w.EffortObject == "reasoning" {
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
	list           []content.Message
	assistantItems []rawjson.Value // items of the message of the model that is being read
	pendingCalls   map[string]bool // calls without a result so far
	order          wire.ResultOrder
	hasItemIDs     bool // an item of the model has an id, or is reasoning
}

func newResponsesItemReader(t wire.Target) wire.MessageReader {
	return &responsesItemReader{Target: t, pendingCalls: map[string]bool{}}
}

func (q *responsesItemReader) Messages() *[]content.Message { return &q.list }

// Next reads one item.
func (q *responsesItemReader) Next(v rawjson.Value) error {
	kind, role := v.Get("type").Text(), v.Get("role").Text()
	switch {
	case role == "assistant", role == "" && kind != "" && !isClientResult(v, q.pendingCalls) && kind != "item_reference":
		q.assistantItems = append(q.assistantItems, bytes.Clone(v)) // whose memory may be used again
		q.hasItemIDs = q.hasItemIDs || kind == "reasoning" || v.Get("id") != nil
		if awaitsResult(v) {
			q.pendingCalls[v.Get("call_id").Text()] = true
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
		q.list = wire.AppendMessage(q.list, content.RoleSystem, q.messageBlocks(content.RoleSystem, v)...)
	case role != "":
		q.list = wire.AppendMessage(q.list, content.RoleUser, q.messageBlocks(content.RoleUser, v)...)
	case kind == "item_reference":
		b := content.Native{Wire: q.BlockForm(), JSON: string(v)}
		b.SetType(kind)
		b.SetRole(content.RoleUser)
		q.list = wire.AppendMessage(q.list, content.RoleUser, b)
	default:
		result := []content.Block{q.readResult(v)}
		q.order.Note(result)
		q.list = wire.AppendMessage(q.list, content.RoleTool, result...)
	}
	return nil
}

// End reads the items of the model that were collected, as the output of a response.
func (q *responsesItemReader) End() error {
	if len(q.assistantItems) == 0 {
		return nil
	}
	var body rawjson.Object
	var list rawjson.Array
	for _, v := range q.assistantItems {
		if v.Get("type") == nil {
			v = rawjson.NewObject("type", "message", memberUntyped, rawjson.Value("true")).Merge(v).Bytes()
		}
		list.Add(v)
	}
	body.SetString("object", "response")
	body.SetString("status", "completed")
	body.Set("output", list.Bytes())
	q.assistantItems = nil
	blocks, err := q.DecodeAssistant(body.Bytes())
	q.order.Note(blocks)
	q.list = wire.AppendMessage(q.list, content.RoleAssistant, blocks...)
	return err
}

// memberUntyped marks a message of the model that has no type in the request.
const memberUntyped = "$untyped"

// extraItemForm is the member of a block's extra that keeps the members of the message
// around it; content is true there for a content that is a string.
const extraItemForm = "$item"

// messageBlocks reads a message of text, or of a list of parts.
func (q *responsesItemReader) messageBlocks(role content.Role, v rawjson.Value) []content.Block {
	var list []content.Block
	c := v.Get("content")
	if c.Kind() == rawjson.KindString {
		list = append(list, content.Text{Wire: q.BlockForm(), Of: wire.TextKind(role), Text: c.Text()})
	}
	for part := range c.Elements() {
		list = append(list, q.readPart(role, part))
	}
	if len(list) == 0 { // such as a change of the tools
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

// inOriginalForm returns a message of a request the role, the members and the form of
// content with which it came.
func (p *responsesEncoder) inOriginalForm(b content.Block, v rawjson.Value) rawjson.Value {
	form := rawjson.Value(b.Form().Extra).Get(extraItemForm)
	if !p.Owns(b) || form.Kind() != rawjson.KindObject {
		return v
	}
	o := new(rawjson.Object).Merge(rawjson.Without(form, "content"))
	o.Set("content", v.Get("content"))
	if parts := v.Get("content"); form.Get("content").Bool() && parts.At(0) != nil && parts.At(1) == nil {
		o.Set("content", parts.At(0).Get("text"))
	}
	return o.Bytes()
}

// readPart reads a part of a content that is a list.
func (q *responsesItemReader) readPart(role content.Role, v rawjson.Value) content.Block {
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

// readResult reads the result of a call.
func (q *responsesItemReader) readResult(v rawjson.Value) content.Block {
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
