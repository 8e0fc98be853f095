package format

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/objects"
)

// Reply is a response and its commits, for programs.
type Reply struct {
	Text            string        `json:"text"`
	TextBase64      string        `json:"text_base64,omitempty"`
	Reasoning       string        `json:"reasoning,omitempty"`
	ReasoningBase64 string        `json:"reasoning_base64,omitempty"`
	ToolCalls       []*callJSON   `json:"tool_calls"`
	Commits         []objects.ID  `json:"commits"`
	Usage           content.Usage `json:"usage,omitzero"`
	FinishReason    string        `json:"finish_reason,omitempty"`
	Manifest        objects.ID    `json:"manifest,omitzero"`
	Rescued         string        `json:"rescued,omitempty"`
	Warnings        []Warning     `json:"warnings,omitempty"`
}

// Warning is a requested setting that a provider did not follow, or a possible problem of a request.
type Warning struct {
	Rule    string     `json:"rule"`
	Commit  objects.ID `json:"commit,omitzero"`
	Message string     `json:"message"`
}

// NewReply returns a response for programs. The caller sets Rescued.
func NewReply(r *tract.Response) Reply {
	v := Reply{
		Text: r.Text, TextBase64: base64OrEmptyIfValid(r.Text), Reasoning: r.Reasoning, ReasoningBase64: base64OrEmptyIfValid(r.Reasoning),
		ToolCalls: []*callJSON{}, Commits: append([]objects.ID{}, r.Commits...), Usage: r.Usage, FinishReason: r.Finish, Manifest: r.Manifest,
	}
	for _, c := range newCalls(r.Blocks) {
		if !c.Server {
			v.ToolCalls = append(v.ToolCalls, c)
		}
	}
	for _, w := range r.Warnings {
		v.Warnings = append(v.Warnings, Warning{Rule: w.Rule, Commit: w.Commit, Message: w.Message})
	}
	return v
}

type decodeJSON struct {
	API          string                 `json:"api"`
	Model        string                 `json:"model,omitempty"`
	ResponseID   string                 `json:"response_id,omitempty"`
	Blocks       []string               `json:"blocks"`
	Reasoning    []decodedReasoningJSON `json:"reasoning"`
	Text         string                 `json:"text"`
	TextBase64   string                 `json:"text_base64,omitempty"`
	ToolCalls    []*callJSON            `json:"tool_calls"`
	OtherSeals   []otherSealJSON        `json:"signatures_on_other_blocks,omitempty"`
	Usage        content.Usage          `json:"usage,omitzero"`
	FinishReason string                 `json:"finish_reason,omitempty"`
	Incomplete   bool                   `json:"incomplete,omitempty"`
	Error        *responseErrorJSON     `json:"error,omitempty"`
}

type decodedReasoningJSON struct {
	Form       string   `json:"form"`
	Text       string   `json:"text"`
	TextBase64 string   `json:"text_base64,omitempty"`
	Parts      []string `json:"parts,omitempty"`
	Source     string   `json:"source,omitempty"`
	Signature  string   `json:"signature,omitempty"`
	Encrypted  string   `json:"encrypted,omitempty"`
	Redacted   bool     `json:"redacted,omitempty"`
	ID         string   `json:"id,omitempty"`
	Format     string   `json:"format,omitempty"`
}

type callJSON struct {
	ID           string          `json:"id,omitempty"`
	ItemID       string          `json:"item_id,omitempty"`
	Name         string          `json:"name"`
	Arguments    json.RawMessage `json:"arguments,omitempty"`
	ArgumentsRaw string          `json:"arguments_raw"`
	Server       bool            `json:"server"`
	Preceded     bool            `json:"preceded_by_reasoning"`
	Ref          *int            `json:"reasoning_ref,omitempty"` // index of the call that the shared reasoning belongs to
}

type otherSealJSON struct {
	Block     int    `json:"block"`
	Kind      string `json:"kind"`
	Signature string `json:"signature"`
}

type responseErrorJSON struct {
	Message   string          `json:"message"`
	Type      string          `json:"type,omitempty"`
	Status    int             `json:"status,omitempty"`
	Param     string          `json:"param,omitempty"`
	RequestID string          `json:"request_id,omitempty"`
	Raw       json.RawMessage `json:"raw,omitempty"`
}

// DecodeJSON returns a decoded provider response for programs. r may be nil; err is the reason why
// the response is incomplete, or nil.
func DecodeJSON(api string, r *llm.Response, err error) any {
	v := decodeJSON{API: api, Blocks: []string{}, Reasoning: []decodedReasoningJSON{}, ToolCalls: []*callJSON{}, Error: newResponseError(err)}
	if r == nil {
		return v
	}
	v.Model, v.ResponseID, v.FinishReason, v.Usage, v.Incomplete = r.Model, r.ID, r.Finish, r.Usage, r.Incomplete
	var text strings.Builder
	for i, b := range r.Blocks {
		name := blockTypeInDecodeJSON(b)
		v.Blocks = append(v.Blocks, name)
		if name == "text" {
			text.WriteString(b.String())
		}
		if thought, ok := b.(content.Reasoning); ok {
			v.Reasoning = append(v.Reasoning, newDecodedReasoning(thought))
		} else if seal := b.Form().Seal; seal.Data != "" {
			v.OtherSeals = append(v.OtherSeals, otherSealJSON{Block: i, Kind: name, Signature: seal.Data})
		}
	}
	v.Text, v.TextBase64 = text.String(), base64OrEmptyIfValid(text.String())
	v.ToolCalls = append(v.ToolCalls, newCalls(r.Blocks)...)
	return v
}

// blockTypeInDecodeJSON returns the type of a block in the output of [DecodeJSON], such as "tool_call".
func blockTypeInDecodeJSON(b content.Block) string {
	switch b := b.(type) {
	case content.Reasoning:
		return "reasoning"
	case content.ToolCall:
		if b.Server {
			return "server_tool_call"
		}
		return "tool_call"
	case content.ToolResult:
		if b.Server {
			return "server_tool_result"
		}
		return "tool_result"
	case content.Media:
		return "file"
	case content.Native:
		if decoded, known := itemTypeInDecodeJSON(nativeType(b)); known {
			return decoded
		}
		return "other:" + nativeType(b)
	}
	if decoded, known := itemTypeInDecodeJSON(b.Form().Type); known {
		return decoded
	}
	return "text"
}

// itemTypeInDecodeJSON returns the type that an item of a provider has in the output of [DecodeJSON]. known
// is false for an item that has no type of its own there.
func itemTypeInDecodeJSON(itemType string) (decoded string, known bool) {
	switch itemType {
	case "refusal", "compaction", "plan":
		return itemType, true
	case "tool_plan":
		return "plan", true
	}
	return "", false
}

func newDecodedReasoning(r content.Reasoning) decodedReasoningJSON {
	v := decodedReasoningJSON{
		Form: reasoningForm(r), Text: r.String(), TextBase64: base64OrEmptyIfValid(r.String()), Parts: r.Parts, Source: r.Source, ID: r.Form().ID, Format: string(r.Format),
	}
	if extra, err := rawjson.Parse(r.Form().Extra); err == nil && extra.Get("format").Text() != "" {
		v.Format = extra.Get("format").Text()
	}
	switch r.Form().Seal.Type {
	case content.Signature:
		v.Signature = r.Form().Seal.Data
	case content.Redacted:
		v.Encrypted, v.Redacted = r.Form().Seal.Data, true
	case content.Encrypted, content.Opaque:
		v.Encrypted = r.Form().Seal.Data
	}
	return v
}

// reasoningForm returns the form of reasoning, such as "text", "summary" or "encrypted".
func reasoningForm(r content.Reasoning) string {
	switch {
	case r.Form().Seal.Type == content.Redacted:
		return "redacted"
	case r.Format == content.FormatThinkTags:
		return "tags"
	case r.String() != "" && strings.Contains(r.Source, "summary"):
		return "summary"
	case r.String() != "":
		return "text"
	case r.Form().Seal.Type == content.Signature:
		return "signature"
	case r.Form().Seal.Data != "":
		return "encrypted"
	}
	return "empty"
}

// newCalls returns the tool calls of a response as JSON. Each call has a field that reports whether
// reasoning led to it.
func newCalls(blocks []content.Block) []*callJSON {
	owned, _ := content.Attribute(blocks)
	place := make(map[int]int, len(owned)) // of a call among the calls
	calls := make([]*callJSON, len(owned))
	for i, o := range owned {
		place[o.Call] = i
		c := blocks[o.Call].(content.ToolCall)
		calls[i] = &callJSON{
			ID: c.CallID, Name: c.Name, Arguments: parsedJSON(c.Arguments), ArgumentsRaw: c.Arguments,
			Server: c.Server, Preceded: len(o.Reasoning) > 0,
		}
		if c.Form().ID != c.CallID {
			calls[i].ItemID = c.Form().ID
		}
		if o.Ref >= 0 {
			ref := place[o.Ref]
			calls[i].Ref = &ref
		}
	}
	return calls
}

// newResponseError returns the error of an incomplete response for programs; nil: there is none.
func newResponseError(err error) *responseErrorJSON {
	if err == nil {
		return nil
	}
	v := &responseErrorJSON{Message: err.Error()}
	var api *llm.APIError
	switch {
	case errors.As(err, &api):
		v.Message, v.Type, v.Status, v.Param, v.RequestID = api.Message, api.Type, api.Status, api.Param, api.RequestID
		if len(api.Raw) > 0 {
			v.Raw = parsedJSON(string(api.Raw))
		}
	case errors.Is(err, llm.ErrTruncated):
		v.Type = "truncated"
	case errors.Is(err, llm.ErrProtocol):
		v.Type = "protocol"
	}
	return v
}

type eventJSON struct {
	Type       string        `json:"type"`
	Index      *int          `json:"index,omitempty"`
	Name       string        `json:"name,omitempty"`
	Text       *string       `json:"text,omitempty"`
	TextBase64 string        `json:"text_base64,omitempty"`
	Block      *blockJSON    `json:"block,omitempty"`
	Model      string        `json:"model,omitempty"`
	ResponseID string        `json:"response_id,omitempty"`
	Finish     string        `json:"finish_reason,omitempty"`
	Usage      content.Usage `json:"usage,omitzero"`
}

// EventJSON returns a stream event for programs. If the text ends inside a character, text_base64
// has its bytes.
func EventJSON(e llm.Event) any {
	v := eventJSON{Type: e.Type.String()}
	switch e.Type {
	case llm.HeadDone:
		v.Model, v.ResponseID, v.Finish, v.Usage = e.Head.Model, e.Head.ID, e.Head.Finish, e.Head.Usage
	case llm.BlockDone:
		v.Index, v.Block = &e.Index, newBlock(e.Block)
	default:
		v.Index, v.Name, v.Text, v.TextBase64 = &e.Index, e.Name, &e.Text, base64OrEmptyIfValid(e.Text)
	}
	return v
}
