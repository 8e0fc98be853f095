package google

import (
	"cmp"
	"strings"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
	"github.com/tract-vcs/tract/llm"
)

// encodeInteractions encodes a request body. Equal requests give equal bytes.
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
	body.Set("generation_config", encodeInteractionsGenerationConfig(s, len(req.Tools) > 0))
	body.SetTrue("stream", req.Stream)
	return t.FinishBody(&body, s, "generation_config")
}

// encodeAssistantSteps returns the steps for the blocks of one response.
func encodeAssistantSteps(t wire.Target, blocks []content.Block) rawjson.Value {
	p := &interactionsEncoder{Target: t, toolNames: map[string]string{}}
	wire.EncodeBlocks(p, wire.AssistantMessage(blocks))
	if p.list.Bytes().At(0) == nil {
		return nil
	}
	return p.list.Bytes()
}

// interactionsEncoder encodes blocks as steps.
type interactionsEncoder struct {
	wire.Target
	system    []string
	list      rawjson.Array
	toolNames map[string]string // names of the tools, by call id

	stepType  string          // type of the step that is being built: user_input or model_output
	stepExtra rawjson.Value   // its members other than content
	contents  []rawjson.Value // its contents
	results   wire.ResultQueue
}

// Add adds a block of a message. See [wire.EncodeBlocks].
func (p *interactionsEncoder) Add(role content.Role, b content.Block) {
	if r, ok := b.(content.ToolResult); ok && !r.Server {
		if p.stepType == typeModelOutput {
			p.Flush()
		}
		p.results.Add(r.CallID, p.encodeResult(r), p.FormOf(r))
		return
	}
	if v := p.encodeSingleBlockStep(b); v != nil {
		p.Flush()
		p.list.Add(v)
		if c, ok := b.(content.ToolCall); ok {
			p.toolNames[c.CallID] = c.Name
			p.results.Calls = append(p.results.Calls, c.CallID)
		}
		return
	}
	text, isText := b.(content.Text)
	if isText && role == content.RoleSystem && strings.TrimSpace(text.Text) != "" {
		p.system = append(p.system, text.Text)
		return
	}
	kind := map[content.Role]string{content.RoleAssistant: typeModelOutput, content.RoleUser: "user_input", content.RoleTool: "user_input"}[role]
	v := p.encodeContent(b)
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

// Flush adds the pending results, in the order of their calls, and then the step that is being
// built.
func (p *interactionsEncoder) Flush() {
	results := len(p.results.Results) > 0
	if p.results.Flush(&p.list); results || p.stepType == "user_input" {
		p.results.Calls = nil
	}
	if len(p.contents) > 0 {
		p.list.Add(rawjson.NewObject("type", p.stepType, "content", rawjson.ArrayOf(p.contents...)).Merge(p.stepExtra).Bytes())
	}
	p.stepType, p.stepExtra, p.contents = "", nil, nil
}

// encodeSingleBlockStep returns the step for a block that is a step of its own; nil for a block
// that shares its step with others, and for one that cannot be sent.
func (p *interactionsEncoder) encodeSingleBlockStep(b content.Block) rawjson.Value {
	form := b.Form()
	var o *rawjson.Object
	switch b := b.(type) {
	case content.Reasoning:
		o = p.encodeReasoningExceptSealAndExtra(b)
	case content.ToolCall:
		o = p.encodeCall(b)
	case content.ToolResult:
		if p.Owns(b) {
			o = encodeServerResult(b)
		}
	case content.Native:
		if v := p.NativeJSON(b); v != nil && form.Type != typeModelOutput && form.Type != typeContent && !p.HasForeignSeal(b) {
			o = new(rawjson.Object).Merge(v)
		}
	}
	if o == nil {
		return nil
	}
	if p.Owns(b) && p.CanOpen(form.Seal) {
		o.SetString("signature", form.Seal.Data)
	}
	return o.Merge(p.Extra(b)).Bytes()
}

// encodeReasoningExceptSealAndExtra returns the step of a reasoning block, to which the caller adds the seal and
// the extra; nil when it cannot be sent. The extra has the summary if that is more than texts.
func (p *interactionsEncoder) encodeReasoningExceptSealAndExtra(b content.Reasoning) *rawjson.Object {
	if !p.Owns(b) || b.Form().Incomplete || p.HasForeignSeal(b) {
		return nil
	}
	o := rawjson.NewObject("type", "thought")
	if p.Extra(b).Get("summary") == nil {
		o.Set("summary", rawjson.NonEmpty(wire.EncodeReasoningTexts("text", b)))
	}
	return o
}

// encodeCall returns the step of a call. Google accepts ids of other providers.
func (p *interactionsEncoder) encodeCall(b content.ToolCall) *rawjson.Object {
	o := rawjson.NewObject("type", "function_call", "name", b.Name)
	if b.Server {
		o = rawjson.NewObject("type", b.Form().Type)
	}
	o.SetNonEmpty("id", b.CallID)
	noArguments := b.Arguments == "" || b.Form().Type == typeNoArguments && b.Arguments == "{}"
	if !p.Owns(b) || !noArguments {
		o.Set("arguments", wire.ArgumentsObject(b.Arguments))
	}
	return o
}

// encodeServerResult returns the step of a result of a tool that the provider ran.
func encodeServerResult(b content.ToolResult) *rawjson.Object {
	o := rawjson.NewObject("type", b.Form().Type, "call_id", b.CallID)
	if o.Set("result", b.Parts); b.Text != "" {
		o.SetString("result", b.Text)
	}
	o.SetTrue("is_error", b.IsError)
	return o
}

// encodeContent returns the element for a block in the content of a step; nil when the block
// cannot be sent.
func (p *interactionsEncoder) encodeContent(b content.Block) rawjson.Value {
	var o *rawjson.Object
	switch b := b.(type) {
	case content.Text:
		if b.Text != "" && (p.Owns(b) || strings.TrimSpace(b.Text) != "") { // the API refuses an empty text
			o = rawjson.NewObject("type", "text", "text", b.Text)
		}
	case content.Media:
		o = p.encodeMedia(b)
	case content.Native:
		if b.Form().Type == typeModelOutput || b.Form().Type == typeContent {
			return p.NativeJSON(b)
		}
	}
	if o == nil {
		return nil
	}
	return o.Merge(rawjson.Without(p.Extra(b), typeModelOutput)).Bytes()
}

// encodeResult returns the function_result step of a result, which is a text or JSON.
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
	return o.Merge(p.Extra(b)).Bytes()
}

// encodeMedia returns the content for an image or a file, with its bytes or its URL; nil when it
// has neither.
func (p *interactionsEncoder) encodeMedia(m content.Media) *rawjson.Object {
	own := p.Owns(m)
	media, data, inline := inlineMedia(m, own)
	if !inline && m.URL == "" {
		return nil
	}
	var o rawjson.Object
	kind, _, _ := strings.Cut(media, "/")
	switch {
	case m.Of == content.KindImage:
		o.SetString("type", "image")
	case own: // the extra has the type
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
	return &o
}
