package wire

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/llm"
)

// How the pieces of a response become blocks.
//
// A reader begins a block when the wire does (Begin), appends text and signatures as
// they come (AppendText, AppendSignature), and ends the block when the wire says that it
// is whole (End). Each step emits an event: deltas while the block is open, and one
// BlockDone with the whole block. Blocks may be open at the same time; their index is
// the order in which they began.
//
// Some providers send a seal or an id after the block it belongs to. The reader then
// changes the block and calls MarkChanged; such blocks are emitted once more at the end,
// and replace what was emitted before.
//
// When the stream breaks, a block that another one followed is whole, since no format
// goes back to an earlier block; a tool call counts only if it was ended.

// maxBlocks limits how many blocks a response can have. The smallest item on the wire has
// 3 bytes; the block made of it takes some hundred times as many. A block beyond the limit
// is the error of the writer, as in a bufio.Writer: it and its text are dropped, and Decode
// reads no further.
const maxBlocks = 1 << 16

// BlockWriter is what a [ResponseReader] writes to. It numbers the blocks of one response,
// emits the events, and holds the rules for streams that break: a block that was ended is
// whole, a tool call that was not ended is none. See the head of this file.
type BlockWriter struct {
	Target
	yield   func(llm.Event, error) bool
	stopped bool            // the consumer stopped reading: nothing more is emitted
	err     error           // the response has too many blocks
	Count   int             // how many blocks have begun
	Last    *BlockBuilder   // the block that began last; nil: none did
	Open    []*BlockBuilder // the blocks that have not ended, in the order in which they began
	changed []*BlockBuilder // blocks that changed after they had ended

	Head        llm.Head
	headChanged bool // Head differs from what was last emitted
}

// BlockBuilder is one block of a response while it arrives.
type BlockBuilder struct {
	index     int
	Block     content.Block // the block without the text and the signature that came in pieces
	Text      []string      // pieces of its text
	Signature []string      // pieces of its seal
	BeforeEnd func()        // completes Block from what the reader collected, when the block ends; nil: nothing to do
	started   bool          // its first delta was emitted
	Done      bool          // it has ended
	changed   bool          // it changed after it had ended
}

// Begin begins a block. Text that the block already has stays in front of what is
// appended.
func (o *BlockWriter) Begin(b content.Block) *BlockBuilder {
	p := &BlockBuilder{index: o.Count, Block: b}
	if o.Count == maxBlocks {
		o.err = fmt.Errorf("%w: more than %d blocks", llm.ErrProtocol, maxBlocks)
		return p
	}
	o.Count++
	o.Last, o.Open = p, append(o.Open, p)
	return p
}

// BeginStreamed begins a block that arrives in pieces. Of a tool call it emits the name at
// once.
func (o *BlockWriter) BeginStreamed(b content.Block) *BlockBuilder {
	p := o.Begin(b)
	if IsCall(b) {
		o.AppendText(p, "")
	}
	return p
}

// AppendSignature appends a piece of the signature of a reasoning block; other blocks and
// empty pieces are ignored.
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

// Emit adds a block that came whole.
func (o *BlockWriter) Emit(b content.Block) { o.End(o.Begin(b)) }

// AppendText appends text to a block and emits it as a delta. Text for a block that has
// ended is added too; the block is then emitted once more at the end.
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

// MarkChanged notes that a block which has ended is not what was emitted any more.
func (o *BlockWriter) MarkChanged(p *BlockBuilder) {
	if p.Done && !p.changed {
		p.changed, o.changed = true, append(o.changed, p)
	}
}

// End ends a block, which is whole now, and emits it. An empty block is left out, but for
// reasoning with members that the provider may want back.
func (o *BlockWriter) End(p *BlockBuilder) {
	if p.Done {
		return
	}
	if p.BeforeEnd != nil {
		p.BeforeEnd()
	}
	p.Done = true
	if i := slices.Index(o.Open, p); i >= 0 {
		o.Open = slices.Delete(o.Open, i, i+1)
	}
	o.emitBlock(p)
}

// EndOpen ends all open blocks.
func (o *BlockWriter) EndOpen() {
	for _, p := range slices.Clone(o.Open) {
		o.End(p)
	}
}

// emitBlock emits a whole block.
func (o *BlockWriter) emitBlock(p *BlockBuilder) {
	b := p.Build()
	entry := b.Kind() == content.KindReasoning && b.Form().Extra != nil // the provider may want it back
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

// close ends the response. err is nil when it is whole; else it is the last thing that the
// consumer sees. Of the blocks that are open after an error, those that another block
// followed count as whole, except tool calls.
func (o *BlockWriter) close(err error) {
	open := o.Open
	o.Open = nil
	for _, p := range open {
		if err == nil || p != o.Last && !IsCall(p.Block) {
			o.End(p)
		}
	}
	for _, p := range o.changed {
		o.emitBlock(p)
	}
	o.EmitHead()
	if err != nil && !o.stopped {
		o.stopped = true
		o.yield(llm.Event{}, err)
	}
}

// maxName is how many bytes an id, a model or a finish reason can have; a longer one is
// ignored.
const maxName = 64 << 10

// SetHead changes what is known of the response itself.
func (o *BlockWriter) SetHead(change func(h *llm.Head)) {
	previous := o.Head
	change(&o.Head)
	o.Head.ID, o.Head.Model, o.Head.Finish = bounded(o.Head.ID, previous.ID), bounded(o.Head.Model, previous.Model), bounded(o.Head.Finish, previous.Finish)
	if o.Head.ID != previous.ID || o.Head.Model != previous.Model || o.Head.Finish != previous.Finish {
		o.headChanged = true
	}
}

// SetUsage sets the usage. The last report counts, but a report of zeros, which some
// servers send with every chunk, does not replace another.
func (o *BlockWriter) SetUsage(u content.Usage) {
	previous, u := o.Head.Usage, u.Bounded()
	if !previous.IsZero() && u.Input|u.Output == 0 {
		return
	}
	o.Head.Usage, o.headChanged = u, true
}

// TokenCounts returns a function that reads a count of a usage report; it returns 0 for a
// count that is missing or that no response can have.
func TokenCounts(v rawjson.Value) func(keys ...string) int64 {
	return func(keys ...string) int64 {
		n, _ := v.Get(keys...).Int()
		return content.BoundedTokens(n)
	}
}

// bounded returns now, or before when now is too long.
func bounded(now, before string) string {
	if len(now) > maxName {
		return before
	}
	return now
}

// EmitHead emits the head of the response if it changed since it was last emitted.
func (o *BlockWriter) EmitHead() {
	if o.headChanged {
		o.headChanged = false
		o.emit(llm.Event{Type: llm.HeadDone, Head: o.Head})
	}
}

// emit passes an event to the consumer, unless it is about a block beyond the limit.
func (o *BlockWriter) emit(e llm.Event) {
	if !o.stopped && e.Index < maxBlocks {
		o.stopped = !o.yield(e, nil)
	}
}

// NewSeal returns a seal that the model of this response made. The name of the model that
// was asked comes before the name in the response, since it is what will be asked again.
func (o *BlockWriter) NewSeal(t content.SealType, data string) content.Seal {
	model := o.Model
	if model == "" {
		model = o.Head.Model
	}
	return content.Seal{Type: t, Data: data, Minted: o.Dialect.Name + "/" + model}
}

// AddExtra adds a member to the extra of the block; an object is merged into the one that
// is there.
func (p *BlockBuilder) AddExtra(key string, v rawjson.Value) {
	if rawjson.IsEmpty(v) {
		return
	}
	form := p.Block.Form()
	form.Extra = rawjson.WithMember(form.Extra, key, v)
	p.Block = content.WithForm(p.Block, form)
}

// MarkTruncatedCall marks a tool call whose arguments end in the middle of a JSON text: at
// the output limit a provider ends it there.
func (p *BlockBuilder) MarkTruncatedCall() {
	if call, ok := p.Block.(content.ToolCall); ok && len(p.Text) > 0 {
		call.SetIncomplete(rawjson.IsTruncated(strings.Join(p.Text, "")))
		p.Block = call
	}
}

// MarkIncomplete marks the block as one that the response broke off in. Tool calls are not
// marked: they count only when they are whole.
func (p *BlockBuilder) MarkIncomplete() {
	if !IsCall(p.Block) {
		form := p.Block.Form()
		form.Incomplete = true
		p.Block = content.WithForm(p.Block, form)
	}
}
