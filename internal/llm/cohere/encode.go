package cohere

import (
	"strings"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
	"github.com/tract-vcs/tract/llm"
)

// encode writes a request.
func encode(t wire.Target, req *llm.Request) (rawjson.Value, error) {
	s := req.Settings
	body := rawjson.NewObject("model", t.Model)
	p := encoder{Target: t}
	for _, m := range req.Messages {
		p.addMessage(m)
	}
	p.results.Flush(&p.list)
	body.Set("messages", p.list.Bytes())
	if len(req.Tools) > 0 {
		body.Set("tools", wire.FunctionTools(req.Tools))
		switch s.ToolChoice {
		case "", "auto":
		case "none":
			body.SetString("tool_choice", "NONE")
		default: // no tool can be named
			body.SetString("tool_choice", "REQUIRED")
		}
	}
	wire.SetCommon(body, s, "max_tokens")
	body.Set("thinking", encodeReasoningSettings(s.Reasoning))
	body.SetBool("stream", req.Stream)
	return t.FinishBody(body, s)
}

// encodeReasoningSettings returns the value of thinking; nil when the settings have neither an
// effort nor a budget. Efforts above medium have no budget.
func encodeReasoningSettings(r llm.Reasoning) rawjson.Value {
	budget := r.MaxTokens
	switch {
	case budget > 0:
	case r.Effort == "":
		return nil
	case r.Effort == "none":
		return rawjson.NewObject("type", "disabled").Bytes()
	case r.Effort == "minimal" || r.Effort == "low" || r.Effort == "medium":
		budget = wire.EffortBudgets[r.Effort]
	}
	o := rawjson.NewObject("type", "enabled")
	if budget > 0 {
		o.SetInt("token_budget", int64(budget))
	}
	return o.Bytes()
}

// encodeAssistantMessage returns the message for the blocks of one response.
func encodeAssistantMessage(t wire.Target, blocks []content.Block) rawjson.Value {
	p := encoder{Target: t}
	return p.encodeAssistant(blocks)
}

// encoder encodes the messages of a request.
type encoder struct {
	wire.Target
	results wire.ResultQueue
	list    rawjson.Array
}

// addMessage adds a message. Results are messages of their own.
func (p *encoder) addMessage(m content.Message) {
	if m.Role == content.RoleAssistant {
		p.results.BeginResponse(m.Blocks, &p.list)
		p.list.Add(p.encodeAssistant(m.Blocks))
		return
	}
	var parts rawjson.Array
	var texts []string
	mixed := false
	for _, b := range m.Blocks {
		switch b := b.(type) {
		case content.ToolResult:
			p.queueResult(b)
		case content.Text:
			texts = append(texts, b.Text)
			parts.Add(encodeText("text", b.Text))
		case content.Media:
			v := encodeImageOrTextFile(b)
			mixed = mixed || v != nil
			parts.Add(v)
		}
	}
	if rawjson.IsEmpty(parts.Bytes()) || m.Role == content.NoRole {
		return
	}
	o := rawjson.NewObject("role", "user")
	if m.Role == content.RoleSystem {
		o.SetString("role", "system")
	}
	if mixed || len(m.Blocks) > 0 && p.FormOf(m.Blocks[0]).Get("list").Bool() {
		o.Set("content", parts.Bytes())
	} else {
		o.SetString("content", strings.Join(texts, "\n\n"))
	}
	p.results.Flush(&p.list)
	p.list.Add(o.Bytes())
}

// encodeText returns a part of a content whose text is in a member named like its type.
func encodeText(kind, text string) rawjson.Value {
	return rawjson.NewObject("type", kind, kind, text).Bytes()
}

// encodeImageOrTextFile returns an image, or the text of a text file; nil for other media.
func encodeImageOrTextFile(m content.Media) rawjson.Value {
	url := m.URL
	switch media, data, inline := wire.InlineData(m); {
	case m.Of != content.KindImage && inline && strings.HasPrefix(media, "text/"):
		return encodeText("text", data)
	case m.Of != content.KindImage:
		return nil
	case inline:
		url = wire.DataURL(media, data)
	}
	return rawjson.NewObject("type", "image_url", "image_url", rawjson.NewObject("url", url)).Bytes()
}

// encodeAssistant returns a message of the model; nil when nothing of it can be sent.
// Reasoning is plain text here, so reasoning of other dialects is sent too.
func (p *encoder) encodeAssistant(blocks []content.Block) rawjson.Value {
	var o, more rawjson.Object
	var parts, calls rawjson.Array
	var plan strings.Builder
	for _, b := range blocks {
		switch b := b.(type) {
		case content.Text:
			switch {
			case b.Text == "":
			case p.Owns(b) && b.Form().Type == typePlan:
				plan.WriteString(b.Text)
			default:
				parts.Add(p.withExtra(b, encodeText("text", b.Text)))
			}
		case content.Reasoning:
			if text := b.String(); text != "" {
				parts.Add(p.withExtra(b, encodeText("thinking", text)))
			}
		case content.ToolCall:
			if !b.Server {
				calls.Add(p.encodeCall(b))
			}
		case content.Native:
			if strings.HasPrefix(b.Form().Type, typeContentPart) {
				parts.Add(p.NativeJSON(b))
			} else {
				more.Set(b.Form().Type, p.NativeJSON(b))
			}
		}
	}
	o.SetString("role", "assistant")
	var form rawjson.Value
	if len(blocks) > 0 {
		form = p.FormOf(blocks[0])
	}
	if text := parts.Bytes().At(0).Get("text"); form.Get("string").Bool() && text != nil && parts.Bytes().At(1) == nil {
		o.Set("content", text)
	} else {
		o.Set("content", rawjson.NonEmpty(parts.Bytes()))
	}
	if plan.Len() > 0 {
		o.SetString(typePlan, plan.String())
	}
	o.Set("tool_calls", rawjson.NonEmpty(calls.Bytes()))
	o.Merge(more.Bytes())
	o.Merge(form.Get("empty"))
	if !rawjson.HasContent(rawjson.Without(o.Bytes(), "role")) {
		return nil
	}
	return o.Bytes()
}

// withExtra returns a part with its other members, if it came from this dialect.
func (p *encoder) withExtra(b content.Block, v rawjson.Value) rawjson.Value {
	return new(rawjson.Object).Merge(v).Merge(p.Extra(b)).Bytes()
}

func (p *encoder) encodeCall(c content.ToolCall) rawjson.Value {
	args := c.Arguments
	if !p.Owns(c) {
		args = string(wire.ArgumentsObject(args))
	}
	f := rawjson.NewObject("name", c.Name, "arguments", args).Merge(p.Extra(c).Get("function"))
	return rawjson.NewObject("id", c.CallID, "type", "function", "function", f).Merge(p.Extra(c)).Bytes()
}

// queueResult adds a tool result to the queue of results.
func (p *encoder) queueResult(r content.ToolResult) {
	if r.Server {
		return
	}
	p.results.Add(r.CallID, rawjson.NewObject("role", "tool", "tool_call_id", r.CallID, "content", p.ResultValue(r)).Bytes(), p.FormOf(r))
}
