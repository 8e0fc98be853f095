package bedrock

import (
	"cmp"
	"strings"
	"unicode/utf8"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/anthropic"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
	"github.com/tract-vcs/tract/llm"
)

// encodeConverse writes a request body. The path names the model and says whether to
// stream.
func encodeConverse(t wire.Target, req *llm.Request) (rawjson.Value, error) {
	s := req.Settings
	p := newConverseEncoder(t)
	wire.EncodeBlocks(p, req.Messages)
	body := rawjson.NewObject("messages", p.List.Bytes())
	body.Set("system", rawjson.NonEmpty(p.System.Bytes()))
	tools := encodeToolConfig(req.Tools, s.ToolChoice, p.hasCall)
	setSettings(t, anthropic.LoopSettings(t, req), tools, body)
	return t.FinishBody(body, s)
}

// encodeAssistantMessage returns the message for the blocks of one response.
func encodeAssistantMessage(t wire.Target, blocks []content.Block) rawjson.Value {
	p := newConverseEncoder(t)
	wire.EncodeBlocks(p, wire.AssistantMessage(blocks))
	return p.List.Bytes().At(0)
}

// converseEncoder encodes blocks as messages whose roles alternate.
type converseEncoder struct {
	wire.Target
	wire.MessageBuilder
	hasCall bool // a tool is called somewhere
}

func newConverseEncoder(t wire.Target) *converseEncoder {
	return &converseEncoder{Target: t, MessageBuilder: wire.MessageBuilder{ModelRole: "assistant", BlocksField: "content"}}
}

// Add adds a block of a message to the message of the wire that takes it.
func (p *converseEncoder) Add(role content.Role, b content.Block) {
	v := p.encodeBlock(b)
	if to, _ := p.StartMessage(role, b, v); to != "" {
		p.hasCall = p.hasCall || wire.IsCall(b)
		p.AppendBlock(b, v)
	}
}

// encodeBlock returns a content block of the wire; nil when it cannot be sent.
func (p *converseEncoder) encodeBlock(b content.Block) rawjson.Value {
	var extra rawjson.Value
	if p.Owns(b) {
		extra = b.Form().Extra
	}
	var o *rawjson.Object
	switch b := b.(type) {
	case content.Text:
		switch {
		case strings.TrimSpace(b.Text) == "": // text without a word is refused
		case p.Owns(b) && b.Form().Type == typeCitations:
			o = rawjson.NewObject(typeCitations, encodeCitedText(b.Text, extra.Get(typeCitations)))
		default:
			o = rawjson.NewObject("text", b.Text)
		}
	case content.Reasoning:
		o = p.encodeReasoningOrThinkTags(b, extra)
	case content.ToolCall:
		o = rawjson.NewObject("toolUse", p.encodeCall(b, extra.Get("toolUse")))
	case content.ToolResult:
		if !b.Server || p.Owns(b) {
			o = rawjson.NewObject("toolResult", p.encodeResult(b, extra.Get("toolResult")))
		}
	case content.Media:
		return encodeMedia(b)
	case content.Native:
		return p.NativeJSON(b)
	}
	if o == nil {
		return nil
	}
	return o.Merge(extra).Bytes()
}

// encodeCitedText returns a text with what it cites.
func encodeCitedText(text string, extra rawjson.Value) rawjson.Value {
	o := rawjson.NewObject("content", rawjson.ArrayOf(rawjson.NewObject("text", text).Bytes()))
	o.Set("content", extra.Get("content"))
	return o.Merge(extra).Bytes()
}

// encodeReasoningOrThinkTags returns reasoning of this dialect with the seal of its model, or as a
// text between think tags if it has no seal; nil when it cannot be sent. Models that do not seal
// their reasoning accept it only as such a text.
func (p *converseEncoder) encodeReasoningOrThinkTags(r content.Reasoning, extra rawjson.Value) *rawjson.Object {
	form := r.Form()
	var in *rawjson.Object
	switch {
	case !p.Owns(r) || form.Incomplete:
		return nil
	case p.CanOpen(form.Seal) && form.Seal.Type == content.Redacted:
		in = rawjson.NewObject(memberRedactedContent, form.Seal.Data)
	case p.CanOpen(form.Seal):
		text := rawjson.NewObject("text", r.String(), "signature", form.Seal.Data)
		in = rawjson.NewObject(memberReasoningText, text.Merge(extra.Get("reasoningContent", memberReasoningText)))
	case form.Seal.Data == "" && strings.TrimSpace(r.Text) != "":
		return rawjson.NewObject("text", "<think>\n"+r.Text+"\n</think>\n")
	default:
		return nil
	}
	return rawjson.NewObject("reasoningContent", in.Merge(extra.Get("reasoningContent")))
}

func (p *converseEncoder) encodeCall(c content.ToolCall, extra rawjson.Value) rawjson.Value {
	o := rawjson.NewObject("toolUseId", wire.SafeCallID(c.CallID, maxCallID), "name", c.Name)
	input := wire.ArgumentsObject(c.Arguments)
	if v, err := rawjson.Parse([]byte(c.Arguments)); err == nil && p.Owns(c) {
		input = v
	}
	o.Set("input", input)
	if c.Form().Type != "" && p.Owns(c) {
		o.SetString("type", c.Form().Type)
	}
	return o.Merge(extra).Bytes()
}

func (p *converseEncoder) encodeResult(r content.ToolResult, extra rawjson.Value) rawjson.Value {
	o := rawjson.NewObject("toolUseId", wire.SafeCallID(r.CallID, maxCallID))
	list := rawjson.Value("[]")
	v, err := rawjson.Parse(r.Parts)
	switch text := wire.ResultText(r); {
	case err == nil && p.Owns(r):
		list = v
	case err == nil && v.Kind() == rawjson.KindObject:
		list = rawjson.ArrayOf(rawjson.NewObject("json", v).Bytes())
	case strings.TrimSpace(text) != "":
		list = rawjson.ArrayOf(rawjson.NewObject("text", text).Bytes())
	}
	o.Set("content", list)
	if r.IsError {
		o.SetString("status", "error")
	}
	if r.Form().Type != "" && p.Owns(r) {
		o.SetString("type", r.Form().Type)
	}
	return o.Merge(extra).Bytes()
}

// maxCallID is how many characters an id of a call may have.
const maxCallID = 64

// encodeMedia writes an image or a document: its bytes or its URL in
// S3. No other place is known to the format, so that its name is all to send.
func encodeMedia(m content.Media) rawjson.Value {
	media, data, inline := wire.InlineData(m)
	var source *rawjson.Object
	switch {
	case inline:
		source = rawjson.NewObject("bytes", wire.Base64(data))
	case strings.HasPrefix(m.URL, "s3://"):
		source = rawjson.NewObject("s3Location", rawjson.NewObject("uri", m.URL))
	case m.URL != "":
		return rawjson.NewObject("text", m.URL).Bytes()
	default:
		return nil
	}
	in := rawjson.NewObject("format", guessMediaFormat(cmp.Or(media, m.MediaType), m))
	key := "image"
	if m.Of != content.KindImage {
		key = "document"
		in.SetString("name", sanitizeDocumentName(m.Name))
	}
	in.Set("source", source.Bytes())
	return rawjson.NewObject(key, in).Bytes()
}

// formatNames is the names of formats that are not the end of their media
// type.
var formatNames = map[string]string{
	"text/plain": "txt", "text/markdown": "md", "application/msword": "doc", "application/vnd.ms-excel": "xls",
	"application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
	"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet":       "xlsx",
}

// guessMediaFormat returns the format of a file: by its media type, else by the extension in its
// name or its URL, else txt.
func guessMediaFormat(mediaType string, m content.Media) string {
	if f := formatNames[mediaType]; f != "" {
		return f
	}
	if _, f, ok := strings.Cut(mediaType, "/"); ok && !strings.Contains(f, "octet-stream") {
		return f
	}
	name := cmp.Or(m.Name, m.URL)
	if i := strings.LastIndexByte(name, '.'); i >= 0 && i < len(name)-1 {
		return strings.Replace(strings.ToLower(name[i+1:]), "jpg", "jpeg", 1)
	}
	return "txt"
}

// sanitizeDocumentName returns a name as the format allows one: letters, digits, hyphens,
// brackets and single blanks.
func sanitizeDocumentName(name string) string {
	words := strings.FieldsFunc(name, func(r rune) bool {
		return r >= utf8.RuneSelf || !strings.ContainsRune("-()[]", r) && !(r >= '0' && r <= '9' || r|0x20 >= 'a' && r|0x20 <= 'z')
	})
	return cmp.Or(strings.Join(words, " "), "document")
}
