package google

import (
	"bytes"
	"cmp"
	"strings"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
)

// How parts become blocks.
//
// A part is an object with one member that names its kind, such as text or functionCall, and
// members beside it, such as thought or thoughtSignature. partReader takes the members that
// have fields in a block; extra returns all others, which the block keeps.
//
// In a stream, consecutive texts of one kind are appended to one open block. A part with a
// seal or other extra members is a block of its own. A call may also be streamed: its
// arguments come as partialArgs, and stay open until a piece without willContinue.

// partReader reads a part, and the member of the part that names its kind.
type partReader struct {
	rawjson.ObjectReader
	kind  string // the name of that member, such as functionCall
	inner rawjson.ObjectReader
}

// partKinds are the known kinds of parts, in the order of the lookup.
var partKinds = []string{
	"text", "functionCall", "inlineData", "fileData", "executableCode", "codeExecutionResult", "toolCall", "toolResponse",
}

// findPartKind returns the kind of a part, which is the name of one of its members, and the value of
// that member. value is nil if the kind is unknown.
func findPartKind(part rawjson.Value) (kind string, value rawjson.Value) {
	for _, kind := range partKinds {
		if v := part.Get(kind); v.Kind() == rawjson.KindObject || kind == "text" && v.Kind() == rawjson.KindString {
			return kind, v
		}
	}
	for key := range part.Members() {
		if key != "thought" && key != "thoughtSignature" {
			return key, nil
		}
	}
	return "", nil
}

// extra returns the members of the part, and of its inner object, that were not taken.
func (p *partReader) extra() []byte {
	inner := p.inner.Rest()
	rest := p.Rest(p.kind)
	if inner == nil {
		return rest
	}
	return rawjson.NewObject(p.kind, inner).Merge(rest).Bytes()
}

// typeNoArguments is the type of a call that came without arguments, and is sent back without
// them.
const typeNoArguments = "bare"

// partBlock returns the block for a part. It drops the white space with which Google indents
// JSON.
func (g *geminiReader) partBlock(v rawjson.Value) content.Block {
	v = rawjson.Compact(v)
	kind, inner := findPartKind(v)
	p := &partReader{ObjectReader: rawjson.ObjectReader{Value: v}, kind: kind, inner: rawjson.ObjectReader{Value: inner}}
	w := g.BlockForm()
	if seal := p.TakeText("thoughtSignature"); seal != "" {
		w.SetSeal(g.NewSeal(content.Signature, seal))
	}
	switch p.kind {
	case "text":
		return g.textOrReasoningBlock(p, w)
	case "functionCall":
		b := content.ToolCall{Wire: w, Name: p.inner.TakeText("name"), Arguments: "{}"}
		if p.inner.Get("args").Kind() == rawjson.KindObject {
			b.Arguments = string(p.inner.Take("args"))
		} else {
			b.SetType(typeNoArguments)
		}
		b.CallID = p.inner.TakeText("id")
		if b.SetID(b.CallID); b.CallID == "" {
			b.CallID = g.MakeCallID(b.Name, b.Form().Seal.Data)
		}
		b.SetExtra(p.extra())
		return b
	case "inlineData", "fileData":
		if b, ok := mediaBlock(p, w); ok {
			return b
		}
	case "executableCode", "toolCall":
		return g.serverCallBlock(p, w)
	case "codeExecutionResult", "toolResponse":
		return g.serverResultBlock(p, w)
	}
	w.SetType(p.kind)
	return content.Native{Wire: w, JSON: string(rawjson.Without(v, p.Taken...))}
}

// textOrReasoningBlock reads a text part: reasoning if the part is marked as a thought.
func (g *geminiReader) textOrReasoningBlock(p *partReader, w content.Wire) content.Block {
	if p.Get("thought").Bool() {
		b := content.Reasoning{Wire: w, Format: content.FormatGemini, Source: "thought", Text: p.TakeString("text")}
		p.Take("thought")
		b.SetExtra(p.Rest())
		return b
	}
	b := content.Text{Wire: w, Of: content.KindAssistant, Text: p.TakeString("text")}
	b.SetExtra(p.Rest())
	return b
}

// mediaBlock reads a part with the bytes or the URL of a file. It reports false if there is
// neither, or if encoding the bytes again would give other base64: then the part stays native.
func mediaBlock(p *partReader, w content.Wire) (_ content.Media, ok bool) {
	b := content.Media{Wire: w, Of: content.KindFile}
	b.SetRole(content.RoleAssistant)
	b.SetType(p.kind)
	b.MediaType = p.inner.TakeText("mimeType")
	if strings.HasPrefix(b.MediaType, "image/") {
		b.Of = content.KindImage
	}
	if p.kind == "fileData" {
		b.URL = p.inner.TakeText("fileUri")
	} else {
		data, ok := wire.DecodeExactBase64(p.inner.TakeText("data"))
		if !ok {
			return b, false
		}
		b.Data = data
	}
	b.SetExtra(p.extra())
	return b, b.URL != "" || b.Data != ""
}

// serverCallBlock reads a call that the provider runs: code, or a call of its own tool.
func (g *geminiReader) serverCallBlock(p *partReader, w content.Wire) content.Block {
	w.SetType(p.kind)
	b := content.ToolCall{Wire: w, Server: true}
	b.CallID = p.inner.TakeText("id")
	b.SetID(b.CallID)
	if p.kind == "toolCall" {
		b.Name = p.inner.TakeText("toolType")
		if args := p.inner.Get("args"); args.Kind() == rawjson.KindObject {
			b.Arguments = string(p.inner.Take("args"))
		}
	} else {
		b.Name = "code_execution"
		b.Arguments = string(rawjson.Without(p.inner.Value, p.inner.Taken...))
		p.inner.Value = nil
	}
	if b.CallID == "" {
		b.CallID = g.MakeCallID(b.Name, b.Arguments, b.Form().Seal.Data)
	}
	g.lastServerCall = b.CallID
	b.SetExtra(p.extra())
	return b
}

// serverResultBlock reads the result of a call that the provider ran. Without an id it belongs
// to the last such call.
func (g *geminiReader) serverResultBlock(p *partReader, w content.Wire) content.Block {
	w.SetType(p.kind)
	w.SetRole(content.RoleAssistant)
	b := content.ToolResult{Wire: w, Server: true}
	b.SetID(p.inner.TakeText("id"))
	b.CallID = cmp.Or(b.Form().ID, g.lastServerCall)
	if p.kind == "toolResponse" {
		b.Name = p.inner.TakeText("toolType")
		if v := p.inner.Take("response"); v != nil {
			b.Parts = bytes.Clone(v)
		}
	} else {
		outcome := p.inner.Get("outcome").Text()
		b.IsError = outcome != "" && outcome != "OUTCOME_OK"
		b.Text = p.inner.TakeText("output")
	}
	b.SetExtra(p.extra())
	return b
}

// readStreamedPart reads a part of a chunk. Consecutive texts of one kind, without a seal or
// other members, become one block.
func (g *geminiReader) readStreamedPart(v rawjson.Value) error {
	if call := v.Get("functionCall"); call.Kind() == rawjson.KindObject {
		switch read, err := g.readStreamedCall(v, call); {
		case read || err != nil:
			return err
		case rawjson.NonEmptyObject(call) == nil:
			return nil // marks the end of a call that has already ended
		}
	}
	block := g.partBlock(v)
	form := block.Form()
	if form.Seal.Data != "" || form.Extra != nil || block.Kind() != content.KindAssistant && block.Kind() != content.KindReasoning {
		g.endOpenBlock()
		g.Emit(block)
		return nil
	}
	text := block.String()
	if text == "" {
		return nil
	}
	if g.openBlock == nil || g.openBlock.Block.Kind() != block.Kind() {
		g.endOpenBlock()
		g.openBlock = g.Begin(withoutText(block))
	}
	g.AppendText(g.openBlock, text)
	return nil
}

// withoutText returns a text or a reasoning block without its text.
func withoutText(b content.Block) content.Block {
	switch b := b.(type) {
	case content.Text:
		b.Text = ""
		return b
	case content.Reasoning:
		b.Text = ""
		return b
	}
	return b
}

// endOpenBlock ends the open block, if there is one.
func (g *geminiReader) endOpenBlock() {
	if g.openBlock == nil {
		return
	}
	if g.openArgs != nil {
		call, _ := g.openBlock.Block.(content.ToolCall)
		call.Arguments = string(g.openArgs.json())
		g.openBlock.Block, g.openArgs = call, nil
	}
	g.End(g.openBlock)
	g.openBlock = nil
}

// readStreamedCall reads a piece of a streamed call from part v, whose functionCall is call.
// The first piece has the name, later ones have values for paths in the arguments, and a
// piece without willContinue ends the call. read is false for a call that is not streamed.
func (g *geminiReader) readStreamedCall(v, call rawjson.Value) (read bool, err error) {
	hasName := call.Get("name").Text() != ""
	willContinue := call.Get("willContinue").Bool()
	if g.openArgs == nil || hasName {
		if !willContinue && call.Get("partialArgs") == nil {
			return false, nil
		}
		g.endOpenBlock()
		b, _ := g.partBlock(v).(content.ToolCall)
		g.openArgs = &partialArgs{}
		g.openArgs.addCompleteArguments(rawjson.Value(b.Arguments))
		b.Arguments = ""
		b.SetType("")
		b.SetExtra(withoutStreamFields(b.Form().Extra))
		g.openBlock = g.BeginStreamed(b)
	} else if seal := v.Get("thoughtSignature").Text(); seal != "" {
		b, _ := g.openBlock.Block.(content.ToolCall)
		b.SetSeal(g.NewSeal(content.Signature, seal))
		g.openBlock.Block = b
	}
	for p := range call.Get("partialArgs").Elements() {
		if err := g.openArgs.addElement(p); err != nil {
			return true, err
		}
	}
	if !willContinue {
		g.endOpenBlock()
	}
	return true, nil
}

// withoutStreamFields returns the extra of a streamed call without the members that describe
// the streaming.
func withoutStreamFields(extra []byte) []byte {
	call := rawjson.Without(rawjson.Value(extra).Get("functionCall"), "willContinue", "partialArgs")
	o := rawjson.NewObject("functionCall", rawjson.NonEmptyObject(call)).Merge(rawjson.Without(extra, "functionCall"))
	return rawjson.NonEmptyObject(o.Bytes())
}
