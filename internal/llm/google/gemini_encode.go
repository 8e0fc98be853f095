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

// encodeGemini writes a request. Equal requests give equal bytes.
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
	body.Set("generationConfig", encodeGenerationConfig(t, s))
	v, err := t.FinishBody(&body, s, "generationConfig", systemInstruction)
	if snake := rawjson.Value(s.Extra).Get(extraSnakeCase); snake != nil {
		v = inSnakeCase(v, snake)
	}
	return v, err
}

// replayGemini writes the content that stands for one response.
func replayGemini(t wire.Target, blocks []content.Block) rawjson.Value {
	p := newGeminiEncoder(t, wire.AssistantMessage(blocks))
	wire.EncodeBlocks(p, wire.AssistantMessage(blocks))
	return rawjson.ValidUTF8(bytes.Clone(p.List.Bytes().At(0)))
}

// geminiEncoder encodes blocks as contents whose roles alternate.
type geminiEncoder struct {
	wire.Target
	wire.MessageBuilder
	calls          map[string]content.ToolCall // of all messages, by id
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

// Add adds a block of a message of a role.
func (p *geminiEncoder) Add(role content.Role, b content.Block) {
	v := p.encodePart(role, b)
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
		v = p.withSealPlaceholder(c, v)
	}
	p.AppendBlock(b, v)
}

// skipSealValidation is the value that Google documents for the seal of a call which a
// model of another vendor made.
const skipSealValidation = "skip_thought_signature_validator"

// withSealPlaceholder returns a call as it is sent: the first of a message that another
// vendor's model made gets skipSealValidation. A call of Gemini's own that lost its seal
// does not.
func (p *geminiEncoder) withSealPlaceholder(b content.ToolCall, v rawjson.Value) rawjson.Value {
	is := !p.hasCall
	if p.hasCall = true; !is || !p.needsFirstSeal || p.Owns(b) {
		return v
	}
	o := new(rawjson.Object).Merge(v)
	o.SetString("thoughtSignature", skipSealValidation)
	return o.Bytes()
}

// encodePart returns the part for a block; nil when the block cannot be sent.
func (p *geminiEncoder) encodePart(role content.Role, b content.Block) rawjson.Value {
	form := b.Form()
	var o rawjson.Object
	switch b := b.(type) {
	case content.Text:
		if b.Kind().Traits().Private || strings.TrimSpace(b.Text) == "" && !p.Owns(b) || b.Text == "" && !p.CanOpen(form.Seal) && form.Extra == nil {
			return nil // text without a word says nothing
		}
		o.SetString("text", b.Text)
	case content.Reasoning:
		if !p.Owns(b) || b.Form().Incomplete || p.HasForeignSeal(b) {
			return nil
		}
		o.SetString("text", b.String())
		o.SetBool("thought", true)
	case content.ToolCall:
		if !p.encodeCall(b, &o) {
			return nil
		}
	case content.ToolResult:
		if !p.encodeResult(b, &o) {
			return nil
		}
	case content.Media:
		if role == content.RoleAssistant && !p.Owns(b) || !encodeGeminiMedia(b, p.Owns(b), &o) {
			return nil
		}
	case content.Native:
		v, err := rawjson.Parse([]byte(b.JSON))
		if err != nil || !p.Owns(b) || b.Form().Type == typeSources || p.HasForeignSeal(b) {
			return nil
		}
		o.Merge(v)
	default:
		return nil
	}
	if !p.Owns(b) {
		return o.Bytes()
	}
	if p.CanOpen(form.Seal) {
		o.SetString("thoughtSignature", form.Seal.Data)
	}
	return o.Merge(p.Extra(b)).Bytes()
}

// setInner puts the object that says what a part is into the part, with the members that
// the block kept.
func (p *geminiEncoder) setInner(b content.Block, kind string, inner, o *rawjson.Object) {
	if p.Owns(b) {
		inner.Merge(rawjson.Value(b.Form().Extra).Get(kind))
	}
	o.Set(kind, inner.Bytes())
}

// encodeCall writes a call. Ids of other providers are allowed.
func (p *geminiEncoder) encodeCall(b content.ToolCall, o *rawjson.Object) bool {
	if b.Server && !p.Owns(b) {
		return false
	}
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
	inner.SetNonEmpty("id", p.providerCallID(b))
	kind := "functionCall"
	if b.Server {
		kind = cmp.Or(b.Form().Type, "toolCall")
	}
	p.setInner(b, kind, &inner, o)
	return true
}

// providerCallID returns the id of a call as the provider knows it: for calls of its own,
// only an id that it gave.
func (p *geminiEncoder) providerCallID(b content.ToolCall) string {
	if p.Owns(b) {
		return b.Form().ID
	}
	return b.CallID
}

// encodeResult writes a result: an object, or an object with its text.
func (p *geminiEncoder) encodeResult(b content.ToolResult, o *rawjson.Object) bool {
	if b.Server {
		return p.Owns(b) && p.encodeServerResult(b, o)
	}
	var inner rawjson.Object
	call, known := p.calls[b.CallID]
	inner.SetString("name", cmp.Or(cmp.Or(call.Name, b.Name), "tool"))
	id := b.CallID
	if known {
		id = p.providerCallID(call)
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
	p.setInner(b, "functionResponse", &inner, o)
	return true
}

// encodeServerResult writes the result of a tool that the provider ran.
func (p *geminiEncoder) encodeServerResult(b content.ToolResult, o *rawjson.Object) bool {
	var inner rawjson.Object
	inner.SetNonEmpty("id", b.Form().ID)
	if b.Form().Type == "toolResponse" {
		inner.SetNonEmpty("toolType", b.Name)
		inner.Set("response", b.Parts)
	} else if b.Text != "" {
		inner.SetString("output", b.Text)
	}
	p.setInner(b, cmp.Or(b.Form().Type, "codeExecutionResult"), &inner, o)
	return true
}

// encodeGeminiMedia writes an image or a file: its bytes or its URL. It reports whether
// there is either.
func encodeGeminiMedia(m content.Media, own bool, o *rawjson.Object) bool {
	var inner rawjson.Object
	kind := "fileData"
	media, data, inline := m.MediaType, m.Data, m.Data != ""
	if !own {
		media, data, inline = wire.InlineData(m)
		media = cmp.Or(media, m.MediaType)
	}
	inner.SetNonEmpty("mimeType", media)
	switch {
	case inline:
		kind = "inlineData"
		inner.SetString("data", wire.Base64(data))
	case m.URL != "":
		inner.SetString("fileUri", m.URL)
	default:
		return false // its source is in what came with it
	}
	if own {
		inner.Merge(rawjson.Value(m.Form().Extra).Get(kind))
	}
	o.Set(kind, inner.Bytes())
	return true
}
