package llm

import (
	"maps"
	"slices"
	"strings"

	"github.com/tract-vcs/tract/content"
)

// EventType says what an [Event] brings.
type EventType uint8

// The types of events.
const (
	TextDelta      EventType = 1 + iota // Text: more of the answer
	ReasoningDelta                      // Text: more of a reasoning block
	ToolDelta                           // Text: more of the arguments of a call; Name once
	BlockDone                           // Block: whole now, in the place of its deltas; once more when a seal came late
	HeadDone                            // Head: what is known of the response so far
)

var eventNames = [...]string{"", "text", "reasoning", "tool", "block", "head"}

// String returns the name of the type.
func (t EventType) String() string { return eventNames[t] }

// Event is one thing that happens while a response arrives.
type Event struct {
	Type  EventType
	Index int    // of the block in the response; they may come interleaved
	Name  string // of the tool being called
	Text  string
	Block content.Block // of BlockDone; with the first delta of a block, what is known of it but its text
	Head  Head
}

// Accumulator gathers events into a response. The zero value is ready; it is
// for one response and one goroutine.
//
// Deltas are only a preview: the block that comes for an index replaces what
// its deltas said, whatever its kind.
type Accumulator struct {
	blocks map[int]*blockState
	head   Head
}

// blockState is a block while it arrives.
type blockState struct {
	whole content.Block // nil while it is open
	start content.Block // what was known of it at its first delta, or nil
	kind  content.Kind
	text  []string // joined only when the block stays open: most never do
}

// Add takes the next event.
func (a *Accumulator) Add(e Event) {
	if e.Type == HeadDone {
		a.head.merge(e.Head)
		return
	}
	if a.blocks == nil {
		a.blocks = map[int]*blockState{}
	}
	g := a.blocks[e.Index]
	if g == nil {
		g = &blockState{}
		a.blocks[e.Index] = g
	}
	switch e.Type {
	case TextDelta:
		g.kind = content.KindAssistant
	case ReasoningDelta:
		g.kind = content.KindReasoning
	case ToolDelta:
		g.kind = content.KindToolCall
	case BlockDone:
		if e.Block != nil {
			g.whole, g.start, g.text = e.Block, nil, nil
		}
		return
	}
	if g.whole != nil {
		return
	}
	if g.start == nil {
		g.start = e.Block
	}
	g.text = append(g.text, e.Text)
}

func (h *Head) merge(next Head) {
	if next.ID != "" {
		h.ID = next.ID
	}
	if next.Model != "" {
		h.Model = next.Model
	}
	if next.Finish != "" {
		h.Finish = next.Finish
	}
	if !next.Usage.IsZero() {
		h.Usage = next.Usage
	}
}

// Response returns what came so far, in the order of the wire. When the events broke off
// (whole is false) the response is marked incomplete, and so is a text or a reasoning
// block that was open; a tool call counts only when it is whole. Response does not end the
// accumulation.
func (a *Accumulator) Response(whole bool) *Response {
	r := &Response{Head: a.head, Incomplete: !whole}
	for _, g := range a.inOrder() {
		if b := g.block(whole); b != nil {
			r.Blocks = append(r.Blocks, b)
		}
	}
	return r
}

// UnfinishedCalls lists the tool calls that never became whole, as far as they came. They
// are not part of the response and must not be run or sent back; they show where a
// response broke off.
func (a *Accumulator) UnfinishedCalls() []content.ToolCall {
	var calls []content.ToolCall
	for _, g := range a.inOrder() {
		if call, ok := g.start.(content.ToolCall); ok && g.whole == nil {
			call.Arguments = strings.Join(g.text, "")
			call.SetIncomplete(true)
			calls = append(calls, call)
		}
	}
	return calls
}

func (a *Accumulator) inOrder() []*blockState {
	list := make([]*blockState, 0, len(a.blocks))
	for _, i := range slices.Sorted(maps.Keys(a.blocks)) {
		list = append(list, a.blocks[i])
	}
	return list
}

func (g *blockState) block(whole bool) content.Block {
	text := strings.Join(g.text, "")
	switch {
	case g.whole != nil:
		return g.whole
	case text == "":
		return nil
	case g.kind == content.KindAssistant:
		b, _ := g.start.(content.Text)
		b.Of, b.Text = g.kind, text
		b.SetIncomplete(!whole)
		return b
	case g.kind == content.KindReasoning:
		b, ok := g.start.(content.Reasoning)
		if !ok {
			b.Format = content.FormatRaw
		}
		b.Text = text
		b.SetIncomplete(!whole)
		return b
	}
	return nil
}

// Collect reads events to their end. The response is nil when nothing came; with an error
// it holds what came before the error. watch, if not nil, is called with each event first.
func Collect(events func(yield func(Event, error) bool), watch func(Event)) (*Response, error) {
	var a Accumulator
	came := false
	for e, err := range events {
		if err != nil {
			if !came {
				return nil, err
			}
			return a.Response(false), err
		}
		came = true
		if watch != nil {
			watch(e)
		}
		a.Add(e)
	}
	return a.Response(true), nil
}
