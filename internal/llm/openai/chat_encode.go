package openai

import (
	"cmp"
	"strings"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
	"github.com/tract-vcs/tract/llm"
)

// encodeChat encodes a request body. Equal requests give equal bytes.
func encodeChat(t wire.Target, req *llm.Request) (rawjson.Value, error) {
	t = t.ForSettings(req.Settings)
	s, w := req.Settings, t.Quirks
	var body rawjson.Object
	body.SetNonEmpty("model", t.Model)
	p := chatEncoder{Target: t, convertForeignReasoning: s.Reasoning.Native, rule: t.RequiresReasoningBack(s.Reasoning), hasTools: len(req.Tools) > 0}
	for _, m := range req.Messages {
		p.addMessage(m)
	}
	p.results.Flush(&p.list)
	body.Set("messages", p.list.Bytes())
	if len(req.Tools) > 0 {
		body.Set("tools", wire.FunctionTools(req.Tools))
		body.Set("tool_choice", encodeChatToolChoice(s.ToolChoice))
	}
	wire.SetCommon(&body, s, cmp.Or(w.MaxTokensField, "max_tokens"))
	setChatReasoning(w, s.Reasoning, &body)
	if req.Stream {
		body.SetBool("stream", true)
		if !w.NoStreamOptions {
			body.Set("stream_options", rawjson.Value(`{"include_usage":true}`))
		}
	}
	return t.FinishBody(&body, s)
}

// setChatReasoning sets the effort or the token budget of the reasoning, if the settings
// have one. Servers return reasoning without being asked for it.
func setChatReasoning(quirks wire.Quirks, r llm.Reasoning, body *rawjson.Object) {
	if r.Effort == wire.EffortNone && r.MaxTokens <= 0 && quirks.OffMembers != "" {
		body.Merge(rawjson.Value(quirks.OffMembers))
		return
	}
	if quirks.EffortObject == "" {
		body.SetNonEmpty("reasoning_effort", r.Effort)
		if quirks.BudgetField != "" && r.MaxTokens > 0 {
			body.SetInt(quirks.BudgetField, int64(r.MaxTokens))
		}
		return
	}
	switch { // the server accepts only one of the two
	case r.MaxTokens > 0:
		body.Set(quirks.EffortObject, rawjson.NewObject("max_tokens", r.MaxTokens).Bytes())
	case r.Effort != "":
		body.Set(quirks.EffortObject, rawjson.NewObject("effort", r.Effort).Bytes())
	}
}

// encodeChatToolChoice returns the value of tool_choice; nil when the settings have none.
func encodeChatToolChoice(choice string) rawjson.Value {
	switch choice {
	case "":
		return nil
	case "auto", "none", "required":
		return rawjson.AppendString(nil, choice)
	}
	return rawjson.NewObject("type", "function", "function", rawjson.NewObject("name", choice)).Bytes()
}

// chatEncoder encodes the messages of a request.
type chatEncoder struct {
	wire.Target
	convertForeignReasoning bool
	rule                    *wire.ReplayRule // the reasoning that the server requires in messages of the model; nil: none
	hasTools                bool             // the request has tools
	list                    rawjson.Array
	results                 wire.ResultQueue
	functionCalls           map[string]string // names of the calls in function_call, by id
}

// addMessage adds a message. Tool results become messages of their own, wherever they are in
// the message.
func (p *chatEncoder) addMessage(m content.Message) {
	if m.Role == content.RoleAssistant {
		p.addAssistant(m.Blocks)
		return
	}
	var others []content.Block
	for _, b := range m.Blocks {
		switch b := b.(type) {
		case content.ToolResult:
			if !b.Server {
				p.queueResult(b)
			}
		case content.Text, content.Media, content.Native:
			others = append(others, b)
		}
	}
	switch {
	case m.Role == content.NoRole || len(others) == 0:
	case m.Role == content.RoleSystem && !p.FormOf(others[0]).Get("list").Bool():
		for _, b := range others { // each instruction is a message
			p.addContentMessage("system", []content.Block{b})
		}
	case m.Role == content.RoleSystem:
		p.addContentMessage("system", others)
	default:
		p.addContentMessage("user", others)
	}
}

// addAssistant adds a message of the model.
func (p *chatEncoder) addAssistant(blocks []content.Block) {
	p.results.BeginResponse(blocks, &p.list)
	for _, b := range blocks {
		if c, ok := b.(content.ToolCall); ok && !c.Server && c.Form().Type == typeFunctionCall && p.Owns(c) {
			if p.functionCalls == nil {
				p.functionCalls = map[string]string{}
			}
			p.functionCalls[c.CallID] = c.Name
		}
	}
	p.list.Add(p.withRequiredReasoning(encodeAssistantMessage(p.Target, blocks, p.convertForeignReasoning), blocks))
}

// withRequiredReasoning returns message m of the model with the reasoning field that the
// server requires. If m does not have it, the field gets the text of the reasoning blocks, or
// a placeholder when there is none.
func (p *chatEncoder) withRequiredReasoning(m rawjson.Value, blocks []content.Block) rawjson.Value {
	field := reasoningFields[0]
	calls := !wire.IsBlankContent(m.Get("tool_calls"))
	if p.rule == nil || m == nil || !isBlankText(m.Get(field)) || !calls && !(p.rule.EveryMessage && p.hasTools) {
		return m
	}
	var reasoning []string
	for _, b := range blocks {
		if b.Kind() == content.KindReasoning && strings.TrimSpace(b.String()) != "" {
			reasoning = append(reasoning, b.String())
		}
	}
	o := rawjson.NewObject("role", "assistant")
	if text := strings.Join(reasoning, "\n\n"); text != "" {
		o.SetString(field, text)
	} else {
		o.SetString(field, p.rule.Placeholder)
	}
	o.Merge(m)
	return rawjson.ValidUTF8(o.Bytes())
}

// isBlankText reports whether a field has no text, or only white space.
func isBlankText(v rawjson.Value) bool { return strings.TrimSpace(v.Text()) == "" }

// appendMessage adds a message of a role and a content, after the results that wait. Its other
// members come from the form and the extra of a block.
func (p *chatEncoder) appendMessage(role string, value rawjson.Value, membersFrom content.Block) {
	p.results.Flush(&p.list)
	if form := p.FormOf(membersFrom); form.Get("role") != nil && p.acceptsDeveloperRole() {
		role = form.Get("role").Text()
	}
	o := rawjson.NewObject("role", role, "content", value)
	if extra := p.Extra(membersFrom).Get(extraMessage); p.Quirks.Strict {
		o.Set("name", extra.Get("name")) // all servers know this member
	} else {
		o.Merge(extra)
	}
	p.list.Add(o.Bytes())
}

// acceptsDeveloperRole reports whether the server accepts the role developer: OpenAI's
// servers do, and an unknown server may.
func (p *chatEncoder) acceptsDeveloperRole() bool { return p.Generic || p.Quirks.RefusalField }

// addContentMessage adds a message of the user or of the system. If all blocks are text, the
// content is a string, because some servers accept nothing else; it is a list if the decoded
// request had a list.
func (p *chatEncoder) addContentMessage(role string, blocks []content.Block) {
	if n, ok := blocks[0].(content.Native); ok && p.Owns(n) && n.Form().Type == typeMessage {
		p.results.Flush(&p.list)
		p.list.Add(p.NativeJSON(n))
		return
	}
	var list rawjson.Array
	var texts []string
	for _, b := range blocks {
		if t, ok := b.(content.Text); ok {
			texts = append(texts, t.Text)
		}
		list.Add(p.encodePart(b))
	}
	switch {
	case list.Bytes().At(0) == nil:
	case len(texts) == len(blocks) && !p.FormOf(blocks[0]).Get("list").Bool():
		p.appendMessage(role, rawjson.AppendString(nil, strings.Join(texts, "\n\n")), blocks[0])
	default:
		p.appendMessage(role, list.Bytes(), blocks[0])
	}
}

// encodePart returns the part of a content list for a block; nil when the block cannot be
// sent.
func (p *chatEncoder) encodePart(b content.Block) rawjson.Value {
	switch b := b.(type) {
	case content.Text:
		return rawjson.NewObject("type", "text", "text", b.Text).Merge(rawjson.Without(p.Extra(b), extraMessage)).Bytes()
	case content.Media:
		return p.encodeMedia(b)
	case content.Native:
		if strings.HasPrefix(b.Form().Type, typeContentPart) {
			return p.NativeJSON(b)
		}
	}
	return nil
}

// encodeMedia returns the part for an image, audio or a file, with its bytes or its URL; nil
// when it has neither.
func (p *chatEncoder) encodeMedia(m content.Media) rawjson.Value {
	kind, data, inline := wire.InlineData(m)
	url := m.URL
	if inline {
		url = wire.DataURL(kind, data)
	}
	if url == "" {
		return nil
	}
	var key string
	var in *rawjson.Object
	switch format, sound := strings.CutPrefix(kind, "audio/"); {
	case m.Of == content.KindImage:
		key, in = "image_url", rawjson.NewObject("url", url)
	case sound && inline:
		format = strings.Replace(strings.TrimPrefix(format, "x-"), "mpeg", "mp3", 1)
		key, in = "input_audio", rawjson.NewObject("data", wire.Base64(data), "format", format)
	default:
		key, in = "file", rawjson.NewObject("filename", cmp.Or(m.Name, "file"), "file_data", url)
	}
	o := rawjson.NewObject("type", key, key, in.Merge(p.Extra(m).Get(key)))
	return o.Merge(rawjson.Without(p.Extra(m), extraMessage)).Bytes()
}

// queueResult adds a tool result to the queue of results.
func (p *chatEncoder) queueResult(r content.ToolResult) {
	o := rawjson.NewObject("role", "tool", "tool_call_id", p.CallID(r.CallID))
	if name, ok := p.functionCalls[r.CallID]; ok {
		o = rawjson.NewObject("role", "function", "name", name)
	}
	o.Set("content", p.ResultValue(r))
	if !p.Quirks.Strict {
		o.Merge(p.Extra(r).Get(extraMessage))
	}
	p.results.Add(r.CallID, o.Bytes(), p.FormOf(r))
}
