package openai

import (
	"cmp"
	"strings"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
	"github.com/tract-vcs/tract/llm"
)

// encodeResponses encodes a request body. Equal requests give equal bytes.
func encodeResponses(t wire.Target, req *llm.Request) (rawjson.Value, error) {
	s := req.Settings
	extra, err := t.ParseExtra(s)
	if err != nil {
		return nil, err
	}
	var body rawjson.Object
	body.SetNonEmpty("model", t.Model)
	store := extra.Get("store") // null leaves it to the provider, which keeps responses then
	p := responsesEncoder{Target: t, asSent: extra.Get(extraItemIDs).Bool(), stored: store.Bool() || store.Kind() == rawjson.KindNull || extra.Get(extraItemIDs).Bool()}
	for _, m := range req.Messages {
		if m.Role == content.RoleAssistant {
			p.addAssistant(m.Blocks)
		} else {
			p.addUserOrSystemMessage(m)
		}
	}
	p.results.Flush(&p.list)
	body.Set("input", p.encodeInput(extra.Get(extraInputString).Bool()))
	if len(req.Tools) > 0 {
		body.Set("tools", encodeResponsesTools(req.Tools))
		body.Set("tool_choice", encodeResponsesToolChoice(s.ToolChoice, req.Tools))
	}
	wire.SetCommon(&body, s, "max_output_tokens")
	setResponsesReasoning(t, s.Reasoning, &body)
	body.SetBool("store", false)
	body.SetTrue("stream", req.Stream)
	v, err := t.FinishBody(&body, s)
	if store.Kind() == rawjson.KindNull {
		v = rawjson.Without(v, "store")
	}
	return v, err
}

// encodeInput returns the value of input: the list of items, or a string if asString is true
// and the only item is one text of the user.
func (p *responsesEncoder) encodeInput(asString bool) rawjson.Value {
	list := p.list.Bytes()
	if first := list.At(0); asString && list.At(1) == nil && first.Get("role").Text() == "user" && first.Get("content").At(1) == nil {
		if text := first.Get("content").At(0).Get("text"); text != nil {
			return text
		}
	}
	return list
}

// setResponsesReasoning requests summaries and encrypted content of the reasoning, and sets
// the effort. Only some gateways accept a budget in tokens; they accept either a budget or an
// effort.
func setResponsesReasoning(t wire.Target, r llm.Reasoning, body *rawjson.Object) {
	var o rawjson.Object
	if r.MaxTokens > 0 && t.Quirks.EffortObject == "reasoning" {
		o.SetInt("max_tokens", int64(r.MaxTokens))
	} else if r.Effort != "" {
		o.SetString("effort", r.Effort)
	}
	if !r.Hidden && r.Summary != "none" {
		o.SetString("summary", cmp.Or(r.Summary, "auto"))
	}
	if !r.Hidden || r.Disabled && t.OffRule().StillReasons { // a model that reasons anyway needs its reasoning back
		body.Set("include", rawjson.Value(`["reasoning.encrypted_content"]`))
	}
	body.Set("reasoning", rawjson.NonEmpty(o.Bytes()))
}

// encodeResponsesTools encodes the tools. It sets strict to false, because the API's default
// is a strict schema, which allows no optional arguments.
func encodeResponsesTools(tools []llm.Tool) rawjson.Value {
	return wire.EncodeTools(tools, func(t llm.Tool) rawjson.Value {
		o := rawjson.NewObject("type", "function")
		wire.SetToolName(o, t)
		o.Set("parameters", wire.SchemaOr(t, wire.EmptySchema))
		o.SetBool("strict", false)
		return o.Bytes()
	})
}

// encodeResponsesToolChoice returns the value of tool_choice; nil when the settings have none.
// The provider's own tools are chosen by their type.
func encodeResponsesToolChoice(choice string, tools []llm.Tool) rawjson.Value {
	switch choice {
	case "":
		return nil
	case "auto", "none", "required":
		return rawjson.AppendString(nil, choice)
	}
	kind := "function"
	for _, t := range tools {
		if v := rawjson.Value(t.Native); v.Get("name").Text() == choice {
			kind = v.Get("type").Text()
		} else if v.Get("type").Text() == choice {
			return rawjson.NewObject("type", choice).Bytes()
		}
	}
	return rawjson.NewObject("type", kind, "name", choice).Bytes()
}

// addUserOrSystemMessage adds a message of the user or of the system. Tool results become items of their
// own, wherever they are in the message.
func (p *responsesEncoder) addUserOrSystemMessage(m content.Message) {
	var parts rawjson.Array
	for _, b := range m.Blocks {
		switch b := b.(type) {
		case content.ToolResult:
			if !b.Server {
				p.results.Add(b.CallID, p.encodeResult(b), p.FormOf(b))
			}
		case content.Text:
			if b.Text != "" {
				part := new(rawjson.Object).Merge(rawjson.Value(b.Form().Extra).Get(extraItemPart))
				if !p.Owns(b) {
					part = &rawjson.Object{}
				}
				part.SetString("text", b.Text)
				if part.Bytes().Get("type") == nil {
					part.SetString("type", "input_text")
				}
				parts.Add(part.Bytes())
			}
		case content.Media:
			parts.Add(p.encodeMedia(b))
		case content.Native:
			v := p.NativeJSON(b)
			if strings.HasPrefix(b.Form().Type, typeItemPart) {
				parts.Add(v)
			} else if v != nil { // an item, such as the approval of a tool
				p.results.Flush(&p.list)
				p.list.Add(v)
			}
		}
	}
	list := parts.Bytes()
	if m.Role == content.NoRole || list.At(0) == nil {
		return
	}
	role := "user"
	if m.Role == content.RoleSystem {
		role = "system"
	}
	p.results.Flush(&p.list)
	message := rawjson.NewObject("type", "message", "role", role, "content", list).Bytes()
	p.list.Add(p.withOriginalForm(message, m.Blocks[0]))
}

// encodeMedia returns the part for an image or a file, with its bytes or its URL; nil when it
// has neither and is not of this dialect.
func (p *responsesEncoder) encodeMedia(m content.Media) rawjson.Value {
	kind, data, inline := wire.InlineData(m)
	url := m.URL
	if inline {
		url = wire.DataURL(kind, data)
	}
	var o rawjson.Object
	switch {
	case m.Of == content.KindImage:
		o.SetString("type", "input_image")
		o.SetNonEmpty("image_url", url)
	case inline:
		o.SetString("type", "input_file")
		o.SetString("filename", cmp.Or(m.Name, "file"))
		o.SetString("file_data", url)
	default:
		o.SetString("type", "input_file")
		o.SetNonEmpty("file_url", url)
	}
	if p.Owns(m) {
		o.Merge(rawjson.Without(m.Form().Extra, extraItemForm))
	} else if url == "" {
		return nil
	}
	return o.Bytes()
}

// encodeResult returns the item for the result of a call. Each type of call has its own type
// of result.
func (p *responsesEncoder) encodeResult(r content.ToolResult) rawjson.Value {
	call := p.calls[r.CallID]
	kind := cmp.Or(toolItemTraitsOf(call.Form().Type).resultType, "function_call_output")
	parts, err := rawjson.Parse(r.Parts)
	own := err == nil && p.Owns(r)
	o := rawjson.NewObject("type", kind, "call_id", p.callIDToSend(r.CallID))
	switch kind {
	case "shell_call_output":
		o.Set("output", shellOutputChunks(r, parts))
	case "apply_patch_call_output":
		o.SetString("status", "completed")
		if r.IsError {
			o.SetString("status", "failed")
		}
		o.SetString("output", r.String())
	case "computer_call_output":
		if o.Set("output", parts); parts.Kind() != rawjson.KindObject {
			o.Set("output", rawjson.NewObject("type", "computer_screenshot", "image_url", r.String()).Bytes())
		}
	case "tool_search_output":
		o.SetString("execution", "client")
		if o.Set("tools", parts); parts.Kind() != rawjson.KindArray {
			o.Set("tools", rawjson.Value("[]"))
		}
	default:
		if o.Set("output", parts); !own && !isContentList(parts) {
			o.SetString("output", wire.ResultText(r))
		}
	}
	return o.Merge(p.Extra(r)).Bytes()
}

// isContentList reports whether v is a list, not empty, of input_text, input_image and
// input_file parts only.
func isContentList(v rawjson.Value) bool {
	for part := range v.Elements() {
		switch part.Get("type").Text() {
		case "input_text", "input_image", "input_file":
		default:
			return false
		}
	}
	return v.At(0) != nil
}

// shellOutputChunks returns the output of a shell command: a list of chunks, each with its
// outcome. parts is the result's own JSON; if it is such a list already, it is returned.
func shellOutputChunks(r content.ToolResult, parts rawjson.Value) rawjson.Value {
	if parts.At(0).Get("outcome") != nil {
		return parts
	}
	code := 0
	if r.IsError {
		code = 1
	}
	outcome := rawjson.NewObject("type", "exit", "exit_code", code)
	return rawjson.ArrayOf(rawjson.NewObject("stdout", r.String(), "stderr", "", "outcome", outcome).Bytes())
}
