package openai

import (
	"bytes"
	"cmp"
	"strings"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
)

// Members that the extra of a message's blocks has, and types of such blocks.
const (
	extraItemMessage = "message"  // members of the message; only the first block has them
	extraItemPart    = "part"     // members of the part
	typeItemPart     = "content:" // prefix: a part of an unknown type
	typeItemString   = "string"   // a message whose content is a string
)

// toolItemTraits describes a type of item that calls a tool.
type toolItemTraits struct {
	arguments        string // the member with the arguments; empty: the item has none
	argumentsAreJSON bool   // the member is JSON, not a string
	name             string // the tool's name when the item has none
	runByClient      bool   // the client runs the tool
	resultType       string // the type of the item with the result
}

var toolItemTypes = map[string]toolItemTraits{
	"function_call":         {arguments: "arguments", runByClient: true, resultType: "function_call_output"},
	"custom_tool_call":      {arguments: "input", runByClient: true, resultType: "custom_tool_call_output"},
	"local_shell_call":      {arguments: "action", argumentsAreJSON: true, name: "local_shell", runByClient: true, resultType: "local_shell_call_output"},
	"shell_call":            {arguments: "action", argumentsAreJSON: true, name: "shell", runByClient: true, resultType: "shell_call_output"},
	"apply_patch_call":      {arguments: "operation", argumentsAreJSON: true, name: "apply_patch", runByClient: true, resultType: "apply_patch_call_output"},
	"computer_call":         {arguments: "action", argumentsAreJSON: true, name: "computer", runByClient: true, resultType: "computer_call_output"},
	"tool_search_call":      {arguments: "arguments", argumentsAreJSON: true, resultType: "tool_search_output"},
	"web_search_call":       {arguments: "action", argumentsAreJSON: true},
	"file_search_call":      {arguments: "queries", argumentsAreJSON: true},
	"code_interpreter_call": {arguments: "code"},
	"image_generation_call": {},
	"mcp_list_tools":        {},
}

// toolItemTraitsOf returns the traits of an item type. An unknown type has its arguments in the
// member arguments, and the provider runs its tool.
func toolItemTraitsOf(itemType string) toolItemTraits {
	t, known := toolItemTypes[itemType]
	if !known {
		t.arguments = "arguments"
	}
	t.name = cmp.Or(t.name, itemType)
	return t
}

// isClientCall reports whether an item is a call that needs a result from the client.
func isClientCall(v rawjson.Value) bool {
	switch kind := v.Get("type").Text(); kind {
	case "tool_search_call":
		return v.Get("execution").Text() == "client"
	case "shell_call": // the provider may run the shell
		return !strings.HasPrefix(v.Get("environment", "type").Text(), "container")
	default:
		return toolItemTypes[kind].runByClient
	}
}

// isClientResult reports whether an item is a result from the client. Some types are also those of
// results of the provider's own tools: such an item is from the client if answersClientCall is true.
func isClientResult(v rawjson.Value, answersClientCall bool) bool {
	switch kind := v.Get("type").Text(); kind {
	case "shell_call_output", "tool_search_output":
		return answersClientCall
	default:
		return strings.HasSuffix(kind, "_call_output")
	}
}

// otherArgumentMembers are members that may hold the arguments when the usual member does
// not.
var otherArgumentMembers = []string{"arguments", "input", "action", "actions"}

// formWithID returns the form of the block for an item of a type that has an id.
func (r *responsesReader) formWithID(itemType, id string) content.Wire {
	return content.Form{Dialect: r.Dialect.Name, Type: itemType, ID: id}.Wire()
}

// itemBlocks returns the blocks of an item, at least one.
func (r *responsesReader) itemBlocks(v rawjson.Value) []content.Block {
	i := &rawjson.ObjectReader{Value: v}
	switch t := i.TakeText("type"); {
	case t == "message":
		return r.messageBlocks(i)
	case t == "reasoning":
		return []content.Block{r.reasoningBlock(i)}
	case strings.HasSuffix(t, "_call") || t == "mcp_list_tools":
		return []content.Block{r.callBlock(i, t)}
	case strings.HasSuffix(t, "_output"):
		return []content.Block{r.serverResultBlock(i, t)}
	default:
		return []content.Block{r.nativeBlock(i, t)}
	}
}

// nativeBlock returns a native block that keeps an item. The block has the item's
// seal, so that it is not sent to another model.
func (r *responsesReader) nativeBlock(i *rawjson.ObjectReader, itemType string) content.Native {
	n := content.Native{Wire: r.BlockForm(), JSON: string(i.Value)}
	n.SetType(itemType)
	if data := i.Get("encrypted_content"); data.Kind() == rawjson.KindString && !rawjson.IsEmpty(data) {
		n.SetSeal(r.NewSeal(content.Encrypted, data.Text()))
	}
	return n
}

// extraOfMessageItem returns the extra of the first block of a message item, which keeps the members of
// the message. It is never empty: it marks the beginning of a message.
func extraOfMessageItem(message rawjson.Value) []byte {
	rest := (&rawjson.ObjectReader{Value: message, Taken: []string{"type", "content"}}).Rest()
	if message.Get("id").Kind() == rawjson.KindString {
		rest = rawjson.NonEmptyObject(rawjson.Without(rest, "id"))
	}
	if rest == nil {
		rest = []byte("{}")
	}
	return rawjson.WithMember(nil, extraItemMessage, rest)
}

// messageBlocks returns the blocks of a message, one for each part.
func (r *responsesReader) messageBlocks(i *rawjson.ObjectReader) []content.Block {
	form := r.BlockForm().Form()
	form.ID = i.TakeText("id")
	list := i.Get("content")
	if list.Kind() == rawjson.KindString && !rawjson.IsEmpty(list) {
		form.Type, form.Extra = typeItemString, extraOfMessageItem(i.Value)
		return []content.Block{content.Text{Wire: form.Wire(), Of: content.KindAssistant, Text: list.Text()}}
	}
	var blocks []content.Block
	for part := range list.Elements() {
		w := form
		if blocks == nil {
			w.Extra = extraOfMessageItem(i.Value)
		}
		blocks = append(blocks, textOrNativeBlock(w.Wire(), part))
	}
	if blocks == nil {
		return []content.Block{r.nativeBlock(i, "message")}
	}
	return blocks
}

// textOrNativeBlock returns the block of one part of a message. A part without text becomes a native
// block.
func textOrNativeBlock(w content.Wire, v rawjson.Value) content.Block {
	i := &rawjson.ObjectReader{Value: v}
	b := content.Text{Wire: w, Of: content.KindAssistant}
	t := i.TakeText("type")
	switch t {
	case "output_text":
		b.Text = i.TakeText("text")
	case "refusal":
		b.Text = i.TakeText(t)
		b.SetType(t)
	}
	if b.Text == "" {
		w.SetType(typeItemPart + t)
		return content.Native{Wire: w, JSON: string(v)}
	}
	if rest := i.Rest(); rest != nil {
		b.SetExtra(rawjson.WithMember(b.Form().Extra, extraItemPart, rest))
	}
	return b
}

// reasoningTexts are the members of a reasoning item that may hold text, and the type of
// their parts. The reasoning itself is preferred to its summary.
var reasoningTexts = []struct{ member, kind string }{{"content", "reasoning_text"}, {"summary", "summary_text"}}

// reasoningBlock reads a reasoning item. If the text cannot be encoded again from the block
// alone, the extra keeps its member too.
func (r *responsesReader) reasoningBlock(i *rawjson.ObjectReader) content.Reasoning {
	b := content.Reasoning{Wire: r.BlockForm(), Format: content.FormatResponses, Source: "summary"}
	b.SetID(i.TakeText("id"))
	if seal := i.TakeText("encrypted_content"); seal != "" {
		b.Source = "encrypted_content"
		b.SetSeal(r.NewSeal(content.Encrypted, seal))
	}
	for _, from := range reasoningTexts {
		list := i.Get(from.member)
		var parts []string
		for part := range list.Elements() {
			parts = append(parts, part.Get("text").Text())
		}
		if strings.Join(parts, "") == "" {
			continue
		}
		if b.Source = from.member; len(parts) == 1 {
			b.Text = parts[0]
		} else {
			b.Parts = parts
		}
		if rawjson.Equal(list, wire.EncodeReasoningTexts(from.kind, b)) {
			i.Take(from.member)
		}
		break
	}
	if s := i.Get("summary"); s.Kind() == rawjson.KindArray && rawjson.IsEmpty(s) {
		i.Take("summary") // the encoder always writes it
	}
	b.SetExtra(i.Rest())
	return b
}

// callBlock reads an item that calls a tool, run by the client or the provider.
func (r *responsesReader) callBlock(i *rawjson.ObjectReader, itemType string) content.ToolCall {
	tool := toolItemTraitsOf(itemType)
	b := content.ToolCall{Wire: r.formWithID(itemType, i.TakeText("id")), Server: !isClientCall(i.Value)}
	id := b.Form().ID
	if b.CallID = id; i.Get("call_id").Text() != id {
		b.CallID = cmp.Or(i.TakeText("call_id"), id)
	}
	if b.Name = tool.name; i.Get("name").Text() != tool.name {
		b.Name = cmp.Or(i.TakeText("name"), tool.name)
	}
	v := i.Get(tool.arguments)
	switch {
	case tool.arguments == "":
	case !tool.argumentsAreJSON && v.Kind() == rawjson.KindString:
		b.Arguments = i.TakeText(tool.arguments)
	case tool.argumentsAreJSON && (v.Kind() == rawjson.KindObject || v.Kind() == rawjson.KindArray):
		b.Arguments = string(i.Take(tool.arguments))
	default:
		for _, key := range otherArgumentMembers {
			if b.Arguments == "" {
				b.Arguments = rawjson.TextOrJSON(i.Get(key))
			}
		}
	}
	if b.SetExtra(i.Rest()); b.Server {
		if r.lastServerCall == nil {
			r.lastServerCall = map[string]string{}
		}
		r.lastServerCall[strings.TrimSuffix(itemType, "_call")] = b.CallID
	}
	return b
}

// serverResultBlock reads the result of a tool that the provider ran. A result without a call id
// belongs to the last call of its type.
func (r *responsesReader) serverResultBlock(i *rawjson.ObjectReader, itemType string) content.ToolResult {
	b := content.ToolResult{Wire: r.formWithID(itemType, i.TakeText("id")), Server: true}
	b.SetRole(content.RoleAssistant)
	if b.CallID = i.TakeText("call_id"); b.CallID == "" {
		b.CallID = b.Form().ID
		if i.Get("call_id") != nil {
			b.CallID = cmp.Or(r.lastServerCall[strings.TrimSuffix(strings.TrimSuffix(itemType, "_output"), "_call")], b.Form().ID)
		}
	}
	switch v := i.Get(outputMember(itemType)); v.Kind() {
	case rawjson.KindString:
		b.Text = i.TakeText(outputMember(itemType))
	case rawjson.KindAbsent, rawjson.KindNull:
	default:
		b.Parts = bytes.Clone(i.Take(outputMember(itemType)))
	}
	b.SetExtra(i.Rest())
	return b
}

// outputMember returns the name of the member with the output in a result of resultType.
func outputMember(resultType string) string {
	if resultType == "tool_search_output" {
		return "tools"
	}
	return "output"
}
