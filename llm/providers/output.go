package providers

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
type output struct {
	target
	yield func(llm.Event, error) bool
	left  bool // the consumer went away: nothing more is given out
	count int
	last  *part
	open  []*part // in the order they began
	late  []*part // done, and changed since

	head llm.Head
	news bool // head was not given out as it is now
}

// part is a block on its way.
type part struct {
	index int
	block content.Block // without its words
	text  []string
	seal  []string // pieces of block's seal
	begun bool     // its first delta was given out
	done  bool
	late  bool // done, and changed since
}

// begin starts a block. What it holds already stays in front of what is said.
func (o *output) begin(b content.Block) (*part, error) {
	if o.count == maxBlocks {
		return nil, fmt.Errorf("%w: more than %d blocks", llm.ErrProtocol, maxBlocks)
	}
	p := &part{index: o.count, block: b}
	o.count++
	o.last, o.open = p, append(o.open, p)
	return p, nil
}

// follow starts a block that comes in pieces. The name of a call can be shown at
// once.
func (o *output) follow(b content.Block) (*part, error) {
	p, err := o.begin(b)
	if err == nil && isCall(b) {
		o.say(p, "")
	}
	return p, err
}

// signed adds a piece of a signature to a thought.
func (o *output) signed(p *part, piece string) {
	b, ok := p.block.(content.Reasoning)
	if !ok || piece == "" {
		return
	}
	if b.Form().Seal.Type == content.NoSeal {
		b.SetSeal(o.minted(content.Signature, ""))
		p.block = b
	}
	p.seal = append(p.seal, piece)
}

// put gives out a block that came whole.
func (o *output) put(b content.Block) error {
	p, err := o.begin(b)
	if err == nil {
		o.done(p)
	}
	return err
}

// say adds words to a block. To one that is done already they are added too.
func (o *output) say(p *part, text string) {
	if text == "" && (p.begun || !isCall(p.block)) {
		return
	}
	if text != "" {
		p.text = append(p.text, text)
	}
	if p.done {
		o.changed(p)
		return
	}
	e := llm.Event{Type: llm.TextDelta, Index: p.index, Text: text}
	if !p.begun {
		e.Block, p.begun = p.block, true
	}
	switch b := p.block.(type) {
	case content.Reasoning:
		e.Type = llm.ReasoningDelta
	case content.ToolCall:
		e.Type = llm.ToolDelta
		if e.Block != nil {
			e.Name = b.Name
		}
	}
	o.event(e)
}

func isCall(b content.Block) bool {
	_, ok := b.(content.ToolCall)
	return ok
}

// changed notes that a block is not what was given out any more.
func (o *output) changed(p *part) {
	if p.done && !p.late {
		p.late, o.late = true, append(o.late, p)
	}
}

// done gives out a block that is whole. A block in which there is nothing is
// none.
func (o *output) done(p *part) {
	if p.done {
		return
	}
	p.done = true
	if i := slices.Index(o.open, p); i >= 0 {
		o.open = slices.Delete(o.open, i, i+1)
	}
	o.give(p)
}

func (o *output) give(p *part) {
	b := p.whole()
	entry := b.Kind() == content.KindReasoning && b.Form().Extra != nil // the provider may want it back
	if entry || !content.IsEmpty(b) {
		o.event(llm.Event{Type: llm.BlockDone, Index: p.index, Block: b})
	}
}

// whole is the block with its words and its seal.
func (p *part) whole() content.Block {
	text := strings.Join(p.text, "")
	if len(p.text) > 1 {
		p.text = []string{text}
	}
	seal := p.block.Form().Seal
	seal.Data += strings.Join(p.seal, "")
	switch b := p.block.(type) {
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
	return p.block
}

// close ends the response: whole, or broken by an error, which then is the last
// thing the consumer sees. Of the blocks that were open when it broke, one that
// another followed is whole; but a call never is.
func (o *output) close(err error) {
	open := o.open
	o.open = nil
	for _, p := range open {
		if err == nil || p != o.last && !isCall(p.block) {
			o.done(p)
		}
	}
	for _, p := range o.late {
		o.give(p)
	}
	o.giveHead()
	if err != nil && !o.left {
		o.left = true
		o.yield(llm.Event{}, err)
	}
}

// maxName is the most bytes of an id, a model or a finish reason: a longer one is none.
const maxName = 64 << 10

// about notes what the response says about itself.
func (o *output) about(change func(h *llm.Head)) {
	was := o.head
	change(&o.head)
	o.head.ID, o.head.Model, o.head.Finish = name(o.head.ID, was.ID), name(o.head.Model, was.Model), name(o.head.Finish, was.Finish)
	if o.head.ID != was.ID || o.head.Model != was.Model || o.head.Finish != was.Finish {
		o.news = true
	}
}

// usage notes what the response cost. The last report counts, but a report of
// nothing, which some servers send with every chunk, does not undo another.
func (o *output) usage(u content.Usage) {
	was, u := o.head.Usage, u.Bounded()
	if !was.IsZero() && u.Input|u.Output == 0 {
		return
	}
	o.head.Usage, o.news = u, true
}

// counts reads the numbers of a report of usage; one that is missing, or that no
// response can have, is 0.
func counts(v rawjson.Value) func(keys ...string) int64 {
	return func(keys ...string) int64 {
		n, _ := v.Get(keys...).Int()
		return content.BoundedTokens(n)
	}
}

// name is an id, a model or a finish reason, or the one before when it is too long.
func name(now, before string) string {
	if len(now) > maxName {
		return before
	}
	return now
}

// giveHead gives out what is known of the response by now, if that is news.
func (o *output) giveHead() {
	if o.news {
		o.news = false
		o.event(llm.Event{Type: llm.HeadDone, Head: o.head})
	}
}

func (o *output) event(e llm.Event) {
	if !o.left {
		o.left = !o.yield(e, nil)
	}
}

// minted is the seal of the response's model over data. The name that was asked
// for counts more than the one in the response: it is what will be asked again.
func (o *output) minted(t content.SealType, data string) content.Seal {
	model := o.model
	if model == "" {
		model = o.head.Model
	}
	return content.Seal{Type: t, Data: data, Minted: o.dialect.name + "/" + model}
}

// extend adds a member to the extra of a block, into the object that may be there.
func (p *part) extend(key string, v rawjson.Value) {
	if hollow(v) {
		return
	}
	form := p.block.Form()
	form.Extra = extended(form.Extra, key, v)
	p.block = content.WithForm(p.block, form)
}

// cut marks a block as one that broke off.
func (p *part) cut() {
	if !isCall(p.block) {
		form := p.block.Form()
		form.Incomplete = true
		p.block = content.WithForm(p.block, form)
	}
}
