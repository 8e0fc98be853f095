package providers

import (
	"bytes"
	"strings"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
)

// interactionsStep is a step that is being streamed.
type interactionsStep struct {
	*part                     // that deltas go to; nil: a model_output without contents yet
	step      rawjson.Value   // as the start gave it
	members   rawjson.Object  // that came since, for steps that are no words
	arguments []string        // pieces of the arguments of a call
	about     rawjson.Value   // what a model_output has beside contents, until its first content
	notes     []rawjson.Value // annotations of the text that is open
	summary   rawjson.Array   // of a thought
	mixed     bool            // it is more than texts
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
	if s.part, err = n.begin(block); err == nil && isCall(block) {
		n.say(s.part, "") // its name can be shown at once
	}
	return err
}

// unsigned is what is left of a step without the empty signature that a stream
// puts where none is.
func unsigned(extra []byte) []byte {
	if extra == nil || len(rawjson.Value(extra).Get("signature").Text()) > 0 {
		return extra
	}
	return (&item{Value: extra, taken: []string{"signature"}}).rest()
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
	if s.part, err = n.begin(b); err != nil {
		return err
	}
	if open {
		n.say(s.part, text.Text)
	} else {
		n.done(s.part)
	}
	return nil
}

// contentDone ends the text that is open.
func (n *interactions) contentDone(s *interactionsStep) {
	if s.part == nil || s.done {
		return
	}
	if b, ok := s.block.(content.Text); ok && s.notes != nil {
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
		s.block, s.notes = b, nil
	}
	n.done(s.part)
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
	switch b := s.block.(type) {
	case content.Reasoning:
		n.moreThought(s, b, d)
	case content.ToolCall:
		if text := d.Get("arguments"); text.Kind() == rawjson.KindString {
			s.arguments = append(s.arguments, text.Text())
			n.say(s.part, text.Text())
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
	open := s.part != nil && !s.done
	switch {
	case strings.HasPrefix(t, "text_annotation"), t == "text" && open:
		for a := range d.Get("annotations").Elements() {
			s.notes = append(s.notes, bytes.Clone(a))
		}
		if open {
			n.say(s.part, d.Get("text").Text())
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
		n.say(s.part, c.Get("text").Text())
	}
	if seal := d.Get("signature").Text(); seal != "" && seal != b.Form().Seal.Data {
		if b.Form().Seal.Data == "" {
			b.SetSeal(n.minted(content.Signature, ""))
			s.block = b
		}
		s.seal = append(s.seal, seal)
	}
	if more := rawjson.Without(d, "type", "content", "signature", "text"); some(more) != nil {
		b.SetExtra(new(rawjson.Object).Merge(more).Merge(b.Form().Extra).Bytes())
		s.block = b
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
	switch b := s.block.(type) {
	case content.Reasoning:
		if s.mixed {
			o := new(rawjson.Object).Merge(b.Form().Extra)
			o.Set("summary", s.summary.Bytes())
			b.SetExtra(o.Bytes())
			s.block = b
		}
	default:
		s.settle(n)
	}
	n.done(s.part)
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
		s.text = nil
		if strings.TrimSpace(text) != "" && err != nil {
			call.Arguments = text
			call.SetIncomplete(cutShort(text))
		}
		block = call
	}
	s.block = block
}
