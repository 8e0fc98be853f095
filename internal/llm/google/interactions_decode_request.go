package google

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
	"github.com/tract-vcs/tract/llm"
)

// decodeInteractionsRequest decodes a request body.
func decodeInteractionsRequest(t wire.Target, v rawjson.Value) (*llm.Request, error) {
	config := v.Get("generation_config")
	req := &llm.Request{Tools: wire.DecodeTools(v.Get("tools"), encodeInteractionsTools), Stream: v.Get("stream").Bool(), Settings: llm.Settings{
		Model: v.Get("model").Text(), MaxOutputTokens: wire.DecodeTokenLimit(config.Get("max_output_tokens")), Temperature: wire.DecodeNumber(config.Get("temperature")),
		ToolChoice: config.Get("tool_choice").Text(),
		Reasoning:  llm.Reasoning{Effort: config.Get("thinking_level").Text(), Hidden: config.Get("thinking_summaries").Text() != "auto"},
	}}
	q := &stepReader{interactionsReader: interactionsReader{BlockWriter: &wire.BlockWriter{Target: t}}}
	if text := v.Get("system_instruction").Text(); text != "" {
		q.Append(content.RoleSystem, content.Text{Wire: q.BlockForm(), Of: content.KindSystem, Text: text})
	}
	switch input := v.Get("input"); input.Kind() {
	case rawjson.KindString:
		q.Append(content.RoleUser, content.Text{Wire: q.BlockForm(), Of: content.KindUser, Text: input.Text()})
		req.Messages = *q.Messages()
		return req, t.KeepUnknownFields(req, v, "input", "system_instruction")
	case rawjson.KindArray:
		return t.DecodeMessages(req, v, q, "input", "system_instruction")
	}
	return nil, errors.New(`want a string or an array under "input"`)
}

// stepReader reads the steps of a request.
type stepReader struct {
	interactionsReader
	wire.MessageList
	modelSteps rawjson.Array // consecutive steps of the model that End reads as one response
}

// Copy returns an independent copy of the reader.
func (q *stepReader) Copy() wire.MessageReader {
	c := *q
	c.MessageList, c.modelSteps = q.CopyList(), rawjson.Array{}
	for step := range q.modelSteps.Bytes().Elements() {
		c.modelSteps.Add(step)
	}
	return &c
}

// Next reads one step.
func (q *stepReader) Next(v rawjson.Value) error {
	kind := v.Get("type").Text()
	switch {
	case v.Kind() != rawjson.KindObject || kind == "":
		return fmt.Errorf("want a step with a type, have %q", rawjson.Excerpt(v))
	case kind != "user_input" && kind != "function_result":
		q.modelSteps.Add(v)
		return nil
	}
	if err := q.End(); err != nil {
		return err
	}
	if kind == "function_result" {
		q.Append(content.RoleTool, q.resultBlock(v))
		return nil
	}
	var blocks []content.Block
	for c := range v.Get("content").Elements() {
		b := wire.InRole(q.contentBlock(c, nil), content.RoleUser)
		if b.Kind() != content.KindNative { // a native block needs its type, which marks it as a content
			form := b.Form()
			form.Type = ""
			b = content.WithForm(b, form)
		}
		blocks = append(blocks, b)
	}
	q.Append(content.RoleUser, blocks...)
	return nil
}

// End reads the collected steps of the model as the steps of one response.
func (q *stepReader) End() error {
	steps := q.modelSteps.Bytes()
	if steps.At(0) == nil {
		return nil
	}
	blocks, err := q.DecodeAssistant(rawjson.NewObject("status", "completed", "steps", steps).Bytes())
	q.modelSteps = rawjson.Array{}
	q.Append(content.RoleAssistant, blocks...)
	return err
}

// resultBlock reads a function_result step, the result of a call.
func (q *stepReader) resultBlock(v rawjson.Value) content.Block {
	i := rawjson.ObjectReader{Value: v}
	i.Take("type")
	b := content.ToolResult{Wire: q.BlockForm(), CallID: i.TakeText("call_id"), Name: i.TakeText("name")}
	if r := i.Take("result"); r.Kind() == rawjson.KindString {
		b.Text = r.Text()
	} else {
		b.Parts = bytes.Clone(r)
	}
	b.IsError = i.TakeIsError()
	b.SetExtra(i.Rest())
	return b
}
