package providers

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/llm"
)

// requestInteractions reads a request body.
func requestInteractions(t target, v rawjson.Value) (*llm.Request, error) {
	config := v.Get("generation_config")
	req := &llm.Request{Tools: askedTools(v.Get("tools"), interactionsTools), Stream: v.Get("stream").Bool(), Settings: llm.Settings{
		Model: v.Get("model").Text(), MaxOutputTokens: askedLimit(config.Get("max_output_tokens")), Temperature: askedNumber(config.Get("temperature")),
		ToolChoice: config.Get("tool_choice").Text(),
		Reasoning:  llm.Reasoning{Effort: config.Get("thinking_level").Text(), Hidden: config.Get("thinking_summaries").Text() != "auto"},
	}}
	q := interactionsRequest{interactions: interactions{output: &output{target: t}}}
	if text := v.Get("system_instruction").Text(); text != "" {
		q.list = say(q.list, content.RoleSystem, content.Text{Wire: q.form(), Of: content.KindSystem, Text: text})
	}
	switch input := v.Get("input"); input.Kind() {
	case rawjson.KindString:
		q.list = say(q.list, content.RoleUser, content.Text{Wire: q.form(), Of: content.KindUser, Text: input.Text()})
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
	return req, t.settle(req, v, "input", "system_instruction")
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
		return fmt.Errorf("want a step with a type, have %q", excerpt(v))
	case kind != "user_input" && kind != "function_result":
		q.said.Add(v)
		return nil
	}
	if err := q.answer(); err != nil {
		return err
	}
	if kind == "function_result" {
		q.list = say(q.list, content.RoleTool, q.result(v))
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
	q.list = say(q.list, content.RoleUser, blocks...)
	return nil
}

// answer ends the steps of an answer: those of a response.
func (q *interactionsRequest) answer() error {
	steps := q.said.Bytes()
	if steps.At(0) == nil {
		return nil
	}
	blocks, err := q.answered(rawjson.NewObject("status", "completed", "steps", steps).Bytes())
	q.said = rawjson.Array{}
	q.list = say(q.list, content.RoleAssistant, blocks...)
	return err
}

// result reads what came of a call.
func (q *interactionsRequest) result(v rawjson.Value) content.Block {
	i := item{Value: v}
	i.take("type")
	b := content.ToolResult{Wire: q.form(), CallID: i.text("call_id"), Name: i.text("name")}
	if r := i.take("result"); r.Kind() == rawjson.KindString {
		b.Text = r.Text()
	} else {
		b.Parts = bytes.Clone(r)
	}
	b.IsError = i.isError()
	b.SetExtra(i.rest())
	return b
}
