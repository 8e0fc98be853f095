package google

import (
	"bytes"
	"slices"
	"strings"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
)

// Types of the blocks of a model_output: the first says that a step begins, the
// others that it goes on.
const (
	typeModelOutput = "model_output"
	typeContent     = "content"
)

// readStep reads a step that came whole.
func (n *interactionsReader) readStep(v rawjson.Value) {
	v = rawjson.Compact(v)
	contents := v.Get("content")
	if v.Get("type").Text() != typeModelOutput || contents.At(0) == nil {
		n.Emit(n.stepBlock(v))
		return
	}
	about := rawjson.Without(v, "type", "content")
	for c := range contents.Elements() {
		n.Emit(n.contentBlock(c, about))
		about = nil
	}
}

// stepBlock returns the block that a step stands for, unless it is a model_output.
func (n *interactionsReader) stepBlock(v rawjson.Value) content.Block {
	i := rawjson.ObjectReader{Value: v}
	t := i.TakeText("type")
	w := n.BlockForm()
	switch {
	case t == "thought":
		b := content.Reasoning{Wire: w, Format: content.FormatGemini, Source: "thought"}
		n.takeSeal(&b.Wire, &i)
		parts, all := summaryTexts(i.Get("summary"))
		if b.Parts = parts; len(parts) == 1 {
			b.Text, b.Parts = parts[0], nil
		}
		if all && len(parts) > 0 {
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
			b.Name = strings.TrimSuffix(t, "_call") // a tool of the provider may have none
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
		w.SetType("step") // it is no content
	}
	i.Taken = slices.DeleteFunc(i.Taken, func(key string) bool { return key == "type" })
	return content.Native{Wire: w, JSON: string(rawjson.Without(v, i.Taken...))}
}

// takeSeal takes the seal of a step.
func (n *interactionsReader) takeSeal(w *content.Wire, i *rawjson.ObjectReader) {
	if seal := i.TakeText("signature"); seal != "" {
		w.SetSeal(n.NewSeal(content.Signature, seal))
	}
}

// summaryTexts returns the texts of a summary, and whether they are all of it.
func summaryTexts(list rawjson.Value) (parts []string, all bool) {
	all = true
	for p := range list.Elements() {
		text := p.Get("text").Text()
		if text != "" {
			parts = append(parts, text)
		}
		all = all && text != "" && p.Get("type").Text() == "text" && rawjson.NonEmptyObject(rawjson.Without(p, "type", "text")) == nil
	}
	return parts, all
}

// contentBlock returns the block that a content of a model_output stands for. about is what
// the step has beside them, with the first of them only.
func (n *interactionsReader) contentBlock(v, about rawjson.Value) content.Block {
	w := n.TypedForm(typeContent)
	if about != nil {
		w.SetType(typeModelOutput)
	}
	i := rawjson.ObjectReader{Value: v}
	extra := func() []byte {
		var o rawjson.Object
		if rest := i.Rest(); rest != nil {
			o.Merge(rest)
		}
		o.Set(typeModelOutput, rawjson.NonEmptyObject(about))
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
	o := rawjson.NewObject(typeModelOutput, rawjson.NonEmptyObject(about))
	w.SetRole(content.NoRole)
	w.SetExtra(rawjson.NonEmptyObject(bytes.Clone(o.Bytes())))
	return content.Native{Wire: w, JSON: string(v)}
}
