package ollama

import (
	"cmp"
	"strings"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
	"github.com/tract-vcs/tract/llm"
)

// encodeOllama writes a request.
func encodeOllama(t wire.Target, req *llm.Request) (rawjson.Value, error) {
	s := req.Settings
	var body, options rawjson.Object
	body.SetString("model", t.Model)
	p := ollamaPrompt{Target: t, called: map[string]content.ToolCall{}}
	for _, m := range req.Messages {
		p.add(m)
	}
	p.wait.Flush(&p.list)
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
	body.SetBool("stream", req.Stream) // it streams unless told
	return t.FinishBody(&body, s)
}

// replayOllama writes the message that stands for one response.
func replayOllama(t wire.Target, blocks []content.Block) rawjson.Value {
	p := ollamaPrompt{Target: t}
	return rawjson.ValidUTF8(p.answer(blocks))
}

// ollamaPrompt gathers the messages of a request.
type ollamaPrompt struct {
	wire.Target
	wait   wire.ResultQueue
	list   rawjson.Array
	called map[string]content.ToolCall // by id
}

// add adds a message. Results are messages of their own.
func (p *ollamaPrompt) add(m content.Message) {
	if m.Role == content.RoleAssistant {
		p.wait.BeginResponse(m.Blocks, &p.list)
		for _, b := range m.Blocks {
			if c, ok := b.(content.ToolCall); ok {
				p.called[c.CallID] = c
			}
		}
		p.list.Add(p.answer(m.Blocks))
		return
	}
	var words []string
	var images rawjson.Array
	for _, b := range m.Blocks {
		switch b := b.(type) {
		case content.ToolResult:
			p.result(b)
		case content.Text:
			if b.Kind() != content.KindNote {
				words = append(words, b.Text)
			}
		case content.Media:
			switch _, data, inline := wire.InlineData(b); {
			case inline && b.Of == content.KindImage:
				images.AddString(wire.Base64(data))
			case inline && strings.HasPrefix(b.MediaType, "text/"):
				words = append(words, data)
			case b.URL != "" && !inline:
				words = append(words, b.URL)
			}
		}
	}
	pictures := images.Bytes()
	if len(words) == 0 && rawjson.IsEmpty(pictures) || m.Role == content.NoRole {
		return
	}
	o := rawjson.NewObject("role", "user")
	if m.Role == content.RoleSystem {
		o.SetString("role", "system")
	}
	o.SetString("content", strings.Join(words, "\n\n"))
	o.Set("images", rawjson.NonEmpty(pictures))
	p.wait.Flush(&p.list)
	p.list.Add(o.Bytes())
}

// answer is what the model said; nil when nothing of it can be sent.
func (p *ollamaPrompt) answer(blocks []content.Block) rawjson.Value {
	var o, more rawjson.Object
	var words, thought string
	var calls rawjson.Array
	for _, b := range blocks {
		switch b := b.(type) {
		case content.Text:
			words += p.words(b)
		case content.Reasoning:
			if p.Owns(b) && b.Format == content.FormatThinkTags {
				words += b.Open + b.Text + b.Close
			} else {
				thought += p.thought(b, thought != "")
			}
		case content.ToolCall:
			calls.Add(p.call(b))
		case content.Native:
			if v, err := rawjson.Parse([]byte(b.JSON)); err == nil && p.Owns(b) {
				more.Set(b.Form().Type, v)
			}
		}
	}
	if words+thought == "" && rawjson.IsEmpty(calls.Bytes()) && rawjson.IsEmpty(more.Bytes()) {
		return nil
	}
	o.SetString("role", "assistant")
	o.SetString("content", words)
	o.SetNonEmpty("thinking", thought)
	o.Set("tool_calls", rawjson.NonEmpty(calls.Bytes()))
	return o.Merge(more.Bytes()).Bytes()
}

// words is a text, with the empty tags that stood before it.
func (p *ollamaPrompt) words(b content.Text) string {
	switch {
	case b.Kind() == content.KindNote:
		return ""
	case p.Owns(b):
		return rawjson.Value(b.Form().Extra).Get(wire.ExtraBefore).Text() + b.Text
	}
	return b.Text
}

// thought is the words of a thought. They are plain words here, so those of others
// go along.
func (p *ollamaPrompt) thought(r content.Reasoning, more bool) string {
	text := r.String()
	if more && text != "" && !p.Owns(r) {
		return "\n\n" + text
	}
	return text
}

// call writes a call; nil for one that its provider made itself. Its id is sent
// when it came from here.
func (p *ollamaPrompt) call(c content.ToolCall) rawjson.Value {
	if c.Server {
		return nil
	}
	var o, f rawjson.Object
	var extra rawjson.Value
	args := wire.ArgumentsObject(c.Arguments)
	if p.Owns(c) {
		extra = c.Form().Extra
		o.SetNonEmpty("id", c.Form().ID)
		if v, err := rawjson.Parse([]byte(c.Arguments)); c.Form().Type == ollamaString {
			args = rawjson.AppendString(nil, c.Arguments)
		} else if err == nil {
			args = v
		}
	}
	f.SetString("name", c.Name)
	f.Set("arguments", args)
	f.Merge(extra.Get("function"))
	o.Set("function", f.Bytes())
	return o.Merge(extra).Bytes()
}

// result writes what came of a call, which is found by the tool's name.
func (p *ollamaPrompt) result(r content.ToolResult) {
	if r.Server {
		return
	}
	var o rawjson.Object
	call := p.called[r.CallID]
	o.SetString("role", "tool")
	o.SetString("content", wire.ResultText(r))
	o.SetNonEmpty("tool_name", cmp.Or(r.Name, call.Name))
	if call.Form().ID != "" && p.Owns(call) {
		o.SetString("tool_call_id", call.Form().ID)
	}
	p.wait.Add(r.CallID, o.Bytes())
}
