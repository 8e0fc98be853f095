package wire

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/llm"
)

// Encode encodes a request body, without the blocks that cannot be sent. If the settings turn
// reasoning off, the model gets the effort of its OffRule and no budget.
func (t Target) Encode(req *llm.Request) (rawjson.Value, error) {
	sent := *req
	sent.Messages = slices.Clone(req.Messages)
	for i, m := range sent.Messages {
		sent.Messages[i].Blocks = t.sendableBlocks(m)
	}
	if r := req.Settings.Reasoning; IsReasoningOff(r) {
		sent.Settings.Reasoning = llm.Reasoning{Disabled: true, Effort: t.OffRule().Effort, Summary: r.Summary, Native: r.Native, Hidden: r.Hidden || r.Disabled}
	}
	return t.Dialect.Encode(t, &sent)
}

// Replay returns the part of the next request that repeats one response, as valid UTF-8; nil
// when nothing of the response can be sent.
func (t Target) Replay(blocks []content.Block) rawjson.Value {
	v := t.Dialect.Replay(t, t.sendableBlocks(content.Message{Role: content.RoleAssistant, Blocks: blocks}))
	return rawjson.ValidUTF8(bytes.Clone(v))
}

// AssistantMessage returns a list of one message of the model.
func AssistantMessage(blocks []content.Block) []content.Message {
	return []content.Message{{Role: content.RoleAssistant, Blocks: blocks}}
}

// sendableBlocks returns the blocks of a message for which canSend is true.
func (t Target) sendableBlocks(m content.Message) []content.Block {
	unsendable := func(b content.Block) bool { return !t.canSend(m.Role, b) }
	if slices.ContainsFunc(m.Blocks, unsendable) {
		return slices.DeleteFunc(slices.Clone(m.Blocks), unsendable)
	}
	return m.Blocks
}

// canSend reports whether a block can be sent in a message of a role. No dialect sends private
// texts, calls of another provider's server tools, or media that another provider's model
// made.
func (t Target) canSend(role content.Role, b content.Block) bool {
	switch b := b.(type) {
	case content.Text:
		return !b.Kind().Traits().Private
	case content.ToolCall:
		return !b.Server || t.Owns(b)
	case content.Media:
		return role != content.RoleAssistant || t.Owns(b)
	}
	return true
}

// NativeJSON returns the JSON of a native block of this dialect; nil for other dialects.
func (t Target) NativeJSON(b content.Native) rawjson.Value {
	if !t.Owns(b) {
		return nil
	}
	v, _ := rawjson.Parse([]byte(b.JSON))
	return v
}

// ParseExtra returns the members that the settings' extra adds to a body; nil when there are
// none.
func (t Target) ParseExtra(s llm.Settings) (rawjson.Value, error) {
	if len(s.Extra) == 0 {
		return nil, nil
	}
	v, err := rawjson.Parse(s.Extra)
	if err != nil || v.Kind() != rawjson.KindObject {
		return nil, fmt.Errorf("%s: request.extra: want a JSON object, have %q", t.Dialect.Name, rawjson.Excerpt(s.Extra))
	}
	return v, nil
}

// FinishBody returns the body with the members of the settings' extra, as valid UTF-8. An extra
// member replaces a member of the body; objects whose names are in merged are merged
// instead.
func (t Target) FinishBody(body *rawjson.Object, s llm.Settings, merged ...string) (rawjson.Value, error) {
	extra, err := t.ParseExtra(s)
	if err != nil {
		return nil, err
	}
	for key, value := range extra.Members() {
		if strings.HasPrefix(key, "$") {
			continue // tract's own member, see ExtraForm
		}
		if previous := body.Bytes().Get(key); slices.Contains(merged, key) && value.Kind() == rawjson.KindObject && previous != nil {
			value = new(rawjson.Object).Merge(value).Merge(previous).Bytes()
		}
		body.Set(key, value)
	}
	return rawjson.ValidUTF8(body.Bytes()), nil
}

// SetCommon sets the settings that all dialects have: the output limit, in the field limit, and
// the temperature.
func SetCommon(o *rawjson.Object, s llm.Settings, limit string) {
	if s.MaxOutputTokens > 0 {
		o.SetInt(limit, int64(s.MaxOutputTokens))
	}
	SetTemperature(o, s)
}

// SetTemperature sets the temperature, if there is one, in as few digits as possible.
func SetTemperature(o *rawjson.Object, s llm.Settings) {
	if s.Temperature != nil {
		o.Set("temperature", strconv.AppendFloat(nil, *s.Temperature, 'f', -1, 64))
	}
}

// LowMediumHigh returns the nearest effort for APIs that accept only low, medium and high.
func LowMediumHigh(effort string) string {
	switch effort {
	case "minimal":
		return "low"
	case "xhigh", "max":
		return "high"
	}
	return effort
}

// EncodeTools encodes the definitions of tools. It copies the JSON of a provider's own tools,
// and calls write for the others.
func EncodeTools(tools []llm.Tool, write func(t llm.Tool) rawjson.Value) rawjson.Value {
	var list rawjson.Array
	for _, t := range tools {
		if len(t.Native) > 0 {
			list.Add(t.Native)
		} else {
			list.Add(write(t))
		}
	}
	return list.Bytes()
}

// SetToolName sets the name and the description of a tool.
func SetToolName(o *rawjson.Object, t llm.Tool) {
	o.SetString("name", t.Name)
	o.SetNonEmpty("description", t.Description)
}

// EmptySchema is the schema of a tool without arguments. It has properties, because some servers
// refuse a schema without them.
const EmptySchema = `{"type":"object","properties":{}}`

// SchemaOr returns the schema of a tool's arguments, or other if the tool has none.
func SchemaOr(t llm.Tool, other string) rawjson.Value {
	if len(t.Schema) == 0 {
		return rawjson.Value(other)
	}
	return t.Schema
}

// ArgumentsObject returns the arguments of a call as a JSON object, which most APIs require.
// Arguments that are not an object, such as the text for a custom tool, become the only
// member of one.
func ArgumentsObject(arguments string) rawjson.Value {
	if strings.TrimSpace(arguments) == "" {
		return rawjson.Value("{}")
	}
	v, err := rawjson.Parse([]byte(arguments))
	if err == nil && v.Kind() == rawjson.KindObject {
		return v
	}
	return rawjson.NewObject("arguments", arguments).Bytes()
}

// EncodeReasoningTexts encodes the texts of reasoning as a list of parts of type kind.
func EncodeReasoningTexts(kind string, r content.Reasoning) rawjson.Value {
	parts := r.Parts
	if len(parts) == 0 && r.Text != "" {
		parts = []string{r.Text}
	}
	var list rawjson.Array
	for _, text := range parts {
		list.Add(rawjson.NewObject("type", kind, "text", text).Bytes())
	}
	return list.Bytes()
}

// ResultValue returns the JSON of a result that came from this dialect, else its text.
func (t Target) ResultValue(r content.ToolResult) rawjson.Value {
	if v, err := rawjson.Parse(r.Parts); err == nil && t.Owns(r) {
		return v
	}
	return rawjson.AppendString(nil, ResultText(r))
}

// ResultText returns a result as text. For a list of parts, it joins their texts, with the type
// in brackets for a part without text.
func ResultText(r content.ToolResult) string {
	parts, err := rawjson.Parse(r.Parts)
	if err != nil || parts.Kind() != rawjson.KindArray {
		return r.String()
	}
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

// FunctionTools encodes the definitions of tools in the form of OpenAI's chat, which other
// vendors share.
func FunctionTools(tools []llm.Tool) rawjson.Value {
	return EncodeTools(tools, func(t llm.Tool) rawjson.Value {
		var f rawjson.Object
		SetToolName(&f, t)
		f.Set("parameters", SchemaOr(t, EmptySchema))
		return rawjson.NewObject("type", "function", "function", &f).Bytes()
	})
}

// EffortBudgets maps an effort to a thinking budget in tokens, for models that accept no
// effort. They refuse a budget below the smallest one here.
var EffortBudgets = map[string]int{"minimal": 1024, "low": 2048, "medium": 8192, "high": 16384, "xhigh": 24576, "max": 32000}

// ExtraBefore is the member of a text's extra that keeps the empty think tags before the text.
const ExtraBefore = "$before"
