package ollama

import (
	"cmp"
	"strings"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
	"github.com/tract-vcs/tract/llm"
)

// encode writes a request.
func encode(t wire.Target, req *llm.Request) (rawjson.Value, error) {
	s := req.Settings
	var body, options rawjson.Object
	body.SetString("model", t.Model)
	p := encoder{Target: t, calls: map[string]content.ToolCall{}}
	for _, m := range req.Messages {
		p.addMessage(m)
	}
	p.results.Flush(&p.list)
	body.Set("messages", p.list.Bytes())
	if len(req.Tools) > 0 && s.ToolChoice != "none" { // there is no other choice
		body.Set("tools", wire.FunctionTools(req.Tools))
	}
	wire.SetCommon(&options, s, "num_predict")
	body.Set("options", rawjson.NonEmpty(options.Bytes()))
	switch effort := s.Reasoning.Effort; {
	case effort == "none":
		body.SetBool("think", false)
	case effort != "" && strings.Contains(t.Model, "gpt-oss"): // the only one that takes a word
		body.SetString("think", wire.LowMediumHigh(effort))
	case effort != "" || s.Reasoning.MaxTokens > 0:
		body.SetBool("think", true)
	}
	body.SetBool("stream", req.Stream) // Ollama streams by default
	return t.FinishBody(&body, s)
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
	calls   map[string]content.ToolCall // by id
}

// addMessage adds a message. Results are messages of their own.
func (p *encoder) addMessage(m content.Message) {
	if m.Role == content.RoleAssistant {
		p.results.BeginResponse(m.Blocks, &p.list)
		for _, b := range m.Blocks {
			if c, ok := b.(content.ToolCall); ok {
				p.calls[c.CallID] = c
			}
		}
		p.list.Add(p.encodeAssistant(m.Blocks))
		return
	}
	var texts []string
	var images rawjson.Array
	for _, b := range m.Blocks {
		switch b := b.(type) {
		case content.ToolResult:
			p.queueResult(b)
		case content.Text:
			texts = append(texts, b.Text)
		case content.Media:
			switch _, data, inline := wire.InlineData(b); {
			case inline && b.Of == content.KindImage:
				images.AddString(wire.Base64(data))
			case inline && strings.HasPrefix(b.MediaType, "text/"):
				texts = append(texts, data)
			case b.URL != "" && !inline:
				texts = append(texts, b.URL)
			}
		}
	}
	pictures := images.Bytes()
	if len(texts) == 0 && rawjson.IsEmpty(pictures) || m.Role == content.NoRole {
		return
	}
	o := rawjson.NewObject("role", "user")
	if m.Role == content.RoleSystem {
		o.SetString("role", "system")
	}
	o.SetString("content", strings.Join(texts, "\n\n"))
	o.Set("images", rawjson.NonEmpty(pictures))
	p.results.Flush(&p.list)
	p.list.Add(o.Bytes())
}

// encodeAssistant returns a message of the model; nil when nothing of it can be sent.
func (p *encoder) encodeAssistant(blocks []content.Block) rawjson.Value {
	var o, more rawjson.Object
	var texts, reasoning string
	var calls rawjson.Array
	for _, b := range blocks {
		switch b := b.(type) {
		case content.Text:
			texts += p.textWithEmptyTags(b)
		case content.Reasoning:
			if p.Owns(b) && b.Format == content.FormatThinkTags {
				texts += b.Open + b.Text + b.Close
			} else {
				reasoning += p.thinkingText(b, reasoning != "")
			}
		case content.ToolCall:
			calls.Add(p.encodeCall(b))
		case content.Native:
			more.Set(b.Form().Type, p.NativeJSON(b))
		}
	}
	if texts+reasoning == "" && rawjson.IsEmpty(calls.Bytes()) && rawjson.IsEmpty(more.Bytes()) {
		return nil
	}
	o.SetString("role", "assistant")
	o.SetString("content", texts)
	o.SetNonEmpty("thinking", reasoning)
	o.Set("tool_calls", rawjson.NonEmpty(calls.Bytes()))
	return o.Merge(more.Bytes()).Bytes()
}

// textWithEmptyTags returns a text, with the empty tags that stood before it.
func (p *encoder) textWithEmptyTags(b content.Text) string {
	return p.Extra(b).Get(wire.ExtraBefore).Text() + b.Text
}

// thinkingText returns the text of reasoning for the member thinking. It is plain text there, so reasoning of
// other dialects is sent too; a blank line separates it from previous reasoning.
func (p *encoder) thinkingText(r content.Reasoning, hasPrevious bool) string {
	text := r.String()
	if hasPrevious && text != "" && !p.Owns(r) {
		return "\n\n" + text
	}
	return text
}

// encodeCall returns a call; nil for a call that its provider ran. Only ids of this
// dialect are sent.
func (p *encoder) encodeCall(c content.ToolCall) rawjson.Value {
	if c.Server {
		return nil
	}
	var o rawjson.Object
	args := wire.ArgumentsObject(c.Arguments)
	if p.Owns(c) {
		o.SetNonEmpty("id", c.Form().ID)
		if v, err := rawjson.Parse([]byte(c.Arguments)); c.Form().Type == typeStringArguments {
			args = rawjson.AppendString(nil, c.Arguments)
		} else if err == nil {
			args = v
		}
	}
	f := rawjson.NewObject("name", c.Name, "arguments", args).Merge(p.Extra(c).Get("function"))
	o.Set("function", f.Bytes())
	return o.Merge(p.Extra(c)).Bytes()
}

// queueResult adds a tool result to the queue of results. The name of the tool ties it to its call.
func (p *encoder) queueResult(r content.ToolResult) {
	if r.Server {
		return
	}
	call := p.calls[r.CallID]
	o := rawjson.NewObject("role", "tool", "content", wire.ResultText(r))
	o.SetNonEmpty("tool_name", cmp.Or(r.Name, call.Name))
	if call.Form().ID != "" && p.Owns(call) {
		o.SetString("tool_call_id", call.Form().ID)
	}
	p.results.Add(r.CallID, o.Bytes(), p.FormOf(r))
}
