package google

import (
	"bytes"
	"cmp"
	"strings"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
	"github.com/tract-vcs/tract/llm"
)

// encodeInteractions writes a request. Equal requests give equal bytes.
func encodeInteractions(t wire.Target, req *llm.Request) (rawjson.Value, error) {
	s := req.Settings
	p := &interactionsEncoder{Target: t, toolNames: map[string]string{}}
	wire.EncodeBlocks(p, req.Messages)
	var body rawjson.Object
	body.SetNonEmpty("model", t.Model)
	if len(p.system) > 0 {
		body.SetString("system_instruction", strings.Join(p.system, "\n\n"))
	}
	body.Set("input", p.list.Bytes())
	body.SetBool("store", false)
	if len(req.Tools) > 0 {
		body.Set("tools", encodeInteractionsTools(req.Tools))
	}
	body.Set("generation_config", encodeInteractionsConfig(s, len(req.Tools) > 0))
	body.SetTrue("stream", req.Stream)
	return t.FinishBody(&body, s, "generation_config")
}

// replayInteractions writes the steps that stand for one response.
func replayInteractions(t wire.Target, blocks []content.Block) rawjson.Value {
	p := &interactionsEncoder{Target: t, toolNames: map[string]string{}}
	wire.EncodeBlocks(p, wire.AssistantMessage(blocks))
	if p.list.Bytes().At(0) == nil {
		return nil
	}
	return rawjson.ValidUTF8(bytes.Clone(p.list.Bytes()))
}

// interactionsEncoder encodes blocks as steps.
type interactionsEncoder struct {
	wire.Target
	system    []string
	list      rawjson.Array
	toolNames map[string]string // of tools, by the id of the call

	stepType  string          // of the step that is being built: user_input or model_output
	stepExtra rawjson.Value   // what it has beside contents
	contents  []rawjson.Value // of it
	results   wire.ResultQueue
}

// Add adds a block of a message.
func (p *interactionsEncoder) Add(role content.Role, b content.Block) {
	if r, ok := b.(content.ToolResult); ok && !r.Server {
		if p.stepType == typeModelOutput {
			p.Flush()
		}
		p.results.Add(r.CallID, p.encodeResult(r), p.FormOf(r))
		return
	}
	if v := p.encodeStep(b); v != nil {
		p.Flush()
		p.list.Add(v)
		if c, ok := b.(content.ToolCall); ok {
			p.toolNames[c.CallID] = c.Name
			p.results.Calls = append(p.results.Calls, c.CallID)
		}
		return
	}
	text, texts := b.(content.Text)
	if texts && role == content.RoleSystem && strings.TrimSpace(text.Text) != "" && !b.Kind().Traits().Private {
		p.system = append(p.system, text.Text)
		return
	}
	kind := map[content.Role]string{content.RoleAssistant: typeModelOutput, content.RoleUser: "user_input", content.RoleTool: "user_input"}[role]
	v := p.encodeContent(role, b)
	if v == nil || kind == "" {
		return
	}
	own := p.Owns(b) && kind == typeModelOutput
	if kind != p.stepType || own && b.Form().Type == typeModelOutput {
		if len(p.contents) > 0 {
			p.Flush()
		}
		p.stepType = kind
		if own {
			p.stepExtra = rawjson.Value(b.Form().Extra).Get(typeModelOutput)
		}
	}
	p.contents = append(p.contents, v)
}

// Flush ends the step that is being built. Results come before text, in the
// order of their calls.
func (p *interactionsEncoder) Flush() {
	results := len(p.results.Results) > 0
	if p.results.Flush(&p.list); results || p.stepType == "user_input" {
		p.results.Calls = nil
	}
	if len(p.contents) > 0 {
		p.list.Add(rawjson.NewObject("type", p.stepType, "content", rawjson.ArrayOf(p.contents)).Merge(p.stepExtra).Bytes())
	}
	p.stepType, p.stepExtra, p.contents = "", nil, nil
}

// encodeStep returns a block that is a step of its own; nil when it is none, or cannot be
// sent.
func (p *interactionsEncoder) encodeStep(b content.Block) rawjson.Value {
	form := b.Form()
	var o rawjson.Object
	sent := false
	switch b := b.(type) {
	case content.Reasoning:
		sent = p.encodeThought(b, &o)
	case content.ToolCall:
		sent = p.encodeCall(b, &o)
	case content.ToolResult:
		if sent = p.Owns(b); sent {
			encodeServerToolResult(b, &o)
		}
	case content.Native:
		v, err := rawjson.Parse([]byte(b.JSON))
		sent = err == nil && p.Owns(b) && form.Type != typeModelOutput && form.Type != typeContent && !p.HasForeignSeal(b)
		o.Merge(v)
	}
	if !sent {
		return nil
	}
	if p.Owns(b) {
		if p.CanOpen(form.Seal) {
			o.SetString("signature", form.Seal.Data)
		}
		o.Merge(form.Extra)
	}
	return o.Bytes()
}

// encodeThought writes a reasoning block of its own. A summary that is more than texts is in
// what the block kept.
func (p *interactionsEncoder) encodeThought(b content.Reasoning, o *rawjson.Object) bool {
	if !p.Owns(b) || b.Form().Incomplete || p.HasForeignSeal(b) {
		return false
	}
	o.SetString("type", "thought")
	parts := b.Parts
	if b.Text != "" {
		parts = []string{b.Text}
	}
	if rawjson.Value(b.Form().Extra).Get("summary") == nil {
		o.Set("summary", encodeTexts(parts))
	}
	return true
}

// encodeCall writes a call. Ids of others are allowed as they are.
func (p *interactionsEncoder) encodeCall(b content.ToolCall, o *rawjson.Object) bool {
	if b.Server && !p.Owns(b) {
		return false
	}
	if b.Server {
		o.SetString("type", b.Form().Type)
	} else {
		o.SetString("type", "function_call")
		o.SetString("name", b.Name)
	}
	o.SetNonEmpty("id", b.CallID)
	bare := b.Arguments == "" || b.Form().Type == typeNoArguments && b.Arguments == "{}"
	if !p.Owns(b) || !bare {
		o.Set("arguments", wire.ArgumentsObject(b.Arguments))
	}
	return true
}

// encodeServerToolResult writes what came of what the provider did itself.
func encodeServerToolResult(b content.ToolResult, o *rawjson.Object) {
	o.SetString("type", b.Form().Type)
	o.SetString("call_id", b.CallID)
	if o.Set("result", b.Parts); b.Text != "" {
		o.SetString("result", b.Text)
	}
	o.SetTrue("is_error", b.IsError)
}

// encodeTexts is texts as contents; nil when there are none.
func encodeTexts(texts []string) rawjson.Value {
	if len(texts) == 0 {
		return nil
	}
	var list rawjson.Array
	for _, text := range texts {
		list.Add(rawjson.NewObject("type", "text", "text", text).Bytes())
	}
	return list.Bytes()
}

// encodeContent returns a block that lies in a step; nil when it cannot be sent.
func (p *interactionsEncoder) encodeContent(role content.Role, b content.Block) rawjson.Value {
	var o rawjson.Object
	switch b := b.(type) {
	case content.Text:
		if b.Kind().Traits().Private || strings.TrimSpace(b.Text) == "" && !p.Owns(b) || b.Text == "" {
			return nil // the format refuses an empty one
		}
		o.SetString("type", "text")
		o.SetString("text", b.Text)
	case content.Media:
		if role == content.RoleAssistant && !p.Owns(b) || !encodeInteractionsMedia(b, p.Owns(b), &o) {
			return nil
		}
	case content.Native:
		if v, err := rawjson.Parse([]byte(b.JSON)); err == nil && p.Owns(b) && (b.Form().Type == typeModelOutput || b.Form().Type == typeContent) {
			return v
		}
		return nil
	default:
		return nil
	}
	if p.Owns(b) {
		o.Merge(rawjson.Without(b.Form().Extra, typeModelOutput))
	}
	return o.Bytes()
}

// encodeResult writes a result: a text, or what the tool gave as JSON.
func (p *interactionsEncoder) encodeResult(b content.ToolResult) rawjson.Value {
	o := rawjson.NewObject("type", "function_result")
	o.SetNonEmpty("name", cmp.Or(p.toolNames[b.CallID], b.Name))
	o.SetString("call_id", b.CallID)
	parts, err := rawjson.Parse(b.Parts)
	switch {
	case err == nil && (p.Owns(b) || parts.Kind() == rawjson.KindObject):
		o.Set("result", parts)
	default:
		o.SetString("result", b.String())
	}
	o.SetTrue("is_error", b.IsError)
	if p.Owns(b) {
		o.Merge(b.Form().Extra)
	}
	return o.Bytes()
}

// encodeInteractionsMedia writes an image or a file: its bytes or its URL.
func encodeInteractionsMedia(m content.Media, own bool, o *rawjson.Object) bool {
	media, data, inline := m.MediaType, m.Data, m.Data != ""
	if !own {
		media, data, inline = wire.InlineData(m)
		media = cmp.Or(media, m.MediaType)
	}
	kind, _, _ := strings.Cut(media, "/")
	switch {
	case m.Of == content.KindImage:
		o.SetString("type", "image")
	case own: // its type is in what came with it
	case kind == "audio", kind == "video":
		o.SetString("type", kind)
	default:
		o.SetString("type", "document")
	}
	o.SetNonEmpty("mime_type", media)
	if m.URL != "" && (own || !inline) {
		o.SetString("uri", m.URL)
	}
	if inline {
		o.SetString("data", wire.Base64(data))
	}
	return inline || m.URL != ""
}
