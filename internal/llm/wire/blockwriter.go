package wire

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/llm"
)

// How the pieces of a response become blocks.
//
// A reader calls Begin when the provider begins a block, AppendText and AppendSignature as
// pieces arrive, and End when the block is complete. The writer emits an event for each
// piece of text while the block is open, and one BlockDone event with the complete block.
// Several blocks may be open at the same time; a block's index is the order in which it
// began.
//
// Some providers send a seal or an id after the block it belongs to. The reader then
// changes the block and calls MarkChanged. The writer emits such a block once more at the
// end of the response, and consumers replace the earlier one.
//
// When the stream breaks, an open block counts as complete if another block followed it,
// because no format returns to an earlier block. A tool call counts only if it was ended.

// maxBlocks is the largest number of blocks in a response. The smallest item on the wire has
// 3 bytes, and its block takes some hundred times as many. A block beyond the limit sets the
// writer's error, as in a bufio.Writer: the block and its text are dropped, [BlockWriter.Elements]
// ends, and Decode stops reading.
const maxBlocks = 1 << 16

// BlockWriter receives the blocks of one response from a [ResponseReader]. It numbers the
// blocks, emits the events, and decides which blocks of a broken stream count. See the head
// of this file.
type BlockWriter struct {
	Target
	yield   func(llm.Event, error) bool
	stopped bool            // the consumer stopped reading: nothing more is emitted
	err     error           // the response has too many blocks
	Count   int             // how many blocks have begun
	Last    *BlockBuilder   // the block that began last; nil: none did
	open    []*BlockBuilder // the blocks that have not ended, in the order in which they began, and ended more
	ended   int             // how many blocks in open have ended: at most half of them
	changed []*BlockBuilder // blocks that changed after they had ended

	Head        llm.Head
	headChanged bool // Head differs from what was last emitted
}

// BlockBuilder builds one block of a response from its pieces.
type BlockBuilder struct {
	index     int
	Block     content.Block // the block, without the pieces in Text and Signature
	Text      []string      // pieces of the block's text
	Signature []string      // pieces of the block's seal
	BeforeEnd func()        // called when the block ends, so that the reader can complete Block; may be nil
	started   bool          // the first delta of the block was emitted
	Done      bool          // the block has ended
	changed   bool          // the block changed after it had ended
}

// Begin begins a block. Text that the block already has precedes the appended text.
func (o *BlockWriter) Begin(b content.Block) *BlockBuilder {
	p := &BlockBuilder{index: o.Count, Block: b}
	if o.Count == maxBlocks {
		o.err = fmt.Errorf("%w: more than %d blocks", llm.ErrProtocol, maxBlocks)
		return p
	}
	o.Count++
	o.Last, o.open = p, append(o.open, p)
	return p
}

// Elements returns the elements of a list in a response, until there are too many blocks: a reader
// keeps something for each element.
func (o *BlockWriter) Elements(list rawjson.Value) iter.Seq[rawjson.Value] {
	return func(yield func(rawjson.Value) bool) {
		for v := range list.Elements() {
			if o.err != nil || !yield(v) {
				return
			}
		}
	}
}

// BeginStreamed begins a block that arrives in pieces. It emits the name of a tool call at
// once.
func (o *BlockWriter) BeginStreamed(b content.Block) *BlockBuilder {
	p := o.Begin(b)
	if IsCall(b) {
		o.AppendText(p, "")
	}
	return p
}

// AppendSignature appends a piece to the signature of a reasoning block. It ignores other
// blocks and empty pieces.
func (o *BlockWriter) AppendSignature(p *BlockBuilder, piece string) {
	b, ok := p.Block.(content.Reasoning)
	if !ok || piece == "" {
		return
	}
	if b.Form().Seal.Type == content.NoSeal {
		b.SetSeal(o.NewSeal(content.Signature, ""))
		p.Block = b
	}
	p.Signature = append(p.Signature, piece)
}

// Emit adds a complete block.
func (o *BlockWriter) Emit(b content.Block) { o.End(o.Begin(b)) }

// AppendText appends text to a block and emits it as a delta. If the block has ended, the text
// is appended too, and the block is emitted once more at the end of the response.
func (o *BlockWriter) AppendText(p *BlockBuilder, text string) {
	if text == "" && (p.started || !IsCall(p.Block)) {
		return
	}
	if text != "" {
		p.Text = append(p.Text, text)
	}
	if p.Done {
		o.MarkChanged(p)
		return
	}
	e := llm.Event{Type: llm.TextDelta, Index: p.index, Text: text}
	if !p.started {
		e.Block, p.started = p.Block, true
	}
	switch b := p.Block.(type) {
	case content.Reasoning:
		e.Type = llm.ReasoningDelta
	case content.ToolCall:
		e.Type = llm.ToolDelta
		if e.Block != nil {
			e.Name = b.Name
		}
	}
	o.emit(e)
}

// IsCall reports whether a block is a tool call.
func IsCall(b content.Block) bool {
	_, ok := b.(content.ToolCall)
	return ok
}

// MarkChanged records that a block changed after it had ended, so that it is emitted again.
func (o *BlockWriter) MarkChanged(p *BlockBuilder) {
	if p.Done && !p.changed {
		p.changed, o.changed = true, append(o.changed, p)
	}
}

// End ends a complete block and emits it. An empty block is not emitted, except reasoning with
// an extra, which the provider may require.
func (o *BlockWriter) End(p *BlockBuilder) {
	if p.Done {
		return
	}
	if p.BeforeEnd != nil {
		p.BeforeEnd()
	}
	p.Done = true
	if o.ended++; o.ended > len(o.open)/2 {
		o.open, o.ended = slices.DeleteFunc(o.open, func(p *BlockBuilder) bool { return p.Done }), 0
	}
	o.emitBlockDone(p)
}

// OpenBlocks returns the blocks that have not ended, in the order in which they began.
func (o *BlockWriter) OpenBlocks() []*BlockBuilder {
	return slices.DeleteFunc(slices.Clone(o.open), func(p *BlockBuilder) bool { return p.Done })
}

// EndOpen ends all open blocks.
func (o *BlockWriter) EndOpen() {
	for _, p := range o.OpenBlocks() {
		o.End(p)
	}
}

// emitBlockDone emits the event for a complete block, unless the block is empty.
func (o *BlockWriter) emitBlockDone(p *BlockBuilder) {
	b := p.Build()
	entry := b.Kind() == content.KindReasoning && b.Form().Extra != nil // the provider may require it
	if entry || !content.IsEmpty(b) {
		o.emit(llm.Event{Type: llm.BlockDone, Index: p.index, Block: b})
	}
}

// Build returns the block with its text and its seal.
func (p *BlockBuilder) Build() content.Block {
	text := strings.Join(p.Text, "")
	if len(p.Text) > 1 {
		p.Text = []string{text}
	}
	seal := p.Block.Form().Seal
	seal.Data += strings.Join(p.Signature, "")
	switch b := p.Block.(type) {
	case content.Text:
		b.Text += text
		return b
	case content.Reasoning:
		b.Text += text
		b.SetSeal(seal)
		return b
	case content.ToolCall:
		b.Arguments += text
		b.SetSeal(seal)
		return b
	}
	return p.Block
}

// close ends the response. err is nil if the response is complete; else the consumer gets it
// last. After an error, an open block counts as complete if another block followed it and it
// is not a tool call.
func (o *BlockWriter) close(err error) {
	for _, p := range o.OpenBlocks() {
		if err == nil || p != o.Last && !IsCall(p.Block) {
			o.End(p)
		}
	}
	for _, p := range o.changed {
		o.emitBlockDone(p)
	}
	o.EmitHead()
	if err != nil && !o.stopped {
		o.stopped = true
		o.yield(llm.Event{}, err)
	}
}

// maxName is the largest length, in bytes, of an id, a model or a finish reason. A longer one
// is ignored.
const maxName = 64 << 10

// SetHead changes the head of the response.
func (o *BlockWriter) SetHead(change func(h *llm.Head)) {
	previous := o.Head
	change(&o.Head)
	o.Head.ID, o.Head.Model, o.Head.Finish = previousIfTooLong(o.Head.ID, previous.ID), previousIfTooLong(o.Head.Model, previous.Model), previousIfTooLong(o.Head.Finish, previous.Finish)
	if o.Head.ID != previous.ID || o.Head.Model != previous.Model || o.Head.Finish != previous.Finish {
		o.headChanged = true
	}
}

// SetUsage sets the usage. A later usage replaces an earlier one, unless its input and output
// are zero: some servers send zeros with every chunk.
func (o *BlockWriter) SetUsage(u content.Usage) {
	previous, u := o.Head.Usage, u.Bounded()
	if !previous.IsZero() && u.Input|u.Output == 0 {
		return
	}
	o.Head.Usage, o.headChanged = u, true
}

// TokenCounts returns a function that returns the count at a path in usage object v, and 0
// for a count that is missing or impossible.
func TokenCounts(v rawjson.Value) func(keys ...string) int64 {
	return func(keys ...string) int64 {
		n, _ := v.Get(keys...).Int()
		return content.BoundedTokens(n)
	}
}

// previousIfTooLong returns name, or previous if name is longer than maxName.
func previousIfTooLong(name, previous string) string {
	if len(name) > maxName {
		return previous
	}
	return name
}

// EmitHead emits the head of the response if it changed since it was last emitted.
func (o *BlockWriter) EmitHead() {
	if o.headChanged {
		o.headChanged = false
		o.emit(llm.Event{Type: llm.HeadDone, Head: o.Head})
	}
}

// emit passes an event to the consumer, unless the event belongs to a block beyond the limit.
func (o *BlockWriter) emit(e llm.Event) {
	if !o.stopped && e.Index < maxBlocks {
		o.stopped = !o.yield(e, nil)
	}
}

// NewSeal returns a seal that the model of this response made. It uses the model name of the
// request rather than that of the response, because the next request will use it again.
func (o *BlockWriter) NewSeal(t content.SealType, data string) content.Seal {
	model := o.Model
	if model == "" {
		model = o.Head.Model
	}
	return content.Seal{Type: t, Data: data, Minted: o.Dialect.Name + "/" + model}
}

// AddExtra adds a member to the extra of the block. An object is merged into an object that is
// already there; an empty value adds nothing.
func (p *BlockBuilder) AddExtra(key string, v rawjson.Value) {
	if rawjson.IsEmpty(v) {
		return
	}
	form := p.Block.Form()
	form.Extra = rawjson.WithMember(form.Extra, key, v)
	p.Block = content.WithForm(p.Block, form)
}

// MarkTruncatedCall marks a tool call as incomplete if its arguments end in the middle of a
// JSON text, as they do when the provider reaches the output limit.
func (p *BlockBuilder) MarkTruncatedCall() {
	if call, ok := p.Block.(content.ToolCall); ok && len(p.Text) > 0 {
		call.SetIncomplete(rawjson.IsTruncated(strings.Join(p.Text, "")))
		p.Block = call
	}
}

// MarkIncomplete marks the block as one in which the response broke off. Tool calls are not
// marked, because they count only when they are complete.
func (p *BlockBuilder) MarkIncomplete() {
	if !IsCall(p.Block) {
		form := p.Block.Form()
		form.Incomplete = true
		p.Block = content.WithForm(p.Block, form)
	}
}
