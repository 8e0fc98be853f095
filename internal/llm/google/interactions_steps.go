package google

import (
	"bytes"
	"slices"
	"strings"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
)

// Types of the blocks of a model_output step: the first block of the step has typeModelOutput,
// the others have typeContent.
const (
	typeModelOutput = "model_output"
	typeContent     = "content"
)

// readStep reads a complete step.
func (n *interactionsReader) readStep(v rawjson.Value) {
	v = rawjson.Compact(v)
	contents := v.Get("content")
	if v.Get("type").Text() != typeModelOutput || contents.At(0) == nil {
		n.Emit(n.stepBlock(v))
		return
	}
	stepMembers := rawjson.Without(v, "type", "content")
	for c := range contents.Elements() {
		n.Emit(n.contentBlock(c, stepMembers))
		stepMembers = nil
	}
}

// stepBlock returns the block for a step that is not a model_output with contents.
func (n *interactionsReader) stepBlock(v rawjson.Value) content.Block {
	i := rawjson.ObjectReader{Value: v}
	t := i.TakeText("type")
	w := n.BlockForm()
	switch {
	case t == "thought":
		b := content.Reasoning{Wire: w, Format: content.FormatGemini, Source: "thought"}
		n.takeSeal(&b.Wire, &i)
		parts, onlyTexts := summaryTexts(i.Get("summary"))
		if b.Parts = parts; len(parts) == 1 {
			b.Text, b.Parts = parts[0], nil
		}
		if onlyTexts && len(parts) > 0 {
			i.Take("summary")
		}
		b.SetExtra(i.Rest())
		return b
	case strings.HasSuffix(t, "_call"):
		b := content.ToolCall{Wire: w, Server: t != "function_call"}
		n.takeSeal(&b.Wire, &i)
		b.CallID = i.TakeText("id")
		b.SetType(t)
		if b.SetID(b.CallID); b.CallID == "" {
			b.CallID = n.MakeCallID(t)
		}
		if b.Name = i.Get("name").Text(); !b.Server && b.Name != "" {
			i.Take("name")
		} else if b.Name == "" {
			b.Name = strings.TrimSuffix(t, "_call") // a call of the provider's tool may have no name
		}
		if args := i.Get("arguments"); args.Kind() == rawjson.KindObject {
			b.Arguments = string(i.Take("arguments"))
		} else if !b.Server {
			b.Arguments = "{}"
			b.SetType(typeNoArguments)
		}
		b.SetExtra(i.Rest())
		return b
	case strings.HasSuffix(t, "_result") && t != "function_result":
		b := content.ToolResult{Wire: w, Server: true, CallID: i.TakeText("call_id")}
		n.takeSeal(&b.Wire, &i)
		b.SetType(t)
		b.SetRole(content.RoleAssistant)
		if b.Text = i.TakeText("result"); b.Text == "" && i.Get("result").Kind() != rawjson.KindString {
			b.Parts = bytes.Clone(i.Take("result"))
		}
		b.IsError = i.TakeIsError()
		b.SetExtra(i.Rest())
		return b
	}
	n.takeSeal(&w, &i)
	if w.SetType(t); t == "" || t == typeModelOutput || t == typeContent {
		w.SetType("step") // so that it is not taken for a content
	}
	i.Taken = slices.DeleteFunc(i.Taken, func(key string) bool { return key == "type" })
	return content.Native{Wire: w, JSON: string(rawjson.Without(v, i.Taken...))}
}

// takeSeal takes the signature of step i and sets it as the seal of w.
func (n *interactionsReader) takeSeal(w *content.Wire, i *rawjson.ObjectReader) {
	if seal := i.TakeText("signature"); seal != "" {
		w.SetSeal(n.NewSeal(content.Signature, seal))
	}
}

// summaryTexts returns the texts of a summary, and whether the summary has nothing else.
func summaryTexts(list rawjson.Value) (parts []string, onlyTexts bool) {
	onlyTexts = true
	for p := range list.Elements() {
		text := p.Get("text").Text()
		if text != "" {
			parts = append(parts, text)
		}
		onlyTexts = onlyTexts && text != "" && p.Get("type").Text() == "text" && rawjson.NonEmptyObject(rawjson.Without(p, "type", "text")) == nil
	}
	return parts, onlyTexts
}

// contentBlock returns the block for a content of a model_output. stepMembers has the other
// members of the step for its first content, and is nil for the others.
func (n *interactionsReader) contentBlock(v, stepMembers rawjson.Value) content.Block {
	w := n.TypedForm(typeContent)
	if stepMembers != nil {
		w.SetType(typeModelOutput)
	}
	i := rawjson.ObjectReader{Value: v}
	extra := func() []byte {
		var o rawjson.Object
		if rest := i.Rest(); rest != nil {
			o.Merge(rest)
		}
		o.Set(typeModelOutput, rawjson.NonEmptyObject(stepMembers))
		return rawjson.NonEmptyObject(bytes.Clone(o.Bytes()))
	}
	switch t := v.Get("type").Text(); t {
	case "text":
		if text := i.TakeText("text"); text != "" {
			i.Take("type")
			b := content.Text{Wire: w, Of: content.KindAssistant, Text: text}
			b.SetExtra(extra())
			return b
		}
	case "image", "audio", "video", "document":
		w.SetRole(content.RoleAssistant)
		b := content.Media{Wire: w, Of: content.KindFile}
		if t == "image" {
			b.Of = content.KindImage
			i.Take("type")
		}
		b.MediaType, b.URL = i.TakeText("mime_type"), i.TakeText("uri")
		if data, ok := wire.DecodeExactBase64(i.Get("data").Text()); ok {
			i.Take("data")
			b.Data = data
		}
		if b.URL+b.Data != "" {
			b.SetExtra(extra())
			return b
		}
	}
	o := rawjson.NewObject(typeModelOutput, rawjson.NonEmptyObject(stepMembers))
	w.SetRole(content.NoRole)
	w.SetExtra(rawjson.NonEmptyObject(bytes.Clone(o.Bytes())))
	return content.Native{Wire: w, JSON: string(v)}
}
