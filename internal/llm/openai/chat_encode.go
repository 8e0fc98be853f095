package openai

import (
	"cmp"
	"strings"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
	"github.com/tract-vcs/tract/llm"
)

// encodeChat writes a request. Equal requests give equal bytes.
func encodeChat(t wire.Target, req *llm.Request) (rawjson.Value, error) {
	t = t.ForSettings(req.Settings)
	s, w := req.Settings, t.Quirks
	var body rawjson.Object
	body.SetNonEmpty("model", t.Model)
	p := chatPrompt{Target: t, native: s.Reasoning.Native, replay: t.RequiresReasoningBack(s.Reasoning), tools: len(req.Tools) > 0}
	for _, m := range req.Messages {
		p.add(m)
	}
	p.wait.Flush(&p.list)
	body.Set("messages", p.list.Bytes())
	if len(req.Tools) > 0 {
		body.Set("tools", wire.FunctionTools(req.Tools))
		body.Set("tool_choice", chatToolChoice(s.ToolChoice))
	}
	wire.SetCommon(&body, s, cmp.Or(w.MaxTokensField, "max_tokens"))
	chatEffort(w, s.Reasoning, &body)
	if req.Stream {
		body.SetBool("stream", true)
		if !w.NoStreamOptions {
			body.Set("stream_options", rawjson.Value(`{"include_usage":true}`))
		}
	}
	return t.FinishBody(&body, s)
}

// chatEffort writes how much the model is to think, if anything is told. Thoughts
// are not asked for: servers that have them show them.
func chatEffort(w wire.Quirks, r llm.Reasoning, body *rawjson.Object) {
	if r.Effort == wire.EffortNone && r.MaxTokens <= 0 && w.OffMembers != "" {
		body.Merge(rawjson.Value(w.OffMembers))
		return
	}
	if w.EffortObject == "" {
		body.SetNonEmpty("reasoning_effort", r.Effort)
		if w.BudgetField != "" && r.MaxTokens > 0 {
			body.SetInt(w.BudgetField, int64(r.MaxTokens))
		}
		return
	}
	var o rawjson.Object
	switch { // one of the two, the server says
	case r.MaxTokens > 0:
		o.SetInt("max_tokens", int64(r.MaxTokens))
	case r.Effort != "":
		o.SetString("effort", r.Effort)
	default:
		return
	}
	body.Set(w.EffortObject, o.Bytes())
}

// chatToolChoice is the tool choice; nil when it is unsaid.
func chatToolChoice(choice string) rawjson.Value {
	switch choice {
	case "":
		return nil
	case "auto", "none", "required":
		return rawjson.AppendString(nil, choice)
	}
	return rawjson.NewObject("type", "function", "function", rawjson.NewObject("name", choice).Bytes()).Bytes()
}

// chatPrompt gathers the messages of a request.
type chatPrompt struct {
	wire.Target
	native bool
	replay *wire.ReplayRule // what the server demands of messages of the model; nil: nothing
	tools  bool             // the request has some
	list   rawjson.Array
	wait   wire.ResultQueue
	legacy map[string]string // calls in function_call: name by id
}

// add adds a message. Results are messages of their own, wherever they stand.
func (p *chatPrompt) add(m content.Message) {
	if m.Role == content.RoleAssistant {
		p.answer(m.Blocks)
		return
	}
	var others []content.Block
	for _, b := range m.Blocks {
		switch b := b.(type) {
		case content.ToolResult:
			if !b.Server {
				p.result(b)
			}
		case content.Text:
			if b.Kind() == content.KindNote {
				continue
			}
			if m.Role == content.RoleSystem {
				p.message("system", rawjson.AppendString(nil, b.Text), b)
				continue
			}
			others = append(others, b)
		case content.Media, content.Native:
			others = append(others, b)
		}
	}
	if m.Role != content.NoRole && len(others) > 0 {
		p.user(others)
	}
}

// answer adds what the model said.
func (p *chatPrompt) answer(blocks []content.Block) {
	p.wait.BeginResponse(blocks, &p.list)
	for _, b := range blocks {
		if c, ok := b.(content.ToolCall); ok && !c.Server && c.Form().Type == chatLegacy && p.Owns(c) {
			if p.legacy == nil {
				p.legacy = map[string]string{}
			}
			p.legacy[c.CallID] = c.Name
		}
	}
	p.list.Add(p.demanded(replayChat(p.Target, blocks, p.native), blocks))
}

// demanded is a message of the model with the field for reasoning that the server
// demands: its reasoning where that is not in the field, and else a placeholder.
func (p *chatPrompt) demanded(m rawjson.Value, blocks []content.Block) rawjson.Value {
	field := chatFields[0]
	calls := !wire.IsBlankContent(m.Get("tool_calls"))
	if p.replay == nil || m == nil || !blank(m.Get(field)) || !calls && !(p.replay.EveryMessage && p.tools) {
		return m
	}
	var said []string
	for _, b := range blocks {
		if b.Kind() == content.KindReasoning && strings.TrimSpace(b.String()) != "" {
			said = append(said, b.String())
		}
	}
	o := rawjson.NewObject("role", "assistant")
	if text := strings.Join(said, "\n\n"); text != "" {
		o.SetString(field, text)
	} else {
		o.SetString(field, p.replay.Placeholder)
	}
	o.Merge(m)
	return rawjson.ValidUTF8(o.Bytes())
}

// blank reports whether a field has no text, or only white space.
func blank(v rawjson.Value) bool { return strings.TrimSpace(v.Text()) == "" }

func (p *chatPrompt) message(role string, body rawjson.Value, b content.Block) {
	p.wait.Flush(&p.list)
	o := rawjson.NewObject("role", role, "content", body)
	if b != nil && p.Owns(b) && !p.Quirks.Strict {
		o.Merge(rawjson.Value(b.Form().Extra).Get(chatOfMessage))
	}
	p.list.Add(o.Bytes())
}

// user writes what a person says: a string when it is words only, as some servers
// take nothing else.
func (p *chatPrompt) user(blocks []content.Block) {
	var list rawjson.Array
	var words []string
	for _, b := range blocks {
		part := p.part(b)
		if t, ok := b.(content.Text); ok {
			words = append(words, t.Text)
		}
		list.Add(part)
	}
	if len(words) == len(blocks) {
		p.message("user", rawjson.AppendString(nil, strings.Join(words, "\n\n")), blocks[0])
	} else if list.Bytes().At(0) != nil {
		p.message("user", list.Bytes(), nil)
	}
}

// part is a part of a content that is a list; nil when it cannot be sent.
func (p *chatPrompt) part(b content.Block) rawjson.Value {
	var o rawjson.Object
	switch b := b.(type) {
	case content.Text:
		o.SetString("type", "text")
		o.SetString("text", b.Text)
	case content.Media:
		return p.media(b)
	case content.Native:
		v, err := rawjson.Parse([]byte(b.JSON))
		if err != nil || !p.Owns(b) || !strings.HasPrefix(b.Form().Type, chatPart) {
			return nil
		}
		return v
	}
	return o.Bytes()
}

// media writes an image, a sound or a file: its bytes, or where they lie.
func (p *chatPrompt) media(m content.Media) rawjson.Value {
	kind, data, inline := wire.InlineData(m)
	url := m.URL
	if inline {
		url = wire.DataURL(kind, data)
	}
	if url == "" {
		return nil
	}
	var o, in rawjson.Object
	key := "file"
	switch format, sound := strings.CutPrefix(kind, "audio/"); {
	case m.Of == content.KindImage:
		key = "image_url"
		in.SetString("url", url)
	case sound && inline:
		key = "input_audio"
		in.SetString("data", wire.Base64(data))
		in.SetString("format", strings.Replace(strings.TrimPrefix(format, "x-"), "mpeg", "mp3", 1))
	default:
		in.SetString("filename", cmp.Or(m.Name, "file"))
		in.SetString("file_data", url)
	}
	if p.Owns(m) {
		in.Merge(rawjson.Value(m.Form().Extra).Get(key))
	}
	o.SetString("type", key)
	o.Set(key, in.Bytes())
	if p.Owns(m) {
		o.Merge(m.Form().Extra)
	}
	return o.Bytes()
}

// result writes what came of a call.
func (p *chatPrompt) result(r content.ToolResult) {
	var o rawjson.Object
	if name, ok := p.legacy[r.CallID]; ok {
		o.SetString("role", "function")
		o.SetString("name", name)
	} else {
		o.SetString("role", "tool")
		o.SetString("tool_call_id", p.CallID(r.CallID))
	}
	o.Set("content", p.ResultValue(r))
	p.wait.Add(r.CallID, o.Bytes())
}
