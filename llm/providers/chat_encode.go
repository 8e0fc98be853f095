package providers

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/llm/rawjson"
)

// encodeChat writes a request. Equal requests give equal bytes.
func encodeChat(t target, req *llm.Request) (rawjson.Value, error) {
	t = t.asked(req.Settings)
	s, w := req.Settings, t.profile.wire
	var body rawjson.Object
	if t.model != "" {
		body.SetString("model", t.model)
	}
	p := chatPrompt{target: t, native: s.Reasoning.Native}
	for _, m := range req.Messages {
		p.add(m)
	}
	p.flush()
	body.Set("messages", p.list.Bytes())
	if len(req.Tools) > 0 {
		body.Set("tools", chatTools(req.Tools))
		body.Set("tool_choice", chatToolChoice(s.ToolChoice))
	}
	if s.MaxOutputTokens > 0 {
		body.SetInt(orElse(w.limit, "max_tokens"), int64(s.MaxOutputTokens))
	}
	if s.Temperature != nil {
		body.Set("temperature", number(*s.Temperature))
	}
	chatEffort(w, s.Reasoning, &body)
	if req.Stream {
		body.SetBool("stream", true)
		if !w.noStreamOptions {
			body.Set("stream_options", rawjson.Value(`{"include_usage":true}`))
		}
	}
	if len(s.Extra) > 0 {
		extra, err := rawjson.Parse(s.Extra)
		if err != nil || extra.Kind() != rawjson.KindObject {
			return nil, fmt.Errorf("chat: request.extra: want a JSON object, have %q", excerpt(s.Extra))
		}
		for key, value := range extra.Members() {
			body.Set(key, value)
		}
	}
	return sendable(body.Bytes()), nil
}

// chatEffort writes how much the model is to think, if anything is told. Thoughts
// are not asked for: servers that have them show them.
func chatEffort(w wire, r llm.Reasoning, body *rawjson.Object) {
	if w.effort == "" {
		if r.Effort != "" {
			body.SetString("reasoning_effort", r.Effort)
		}
		if w.budget != "" && r.MaxTokens > 0 {
			body.SetInt(w.budget, int64(r.MaxTokens))
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
	body.Set(w.effort, o.Bytes())
}

func chatTools(tools []llm.Tool) rawjson.Value {
	var list rawjson.Array
	for _, t := range tools {
		if len(t.Native) > 0 {
			list.Add(t.Native)
			continue
		}
		var f, o rawjson.Object
		f.SetString("name", t.Name)
		if t.Description != "" {
			f.SetString("description", t.Description)
		}
		if f.Set("parameters", t.Schema); len(t.Schema) == 0 {
			f.Set("parameters", rawjson.Value(`{"type":"object","properties":{}}`))
		}
		o.SetString("type", "function")
		o.Set("function", f.Bytes())
		list.Add(o.Bytes())
	}
	return list.Bytes()
}

// chatToolChoice is the tool choice; nil when it is unsaid.
func chatToolChoice(choice string) rawjson.Value {
	switch choice {
	case "":
		return nil
	case "auto", "none", "required":
		return rawjson.AppendString(nil, choice)
	}
	var f, o rawjson.Object
	f.SetString("name", choice)
	o.SetString("type", "function")
	o.Set("function", f.Bytes())
	return o.Bytes()
}

// chatPrompt gathers the messages of a request.
type chatPrompt struct {
	target
	native bool
	list   rawjson.Array
	calls  []string          // ids of the last answer's calls, in order
	legacy map[string]string // calls in function_call: name by id

	results []chatResult // that stand together
}

// chatResult is the message of a result.
type chatResult struct {
	id   string
	json rawjson.Value
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
	p.flush()
	p.calls = nil
	for _, b := range blocks {
		c, ok := b.(content.ToolCall)
		if !ok || c.Server {
			continue
		}
		p.calls = append(p.calls, c.CallID)
		if c.Type == chatLegacy && p.own(c) {
			if p.legacy == nil {
				p.legacy = map[string]string{}
			}
			p.legacy[c.CallID] = c.Name
		}
	}
	p.list.Add(replayChat(p.target, blocks, p.native))
}

// flush adds the results that stand together, in the order of their calls.
func (p *chatPrompt) flush() {
	place := func(r chatResult) int {
		if i := slices.Index(p.calls, r.id); i >= 0 {
			return i
		}
		return len(p.calls)
	}
	slices.SortStableFunc(p.results, func(a, b chatResult) int { return place(a) - place(b) })
	for _, r := range p.results {
		p.list.Add(r.json)
	}
	p.results = nil
}

func (p *chatPrompt) message(role string, body rawjson.Value, b content.Block) {
	p.flush()
	var o rawjson.Object
	o.SetString("role", role)
	o.Set("content", body)
	if b != nil && p.own(b) && !p.profile.wire.strict {
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
		if err != nil || !p.own(b) || !strings.HasPrefix(b.Type, chatPart) {
			return nil
		}
		return v
	}
	return o.Bytes()
}

// media writes an image, a sound or a file: its bytes, or where they lie.
func (p *chatPrompt) media(m content.Media) rawjson.Value {
	kind, data, inline := inlineData(m)
	url := m.URL
	if inline {
		url = "data:" + kind + ";base64," + base64.StdEncoding.EncodeToString([]byte(data))
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
		in.SetString("data", base64.StdEncoding.EncodeToString([]byte(data)))
		in.SetString("format", strings.Replace(strings.TrimPrefix(format, "x-"), "mpeg", "mp3", 1))
	default:
		in.SetString("filename", orElse(m.Name, "file"))
		in.SetString("file_data", url)
	}
	if p.own(m) {
		in.Merge(rawjson.Value(m.Extra).Get(key))
	}
	o.SetString("type", key)
	o.Set(key, in.Bytes())
	if p.own(m) {
		o.Merge(m.Extra)
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
		o.SetString("tool_call_id", r.CallID)
	}
	v, err := rawjson.Parse(r.Parts)
	switch {
	case err == nil && p.own(r):
		o.Set("content", v)
	case err == nil && v.Kind() == rawjson.KindArray:
		o.SetString("content", flattened(v))
	default:
		o.SetString("content", r.String())
	}
	p.results = append(p.results, chatResult{r.CallID, o.Bytes()})
}

// flattened is the words of a list of parts, with the types of the other parts in
// their place: a result is a string here.
func flattened(parts rawjson.Value) string {
	var lines []string
	for part := range parts.Elements() {
		text := part.Get("text")
		switch kind := part.Get("type").Text(); {
		case text.Kind() == rawjson.KindString:
			lines = append(lines, text.Text())
		case kind != "":
			lines = append(lines, "["+kind+"]")
		default:
			lines = append(lines, string(part))
		}
	}
	return strings.Join(lines, "\n")
}
