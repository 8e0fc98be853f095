package google

import (
	"cmp"
	"strings"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
	"github.com/tract-vcs/tract/llm"
)

// encodeGemini encodes a request body. Equal requests give equal bytes.
func encodeGemini(t wire.Target, req *llm.Request) (rawjson.Value, error) {
	s := req.Settings
	p := newGeminiEncoder(t, req.Messages)
	p.needsFirstSeal = takesThinkingLevel(t.Model)
	wire.EncodeBlocks(p, req.Messages)
	var body rawjson.Object
	if p.System.Bytes().At(0) != nil {
		body.Set("systemInstruction", rawjson.NewObject("parts", p.System.Bytes()).Bytes())
	}
	body.Set("contents", p.List.Bytes())
	if len(req.Tools) > 0 {
		body.Set("tools", encodeGeminiTools(req.Tools))
		body.Set("toolConfig", encodeGeminiToolChoice(s.ToolChoice))
	}
	body.Set("generationConfig", encodeGeminiGenerationConfig(t, s))
	v, err := t.FinishBody(&body, s, "generationConfig", systemInstruction)
	if snake := rawjson.Value(s.Extra).Get(extraSnakeCase); snake != nil {
		v = restoreSnakeCase(v, snake)
	}
	return v, err
}

// encodeAssistantContent returns the content for the blocks of one response.
func encodeAssistantContent(t wire.Target, blocks []content.Block) rawjson.Value {
	p := newGeminiEncoder(t, wire.AssistantMessage(blocks))
	wire.EncodeBlocks(p, wire.AssistantMessage(blocks))
	return p.List.Bytes().At(0)
}

// geminiEncoder encodes blocks as contents whose roles alternate.
type geminiEncoder struct {
	wire.Target
	wire.MessageBuilder
	calls          map[string]content.ToolCall // the calls of all messages, by id
	needsFirstSeal bool                        // the model refuses the first call of a message without a seal
	hasCall        bool                        // the content that is being built has a call
}

func newGeminiEncoder(t wire.Target, messages []content.Message) *geminiEncoder {
	p := &geminiEncoder{Target: t, MessageBuilder: wire.MessageBuilder{ModelRole: "model", BlocksField: "parts"}, calls: map[string]content.ToolCall{}}
	for _, m := range messages {
		for _, b := range m.Blocks {
			if c, ok := b.(content.ToolCall); ok {
				p.calls[c.CallID] = c
			}
		}
	}
	return p
}

// Add adds a block of a message. See [wire.EncodeBlocks].
func (p *geminiEncoder) Add(role content.Role, b content.Block) {
	v := p.encodePart(b)
	form := p.FormOf(b)
	if form.Get("first").Bool() || form.Get("role") != nil {
		p.Flush()
	}
	to, begun := p.StartMessage(role, b, v)
	if other := form.Get("role").Text(); other != "" && to != "" {
		p.RenameRole(other)
	}
	if to == "" {
		return
	}
	if begun {
		p.hasCall = false
	}
	if c, ok := b.(content.ToolCall); ok && !c.Server {
		if !p.hasCall {
			v = p.withPlaceholderForForeignCall(c, v)
		}
		p.hasCall = true
	}
	p.AppendBlock(b, v)
}

// skipSealValidation is the signature that Google documents for a call of another vendor's
// model.
const skipSealValidation = "skip_thought_signature_validator"

// withPlaceholderForForeignCall returns the part of the first call of a message. If the model
// requires a seal on that call and another vendor's model made it, the part gets
// skipSealValidation. A call of Gemini's own that lost its seal does not get it.
func (p *geminiEncoder) withPlaceholderForForeignCall(call content.ToolCall, part rawjson.Value) rawjson.Value {
	if !p.needsFirstSeal || p.Owns(call) {
		return part
	}
	o := new(rawjson.Object).Merge(part)
	o.SetString("thoughtSignature", skipSealValidation)
	return o.Bytes()
}

// encodePart returns the part for a block; nil when the block cannot be sent.
func (p *geminiEncoder) encodePart(b content.Block) rawjson.Value {
	form := b.Form()
	var o *rawjson.Object
	switch b := b.(type) {
	case content.Text:
		if strings.TrimSpace(b.Text) == "" && !p.Owns(b) || b.Text == "" && !p.CanOpen(form.Seal) && form.Extra == nil {
			return nil // blank text of another dialect, or empty text without a seal or extra
		}
		o = rawjson.NewObject("text", b.Text)
	case content.Reasoning:
		if !p.Owns(b) || form.Incomplete || p.HasForeignSeal(b) {
			return nil
		}
		o = rawjson.NewObject("text", b.String(), "thought", rawjson.Value("true"))
	case content.ToolCall:
		o = p.encodeCall(b)
	case content.ToolResult:
		o = p.encodeResult(b)
	case content.Media:
		o = p.encodeMedia(b)
	case content.Native:
		if v := p.NativeJSON(b); v != nil && form.Type != typeSources && !p.HasForeignSeal(b) {
			o = new(rawjson.Object).Merge(v)
		}
	}
	if o == nil {
		return nil
	}
	if p.Owns(b) && p.CanOpen(form.Seal) {
		o.SetString("thoughtSignature", form.Seal.Data)
	}
	return o.Merge(p.Extra(b)).Bytes()
}

// partWithInnerExtra returns a part whose member kind is inner, merged with the members that the extra of
// b has for it.
func (p *geminiEncoder) partWithInnerExtra(b content.Block, kind string, inner *rawjson.Object) *rawjson.Object {
	return rawjson.NewObject(kind, inner.Merge(p.Extra(b).Get(kind)))
}

// encodeCall returns the part of a call. Google accepts ids of other providers.
func (p *geminiEncoder) encodeCall(b content.ToolCall) *rawjson.Object {
	var inner rawjson.Object
	switch {
	case b.Server && b.Form().Type == "executableCode":
		inner.Merge(rawjson.Value(b.Arguments))
	case b.Server:
		inner.SetNonEmpty("toolType", b.Name)
		inner.Set("args", rawjson.Value(b.Arguments))
	default:
		inner.SetString("name", b.Name)
		if !p.Owns(b) || b.Form().Type != typeNoArguments || b.Arguments != "{}" {
			inner.Set("args", wire.ArgumentsObject(b.Arguments))
		}
	}
	inner.SetNonEmpty("id", p.callIDToSend(b))
	kind := "functionCall"
	if b.Server {
		kind = cmp.Or(b.Form().Type, "toolCall")
	}
	return p.partWithInnerExtra(b, kind, &inner)
}

// callIDToSend returns the id of a call in a request: for the provider's own calls the id that it
// gave, which may be empty; else the call id.
func (p *geminiEncoder) callIDToSend(b content.ToolCall) string {
	if p.Owns(b) {
		return b.Form().ID
	}
	return b.CallID
}

// encodeResult returns the part of a result, whose response is a JSON object or an object with
// the text. It returns nil for the result of another provider's server tool.
func (p *geminiEncoder) encodeResult(b content.ToolResult) *rawjson.Object {
	if b.Server {
		return p.encodeServerResult(b)
	}
	call, known := p.calls[b.CallID]
	inner := rawjson.NewObject("name", cmp.Or(call.Name, b.Name, "tool"))
	id := b.CallID
	if known {
		id = p.callIDToSend(call)
	}
	inner.SetNonEmpty("id", id)
	var response rawjson.Object
	field := "output"
	if b.IsError {
		field = "error"
	}
	parts, err := rawjson.Parse(b.Parts)
	switch {
	case err == nil && parts.Kind() == rawjson.KindObject && !b.IsError:
		response.Merge(parts)
	case err == nil:
		response.Set(field, parts)
	default:
		response.SetString(field, b.Text)
	}
	inner.Set("response", response.Bytes())
	return p.partWithInnerExtra(b, "functionResponse", inner)
}

// encodeServerResult returns the part of a result of a tool that the provider ran; nil when it
// came from another dialect.
func (p *geminiEncoder) encodeServerResult(b content.ToolResult) *rawjson.Object {
	if !p.Owns(b) {
		return nil
	}
	var inner rawjson.Object
	inner.SetNonEmpty("id", b.Form().ID)
	if b.Form().Type == "toolResponse" {
		inner.SetNonEmpty("toolType", b.Name)
		inner.Set("response", b.Parts)
	} else if b.Text != "" {
		inner.SetString("output", b.Text)
	}
	return p.partWithInnerExtra(b, cmp.Or(b.Form().Type, "codeExecutionResult"), &inner)
}

// encodeMedia returns the part of an image or a file, with its bytes or its URL; nil when it
// has neither.
func (p *geminiEncoder) encodeMedia(m content.Media) *rawjson.Object {
	var inner rawjson.Object
	media, data, inline := inlineMedia(m, p.Owns(m))
	inner.SetNonEmpty("mimeType", media)
	switch {
	case inline:
		inner.SetString("data", wire.Base64(data))
		return p.partWithInnerExtra(m, "inlineData", &inner)
	case m.URL != "":
		inner.SetString("fileUri", m.URL)
		return p.partWithInnerExtra(m, "fileData", &inner)
	}
	return nil
}

// inlineMedia returns the media type and the bytes of m, not in base64; inline reports whether it has bytes.
// The bytes of a data URL are among them, unless keepDataURL is set, as it is for the media of this
// dialect.
func inlineMedia(m content.Media, keepDataURL bool) (mediaType, rawBytes string, inline bool) {
	if keepDataURL {
		return m.MediaType, m.Data, m.Data != ""
	}
	mediaType, rawBytes, inline = wire.InlineData(m)
	return cmp.Or(mediaType, m.MediaType), rawBytes, inline
}
