package google

import (
	"bytes"
	"strings"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
)

// interactionsStep is a step that is being streamed.
type interactionsStep struct {
	*wire.BlockBuilder                 // that deltas go to; nil: a model_output without contents yet
	step               rawjson.Value   // as the start gave it
	members            rawjson.Object  // that came since, for steps that are no words
	arguments          []string        // pieces of the arguments of a call
	about              rawjson.Value   // what a model_output has beside contents, until its first content
	notes              []rawjson.Value // annotations of the text that is open
	summary            rawjson.Array   // of a thought
	mixed              bool            // it is more than texts
}

// stepStart reads the start of a step. Most are empty, but any may be complete
// already.
func (n *interactions) stepStart(i int64, v rawjson.Value) error {
	if err := n.stepStop(i); err != nil {
		return err
	}
	v = rawjson.Compact(bytes.Clone(v))
	s := &interactionsStep{step: v}
	n.steps[i] = s
	if v.Get("type").Text() == interactionsOutput {
		s.about = rawjson.Without(v, "type", "content")
		for c := range v.Get("content").Elements() {
			if err := n.contentOf(s, c); err != nil {
				return err
			}
		}
		return nil
	}
	block := n.block(v)
	switch b := block.(type) {
	case content.ToolCall:
		b.Arguments = ""
		block = b
	case content.Reasoning:
		b.SetExtra(unsigned(b.Form().Extra))
		block = b
	}
	var err error
	if s.BlockBuilder, err = n.Begin(block); err == nil && wire.IsCall(block) {
		n.AppendText(s.BlockBuilder, "") // its name can be shown at once
	}
	return err
}

// unsigned is what is left of a step without the empty signature that a stream
// puts where none is.
func unsigned(extra []byte) []byte {
	if extra == nil || len(rawjson.Value(extra).Get("signature").Text()) > 0 {
		return extra
	}
	return (&rawjson.ObjectReader{Value: extra, Taken: []string{"signature"}}).Rest()
}

// contentOf adds a content to a model_output. A text is open until something else
// comes.
func (n *interactions) contentOf(s *interactionsStep, v rawjson.Value) (err error) {
	n.contentDone(s)
	b := n.content(v, s.about)
	s.about = nil
	text, open := b.(content.Text)
	if open {
		b = wordless(b)
	}
	if s.BlockBuilder, err = n.Begin(b); err != nil {
		return err
	}
	if open {
		n.AppendText(s.BlockBuilder, text.Text)
	} else {
		n.End(s.BlockBuilder)
	}
	return nil
}

// contentDone ends the text that is open.
func (n *interactions) contentDone(s *interactionsStep) {
	if s.BlockBuilder == nil || s.Done {
		return
	}
	if b, ok := s.Block.(content.Text); ok && s.notes != nil {
		var list rawjson.Array
		for a := range rawjson.Value(b.Form().Extra).Get("annotations").Elements() {
			list.Add(a)
		}
		for _, a := range s.notes {
			list.Add(a)
		}
		o := new(rawjson.Object).Merge(rawjson.Without(b.Form().Extra, "annotations", interactionsOutput))
		o.Set("annotations", list.Bytes())
		o.Merge(b.Form().Extra)
		b.SetExtra(o.Bytes())
		s.Block, s.notes = b, nil
	}
	n.End(s.BlockBuilder)
}

// stepDelta reads more of a step. What does not belong to it is passed over.
func (n *interactions) stepDelta(i int64, d rawjson.Value) error {
	d = rawjson.Compact(d)
	s := n.steps[i]
	if s == nil {
		return nil
	}
	if s.step.Get("type").Text() == interactionsOutput {
		return n.moreOutput(s, d)
	}
	switch b := s.Block.(type) {
	case content.Reasoning:
		n.moreThought(s, b, d)
	case content.ToolCall:
		if text := d.Get("arguments"); text.Kind() == rawjson.KindString {
			s.arguments = append(s.arguments, text.Text())
			n.AppendText(s.BlockBuilder, text.Text())
			d = rawjson.Without(d, "arguments")
		}
		s.take(d)
	default:
		s.take(d)
	}
	return nil
}

// take keeps the members of a delta. They replace those of the step.
func (s *interactionsStep) take(d rawjson.Value) {
	for key, value := range d.Members() {
		if key != "type" && value.Kind() != rawjson.KindNull {
			s.members.Set(key, value)
		}
	}
}

// moreOutput reads more of a model_output.
func (n *interactions) moreOutput(s *interactionsStep, d rawjson.Value) error {
	t := d.Get("type").Text()
	open := s.BlockBuilder != nil && !s.Done
	switch {
	case strings.HasPrefix(t, "text_annotation"), t == "text" && open:
		for a := range d.Get("annotations").Elements() {
			s.notes = append(s.notes, bytes.Clone(a))
		}
		if open {
			n.AppendText(s.BlockBuilder, d.Get("text").Text())
		}
		return nil
	case t == "", t == "text" && d.Get("text").Text() == "":
		return nil
	}
	return n.contentOf(s, d)
}

// moreThought reads more of a thought: its summary, or its seal.
func (n *interactions) moreThought(s *interactionsStep, b content.Reasoning, d rawjson.Value) {
	if c := d.Get("content"); c.Kind() == rawjson.KindObject {
		if _, all := interactionsSummary(rawjson.Value("[" + string(c) + "]")); !all {
			s.mixed = true
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

// stepStop ends the step at an index of the wire, if one is open.
func (n *interactions) stepStop(i int64) error {
	s := n.steps[i]
	if s == nil {
		return nil
	}
	delete(n.steps, i)
	if s.step.Get("type").Text() == interactionsOutput {
		n.contentDone(s)
		return nil
	}
	switch b := s.Block.(type) {
	case content.Reasoning:
		if s.mixed {
			o := new(rawjson.Object).Merge(b.Form().Extra)
			o.Set("summary", s.summary.Bytes())
			b.SetExtra(o.Bytes())
			s.Block = b
		}
	default:
		s.settle(n)
	}
	n.End(s.BlockBuilder)
	return nil
}

// settle makes the block of a step of the start and what came since.
func (s *interactionsStep) settle(n *interactions) {
	o := new(rawjson.Object).Merge(s.members.Bytes()).Merge(unsigned(s.step))
	text := strings.Join(s.arguments, "")
	arguments, err := rawjson.Parse([]byte(text))
	if err == nil {
		o.Set("arguments", arguments)
	}
	block := n.block(o.Bytes())
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
