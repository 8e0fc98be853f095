package google

import (
	"bytes"
	"strings"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
)

// How the events of a stream become blocks.
//
// A step arrives as step.start, step.delta events and step.stop. The reader keeps an openStep
// for each index. For a model_output, each content is a block; a text content stays open,
// and grows by deltas, until the next content or the end of the step. Any other step is one
// block: it begins with the members of step.start, text and arguments are emitted as
// they come, and other members are collected. When the block ends, its BeforeEnd function
// builds the final block from step.start and the collected members.

// openStep is a step that is being streamed.
type openStep struct {
	*wire.BlockBuilder                 // the block that gets deltas; nil: a model_output without contents yet
	startJSON          rawjson.Value   // the step in step.start
	members            rawjson.Object  // members of the deltas, for steps that are not text
	arguments          []string        // pieces of the arguments of a call
	outputExtra        rawjson.Value   // other members of a model_output, until its first content
	annotations        []rawjson.Value // annotations of the open text
	summary            rawjson.Array   // summary parts of a reasoning block
	notOnlyTexts       bool            // the summary has more than texts
}

// readStepStart reads step.start of the step with index i. Most steps are empty there, but a
// step may also be complete.
func (n *interactionsReader) readStepStart(i int64, v rawjson.Value) {
	n.endStep(i)
	v = rawjson.Compact(bytes.Clone(v))
	s := &openStep{startJSON: v}
	n.steps[i] = s
	if v.Get("type").Text() == typeModelOutput {
		s.outputExtra = rawjson.Without(v, "type", "content")
		for c := range n.Elements(v.Get("content")) {
			n.addContent(s, c)
		}
		return
	}
	block := n.stepBlock(v)
	switch b := block.(type) {
	case content.ToolCall:
		b.Arguments = ""
		block = b
	case content.Reasoning:
		b.SetExtra(withoutEmptySignature(b.Form().Extra))
		block = b
	}
	s.BlockBuilder = n.BeginStreamed(block)
	s.BeforeEnd = func() { s.setFinalBlock(n) }
}

// withoutEmptySignature returns extra without the member signature if that is empty: a stream
// writes an empty signature for none.
func withoutEmptySignature(extra []byte) []byte {
	if extra == nil || len(rawjson.Value(extra).Get("signature").Text()) > 0 {
		return extra
	}
	return (&rawjson.ObjectReader{Value: extra, Taken: []string{"signature"}}).Rest()
}

// addContent begins the block for a content of a model_output. A text stays open until the
// next content.
func (n *interactionsReader) addContent(s *openStep, v rawjson.Value) {
	if s.BlockBuilder != nil {
		n.End(s.BlockBuilder)
	}
	b := n.contentBlock(v, s.outputExtra)
	s.outputExtra = nil
	text, open := b.(content.Text)
	if open {
		b = withoutText(b)
	}
	s.BlockBuilder = n.Begin(b)
	if open {
		s.BeforeEnd = s.addAnnotations
		n.AppendText(s.BlockBuilder, text.Text)
	} else {
		n.End(s.BlockBuilder)
	}
}

// addAnnotations adds the collected annotations to the extra of the text block.
func (s *openStep) addAnnotations() {
	if b, ok := s.Block.(content.Text); ok && s.annotations != nil {
		var list rawjson.Array
		for a := range rawjson.Value(b.Form().Extra).Get("annotations").Elements() {
			list.Add(a)
		}
		for _, a := range s.annotations {
			list.Add(a)
		}
		o := new(rawjson.Object).Merge(rawjson.Without(b.Form().Extra, "annotations", typeModelOutput))
		o.Set("annotations", list.Bytes())
		o.Merge(b.Form().Extra)
		b.SetExtra(o.Bytes())
		s.Block, s.annotations = b, nil
	}
}

// readStepDelta reads delta d of the step with index i. A delta of an unknown step is skipped.
func (n *interactionsReader) readStepDelta(i int64, d rawjson.Value) {
	d = rawjson.Compact(d)
	s := n.steps[i]
	if s == nil {
		return
	}
	if s.startJSON.Get("type").Text() == typeModelOutput {
		n.addModelOutputDelta(s, d)
		return
	}
	switch b := s.Block.(type) {
	case content.Reasoning:
		n.addReasoningDelta(s, b, d)
	case content.ToolCall:
		if text := d.Get("arguments"); text.Kind() == rawjson.KindString {
			s.arguments = append(s.arguments, text.Text())
			n.AppendText(s.BlockBuilder, text.Text())
			d = rawjson.Without(d, "arguments")
		}
		s.setMembersFromDelta(d)
	default:
		s.setMembersFromDelta(d)
	}
}

// setMembersFromDelta sets the members of the step to those of a delta. They replace those of earlier
// deltas and of step.start.
func (s *openStep) setMembersFromDelta(d rawjson.Value) {
	for key, value := range d.Members() {
		if key != "type" && value.Kind() != rawjson.KindNull {
			s.members.Set(key, value)
		}
	}
}

// addModelOutputDelta adds a delta to a model_output: text, annotations or a content.
func (n *interactionsReader) addModelOutputDelta(s *openStep, d rawjson.Value) {
	t := d.Get("type").Text()
	open := s.BlockBuilder != nil && !s.Done
	switch {
	case strings.HasPrefix(t, "text_annotation"), t == "text" && open:
		for a := range d.Get("annotations").Elements() {
			s.annotations = append(s.annotations, bytes.Clone(a))
		}
		if open {
			n.AppendText(s.BlockBuilder, d.Get("text").Text())
		}
	case t == "", t == "text" && d.Get("text").Text() == "":
	default:
		n.addContent(s, d)
	}
}

// addReasoningDelta adds a delta to reasoning block b: a part of its summary, or its seal.
func (n *interactionsReader) addReasoningDelta(s *openStep, b content.Reasoning, d rawjson.Value) {
	if c := d.Get("content"); c.Kind() == rawjson.KindObject {
		if _, onlyTexts := summaryTexts(rawjson.Value("[" + string(c) + "]")); !onlyTexts {
			s.notOnlyTexts = true
		}
		s.summary.Add(c)
		n.AppendText(s.BlockBuilder, c.Get("text").Text())
	}
	if seal := d.Get("signature").Text(); seal != "" && seal != b.Form().Seal.Data {
		if b.Form().Seal.Data == "" {
			b.SetSeal(n.NewSeal(content.Signature, ""))
			s.Block = b
		}
		s.Signature = append(s.Signature, seal)
	}
	if more := rawjson.Without(d, "type", "content", "signature", "text"); rawjson.NonEmptyObject(more) != nil {
		b.SetExtra(new(rawjson.Object).Merge(more).Merge(b.Form().Extra).Bytes())
		s.Block = b
	}
}

// endStep ends the step with index i, if it is open.
func (n *interactionsReader) endStep(i int64) {
	if s := n.steps[i]; s != nil {
		delete(n.steps, i)
		if s.BlockBuilder != nil {
			n.End(s.BlockBuilder)
		}
	}
}

// setFinalBlock builds the final block from step.start and the deltas. n is the reader of the
// stream.
func (s *openStep) setFinalBlock(n *interactionsReader) {
	if b, ok := s.Block.(content.Reasoning); ok {
		if s.notOnlyTexts {
			o := new(rawjson.Object).Merge(b.Form().Extra)
			o.Set("summary", s.summary.Bytes())
			b.SetExtra(o.Bytes())
			s.Block = b
		}
		return
	}
	o := new(rawjson.Object).Merge(s.members.Bytes()).Merge(withoutEmptySignature(s.startJSON))
	text := strings.Join(s.arguments, "")
	arguments, err := rawjson.Parse([]byte(text))
	if err == nil {
		o.Set("arguments", arguments)
	}
	block := n.stepBlock(o.Bytes())
	if call, ok := block.(content.ToolCall); ok {
		s.Text = nil
		if strings.TrimSpace(text) != "" && err != nil {
			call.Arguments = text
			call.SetIncomplete(rawjson.IsTruncated(text))
		}
		block = call
	}
	s.Block = block
}
