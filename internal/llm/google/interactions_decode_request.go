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

// decodeInteractionsRequest reads a request body.
func decodeInteractionsRequest(t wire.Target, v rawjson.Value) (*llm.Request, error) {
	config := v.Get("generation_config")
	req := &llm.Request{Tools: wire.DecodeTools(v.Get("tools"), encodeInteractionsTools), Stream: v.Get("stream").Bool(), Settings: llm.Settings{
		Model: v.Get("model").Text(), MaxOutputTokens: wire.DecodeTokenLimit(config.Get("max_output_tokens")), Temperature: wire.DecodeNumber(config.Get("temperature")),
		ToolChoice: config.Get("tool_choice").Text(),
		Reasoning:  llm.Reasoning{Effort: config.Get("thinking_level").Text(), Hidden: config.Get("thinking_summaries").Text() != "auto"},
	}}
	q := stepReader{interactionsReader: interactionsReader{BlockWriter: &wire.BlockWriter{Target: t}}}
	if text := v.Get("system_instruction").Text(); text != "" {
		q.messages = wire.AppendMessage(q.messages, content.RoleSystem, content.Text{Wire: q.BlockForm(), Of: content.KindSystem, Text: text})
	}
	switch input := v.Get("input"); input.Kind() {
	case rawjson.KindString:
		q.messages = wire.AppendMessage(q.messages, content.RoleUser, content.Text{Wire: q.BlockForm(), Of: content.KindUser, Text: input.Text()})
	case rawjson.KindArray:
		n := 0
		for step := range input.Elements() {
			if err := q.readStep(step); err != nil {
				return nil, fmt.Errorf("input[%d]: %w", n, err)
			}
			n++
		}
		if err := q.endModelSteps(); err != nil {
			return nil, fmt.Errorf("input[%d]: %w", n, err)
		}
	default:
		return nil, errors.New(`want a string or an array under "input"`)
	}
	req.Messages = q.messages
	return req, t.KeepUnknownFields(req, v, "input", "system_instruction")
}

// stepReader reads the steps of a request.
type stepReader struct {
	interactionsReader
	messages   []content.Message
	modelSteps rawjson.Array // steps of the model that are being collected
}

func (q *stepReader) readStep(v rawjson.Value) error {
	kind := v.Get("type").Text()
	switch {
	case v.Kind() != rawjson.KindObject || kind == "":
		return fmt.Errorf("want a step with a type, have %q", rawjson.Excerpt(v))
	case kind != "user_input" && kind != "function_result":
		q.modelSteps.Add(v)
		return nil
	}
	if err := q.endModelSteps(); err != nil {
		return err
	}
	if kind == "function_result" {
		q.messages = wire.AppendMessage(q.messages, content.RoleTool, q.readResult(v))
		return nil
	}
	var blocks []content.Block
	for c := range v.Get("content").Elements() {
		switch b := q.contentBlock(c, nil).(type) {
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
	q.messages = wire.AppendMessage(q.messages, content.RoleUser, blocks...)
	return nil
}

// endModelSteps ends the steps of an answer: those of a response.
func (q *stepReader) endModelSteps() error {
	steps := q.modelSteps.Bytes()
	if steps.At(0) == nil {
		return nil
	}
	blocks, err := q.DecodeAssistant(rawjson.NewObject("status", "completed", "steps", steps).Bytes())
	q.modelSteps = rawjson.Array{}
	q.messages = wire.AppendMessage(q.messages, content.RoleAssistant, blocks...)
	return err
}

// readResult reads the result of a call.
func (q *stepReader) readResult(v rawjson.Value) content.Block {
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
