package wire

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/llm"
)

// maxBlocks bounds what a response can make of its bytes: the smallest item of
// the wire has 3 bytes, the block made of it some hundred times as many.
const maxBlocks = 1 << 16

// output is where a reader puts what it finds in one response. It numbers the
// blocks, gives out events, and keeps what is not whole yet.
type BlockWriter struct {
	Target
	yield   func(llm.Event, error) bool
	stopped bool // the consumer went away: nothing more is given out
	Count   int
	Last    *BlockBuilder
	Open    []*BlockBuilder // in the order they began
	changed []*BlockBuilder // done, and changed since

	Head        llm.Head
	headChanged bool // head was not given out as it is now
}

// part is a block on its way.
type BlockBuilder struct {
	index     int
	Block     content.Block // without its words
	Text      []string
	Signature []string // pieces of block's seal
	started   bool     // its first delta was given out
	Done      bool
	changed   bool // done, and changed since
}

// begin starts a block. What it holds already stays in front of what is said.
func (o *BlockWriter) Begin(b content.Block) (*BlockBuilder, error) {
	if o.Count == maxBlocks {
		return nil, fmt.Errorf("%w: more than %d blocks", llm.ErrProtocol, maxBlocks)
	}
	p := &BlockBuilder{index: o.Count, Block: b}
	o.Count++
	o.Last, o.Open = p, append(o.Open, p)
	return p, nil
}

// follow starts a block that comes in pieces. The name of a call can be shown at
// once.
func (o *BlockWriter) BeginStreamed(b content.Block) (*BlockBuilder, error) {
	p, err := o.Begin(b)
	if err == nil && IsCall(b) {
		o.AppendText(p, "")
	}
	return p, err
}

// signed adds a piece of a signature to a thought.
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

// put gives out a block that came whole.
func (o *BlockWriter) Emit(b content.Block) error {
	p, err := o.Begin(b)
	if err == nil {
		o.End(p)
	}
	return err
}

// say adds words to a block. To one that is done already they are added too.
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

func IsCall(b content.Block) bool {
	_, ok := b.(content.ToolCall)
	return ok
}

// changed notes that a block is not what was given out any more.
func (o *BlockWriter) MarkChanged(p *BlockBuilder) {
	if p.Done && !p.changed {
		p.changed, o.changed = true, append(o.changed, p)
	}
}

// done gives out a block that is whole. A block in which there is nothing is
// none.
func (o *BlockWriter) End(p *BlockBuilder) {
	if p.Done {
		return
	}
	p.Done = true
	if i := slices.Index(o.Open, p); i >= 0 {
		o.Open = slices.Delete(o.Open, i, i+1)
	}
	o.emitBlock(p)
}

func (o *BlockWriter) emitBlock(p *BlockBuilder) {
	b := p.Build()
	entry := b.Kind() == content.KindReasoning && b.Form().Extra != nil // the provider may want it back
	if entry || !content.IsEmpty(b) {
		o.emit(llm.Event{Type: llm.BlockDone, Index: p.index, Block: b})
	}
}

// whole is the block with its words and its seal.
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

// close ends the response: whole, or broken by an error, which then is the last
// thing the consumer sees. Of the blocks that were open when it broke, one that
// another followed is whole; but a call never is.
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

// maxName is the most bytes of an id, a model or a finish reason: a longer one is none.
const maxName = 64 << 10

// about notes what the response says about itself.
func (o *BlockWriter) SetHead(change func(h *llm.Head)) {
	previous := o.Head
	change(&o.Head)
	o.Head.ID, o.Head.Model, o.Head.Finish = bounded(o.Head.ID, previous.ID), bounded(o.Head.Model, previous.Model), bounded(o.Head.Finish, previous.Finish)
	if o.Head.ID != previous.ID || o.Head.Model != previous.Model || o.Head.Finish != previous.Finish {
		o.headChanged = true
	}
}

// usage notes what the response cost. The last report counts, but a report of
// nothing, which some servers send with every chunk, does not undo another.
func (o *BlockWriter) SetUsage(u content.Usage) {
	previous, u := o.Head.Usage, u.Bounded()
	if !previous.IsZero() && u.Input|u.Output == 0 {
		return
	}
	o.Head.Usage, o.headChanged = u, true
}

// counts reads the numbers of a report of usage; one that is missing, or that no
// response can have, is 0.
func TokenCounts(v rawjson.Value) func(keys ...string) int64 {
	return func(keys ...string) int64 {
		n, _ := v.Get(keys...).Int()
		return content.BoundedTokens(n)
	}
}

// name is an id, a model or a finish reason, or the one before when it is too long.
func bounded(now, before string) string {
	if len(now) > maxName {
		return before
	}
	return now
}

// giveHead gives out what is known of the response by now, if that is news.
func (o *BlockWriter) EmitHead() {
	if o.headChanged {
		o.headChanged = false
		o.emit(llm.Event{Type: llm.HeadDone, Head: o.Head})
	}
}

func (o *BlockWriter) emit(e llm.Event) {
	if !o.stopped {
		o.stopped = !o.yield(e, nil)
	}
}

// minted is the seal of the response's model over data. The name that was asked
// for counts more than the one in the response: it is what will be asked again.
func (o *BlockWriter) NewSeal(t content.SealType, data string) content.Seal {
	model := o.Model
	if model == "" {
		model = o.Head.Model
	}
	return content.Seal{Type: t, Data: data, Minted: o.Dialect.Name + "/" + model}
}

// extend adds a member to the extra of a block, into the object that may be there.
func (p *BlockBuilder) AddExtra(key string, v rawjson.Value) {
	if rawjson.IsEmpty(v) {
		return
	}
	form := p.Block.Form()
	form.Extra = rawjson.WithMember(form.Extra, key, v)
	p.Block = content.WithForm(p.Block, form)
}

// cut marks a block as one that broke off.
func (p *BlockBuilder) MarkIncomplete() {
	if !IsCall(p.Block) {
		form := p.Block.Form()
		form.Incomplete = true
		p.Block = content.WithForm(p.Block, form)
	}
}
