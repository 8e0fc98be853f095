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

// requestInteractions reads a request body.
func requestInteractions(t wire.Target, v rawjson.Value) (*llm.Request, error) {
	config := v.Get("generation_config")
	req := &llm.Request{Tools: wire.DecodeTools(v.Get("tools"), interactionsTools), Stream: v.Get("stream").Bool(), Settings: llm.Settings{
		Model: v.Get("model").Text(), MaxOutputTokens: wire.DecodeTokenLimit(config.Get("max_output_tokens")), Temperature: wire.DecodeNumber(config.Get("temperature")),
		ToolChoice: config.Get("tool_choice").Text(),
		Reasoning:  llm.Reasoning{Effort: config.Get("thinking_level").Text(), Hidden: config.Get("thinking_summaries").Text() != "auto"},
	}}
	q := interactionsRequest{interactions: interactions{BlockWriter: &wire.BlockWriter{Target: t}}}
	if text := v.Get("system_instruction").Text(); text != "" {
		q.list = wire.AppendMessage(q.list, content.RoleSystem, content.Text{Wire: q.BlockForm(), Of: content.KindSystem, Text: text})
	}
	switch input := v.Get("input"); input.Kind() {
	case rawjson.KindString:
		q.list = wire.AppendMessage(q.list, content.RoleUser, content.Text{Wire: q.BlockForm(), Of: content.KindUser, Text: input.Text()})
	case rawjson.KindArray:
		n := 0
		for step := range input.Elements() {
			if err := q.take(step); err != nil {
				return nil, fmt.Errorf("input[%d]: %w", n, err)
			}
			n++
		}
		if err := q.answer(); err != nil {
			return nil, fmt.Errorf("input[%d]: %w", n, err)
		}
	default:
		return nil, errors.New(`want a string or an array under "input"`)
	}
	req.Messages = q.list
	return req, t.KeepUnknownFields(req, v, "input", "system_instruction")
}

// interactionsRequest reads the steps of a request.
type interactionsRequest struct {
	interactions
	list []content.Message
	said rawjson.Array // steps of the answer that is being gathered
}

func (q *interactionsRequest) take(v rawjson.Value) error {
	kind := v.Get("type").Text()
	switch {
	case v.Kind() != rawjson.KindObject || kind == "":
		return fmt.Errorf("want a step with a type, have %q", rawjson.Excerpt(v))
	case kind != "user_input" && kind != "function_result":
		q.said.Add(v)
		return nil
	}
	if err := q.answer(); err != nil {
		return err
	}
	if kind == "function_result" {
		q.list = wire.AppendMessage(q.list, content.RoleTool, q.result(v))
		return nil
	}
	var blocks []content.Block
	for c := range v.Get("content").Elements() {
		switch b := q.content(c, nil).(type) {
		case content.Text:
			b.Of = content.KindUser
			b.SetType("")
			blocks = append(blocks, b)
		case content.Media:
			b.SetRole(content.NoRole)
			b.SetType("")
			blocks = append(blocks, b)
		case content.Native:
			b.SetRole(content.RoleUser)
			blocks = append(blocks, b)
		}
	}
	q.list = wire.AppendMessage(q.list, content.RoleUser, blocks...)
	return nil
}

// answer ends the steps of an answer: those of a response.
func (q *interactionsRequest) answer() error {
	steps := q.said.Bytes()
	if steps.At(0) == nil {
		return nil
	}
	blocks, err := q.DecodeAssistant(rawjson.NewObject("status", "completed", "steps", steps).Bytes())
	q.said = rawjson.Array{}
	q.list = wire.AppendMessage(q.list, content.RoleAssistant, blocks...)
	return err
}

// result reads what came of a call.
func (q *interactionsRequest) result(v rawjson.Value) content.Block {
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
