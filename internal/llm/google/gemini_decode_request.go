package google

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
	"github.com/tract-vcs/tract/llm"
)

// decodeGeminiRequest decodes a request body.
func decodeGeminiRequest(t wire.Target, v rawjson.Value) (*llm.Request, error) {
	v, snake := toCamelCase(v)
	req := &llm.Request{Settings: decodeKnownGeminiSettings(v), Tools: decodeGeminiTools(v.Get("tools"))}
	q := &geminiContentReader{geminiReader: geminiReader{BlockWriter: &wire.BlockWriter{Target: t}}}
	for part := range v.Get("systemInstruction", "parts").Elements() {
		q.Append(content.RoleSystem, q.userPartBlock(content.RoleSystem, part))
	}
	if _, err := t.DecodeMessages(req, v, q, "contents", "systemInstruction"); err != nil {
		return nil, err
	}
	// The instruction's members other than parts are merged into the encoded instruction.
	if rest := rawjson.Without(v.Get("systemInstruction"), "parts"); !rawjson.IsEmpty(rest) {
		req.Settings.Extra = rawjson.WithMember(req.Settings.Extra, systemInstruction, rest)
	}
	if len(snake) > 0 {
		req.Settings.Extra = rawjson.WithMember(req.Settings.Extra, extraSnakeCase, rawjson.ArrayOfStrings(snake...))
	}
	return req, nil
}

// Copy returns an independent copy of the reader.
func (q *geminiContentReader) Copy() wire.MessageReader {
	c := *q
	c.MessageList, c.order, c.pendingCalls = q.CopyList(), q.order.Copy(), slices.Clone(q.pendingCalls)
	return &c
}

// Next reads one content.
func (q *geminiContentReader) Next(v rawjson.Value) (err error) {
	parts := v.Get("parts")
	if parts.Kind() != rawjson.KindArray {
		return fmt.Errorf("want parts, have %q", rawjson.Excerpt(v))
	}
	q.n++
	var blocks []content.Block
	role := content.RoleUser
	if v.Get("role").Text() == "model" {
		role = content.RoleAssistant
		if blocks, err = q.modelContentBlocks(v); err != nil {
			return err
		}
	} else {
		for part := range parts.Elements() {
			blocks = append(blocks, q.userPartBlock(role, part))
		}
	}
	q.recordContentForm(cmp.Or(v.Get("role").Text(), wire.NoWireRole), blocks)
	q.Append(role, blocks...)
	return nil
}

// recordContentForm records in the blocks how their content was written: the role, whether the content
// follows another of the same role, and results out of order.
func (q *geminiContentReader) recordContentForm(wireRole string, blocks []content.Block) {
	q.order.Note(blocks)
	if len(blocks) > 0 {
		form := new(rawjson.Object).Merge(q.FormOf(blocks[0]))
		form.SetTrue("first", q.previousRole != "" && (wireRole == "model") == (q.previousRole == "model"))
		if wireRole != "user" && wireRole != "model" {
			form.SetString("role", wireRole)
		}
		blocks[0] = wire.WithForm(blocks[0], form)
	}
	q.previousRole = wireRole
}

// systemInstruction is the member of a request body with the instructions.
const systemInstruction = "systemInstruction"

// decodeKnownGeminiSettings decodes the settings of request body v that tract knows; the caller
// keeps the other members.
func decodeKnownGeminiSettings(body rawjson.Value) llm.Settings {
	config := body.Get("generationConfig")
	s := wire.DecodeCommon(config, "maxOutputTokens")
	think := config.Get("thinkingConfig")
	s.Reasoning = llm.Reasoning{
		Effort: strings.ToLower(think.Get("thinkingLevel").Text()), MaxTokens: wire.DecodeTokenLimit(think.Get("thinkingBudget")),
		Hidden: !think.Get("includeThoughts").Bool(),
	}
	calling := body.Get("toolConfig", "functionCallingConfig")
	switch mode := strings.ToLower(calling.Get("mode").Text()); mode {
	case "auto", "none":
		s.ToolChoice = mode
	case "any":
		s.ToolChoice = cmp.Or(calling.Get("allowedFunctionNames").At(0).Text(), "required")
	}
	return s
}

// decodeGeminiTools decodes functions, and keeps the provider's tools in their JSON form.
func decodeGeminiTools(list rawjson.Value) []llm.Tool {
	var tools []llm.Tool
	for v := range list.Elements() {
		functions := v.Get("functionDeclarations")
		for f := range functions.Elements() {
			t := llm.Tool{Name: f.Get("name").Text(), Description: f.Get("description").Text()}
			if schema := cmp.Or(string(f.Get("parametersJsonSchema")), string(f.Get("parameters"))); schema != "" {
				t.Schema = []byte(schema)
			}
			tools = append(tools, t)
		}
		if functions == nil {
			tools = append(tools, llm.Tool{Native: bytes.Clone(v)})
		}
	}
	return tools
}

// geminiContentReader reads the contents of a request.
type geminiContentReader struct {
	geminiReader
	wire.MessageList
	n            int // contents so far
	pendingCalls wire.PendingCalls
	order        wire.ResultOrder
	previousRole string // of the previous content, as it was written
}

// modelContentBlocks reads a content of the model the way a candidate of a response is read.
func (q *geminiContentReader) modelContentBlocks(c rawjson.Value) ([]content.Block, error) {
	id := fmt.Sprintf("contents-%d", q.n-1) // calls without an id get ids made from it
	blocks, err := q.DecodeAssistant(rawjson.NewObject("responseId", id, "candidates", rawjson.ArrayOf(rawjson.NewObject("content", c).Bytes())).Bytes())
	for _, b := range blocks {
		if call, ok := b.(content.ToolCall); ok && !call.Server {
			q.pendingCalls = append(q.pendingCalls, call)
		}
	}
	return blocks, err
}

// userPartBlock reads a part of a user content or of the instructions.
func (q *geminiContentReader) userPartBlock(role content.Role, v rawjson.Value) content.Block {
	if v.Get("functionResponse").Kind() == rawjson.KindObject {
		return q.resultBlock(v)
	}
	return wire.InRole(q.partBlock(v), role)
}

// resultBlock reads a functionResponse part, the result of a call.
func (q *geminiContentReader) resultBlock(v rawjson.Value) content.Block {
	part := rawjson.ObjectReader{Value: v}
	i := rawjson.ObjectReader{Value: part.Take("functionResponse")}
	b := content.ToolResult{Wire: q.BlockForm(), CallID: i.TakeText("id"), Name: i.TakeText("name")}
	q.pendingCalls.Match(&b)
	response := i.Take("response")
	members := 0
	for range response.Members() {
		members++
	}
	text := cmp.Or(response.Get("output").Text(), response.Get("error").Text())
	if b.Parts = bytes.Clone(response); members == 1 && text != "" {
		b.Text, b.Parts, b.IsError = text, nil, response.Get("error") != nil
	}
	if rest := i.Rest(); rest != nil {
		b.SetExtra(rawjson.WithMember(nil, "functionResponse", rest))
	}
	for key, m := range rawjson.Value(part.Rest()).Members() {
		b.SetExtra(rawjson.WithMember(b.Form().Extra, key, m))
	}
	return b
}
