package format

import (
	"strings"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/llm"
)

// Live shows a response as it streams: text, reasoning and calls in order. Incomplete characters
// wait for their rest. It is for one response and one goroutine.
type Live struct {
	text, reasoning *Printer
	blocks          map[int]*liveBlock
	open            *liveBlock // whose last line is not ended; nil: none
	last            *liveBlock // what was shown last
	shownReasoning  bool       // words of a thought were shown
}

// liveBlock is a block as far as it was received.
type liveBlock struct {
	kind     content.Kind
	received strings.Builder // its words
	pending  string          // the end of them that waits for its rest
	escape   escaper
	line     strings.Builder // its last line, where that is shaded
	tag      string          // to be shown before its words
	done     bool
}

// NewLive shows text and calls on one printer and reasoning on another, possibly the same; nil
// hides reasoning.
func NewLive(text, thoughts *Printer) *Live {
	return &Live{text: text, reasoning: thoughts, blocks: map[int]*liveBlock{}}
}

// Event shows an event. Of a complete block, only what its deltas did not show is added.
func (l *Live) Event(e llm.Event) {
	switch e.Type {
	case llm.TextDelta:
		l.add(l.block(e.Index, content.KindAssistant), e.Text)
	case llm.ReasoningDelta:
		l.add(l.block(e.Index, content.KindReasoning), e.Text)
	case llm.BlockDone:
		l.done(e)
	}
}

// Close ends the last line. If reasoning was counted but not readable, it says so.
func (l *Live) Close(u content.Usage, provider string) {
	if l.open != nil {
		l.flush(l.open)
	}
	l.end()
	if l.reasoning == nil || l.shownReasoning || u.Reasoning == 0 {
		return
	}
	said := thousands(u.Reasoning) + " tokens, not disclosed"
	if provider != "" {
		said += " by " + Line(provider)
	}
	g := l.reasoning.buffer()
	g.reasoningLine("", reasoningTag, said)
	g.end()
}

func (l *Live) block(index int, kind content.Kind) *liveBlock {
	b := l.blocks[index]
	if b == nil {
		b = &liveBlock{kind: kind}
		if kind == content.KindReasoning {
			b.tag = reasoningTag
		}
		l.blocks[index] = b
	}
	return b
}

func (b *liveBlock) isThought() bool { return b.kind == content.KindReasoning }

// printer is where a block is shown; nil: nowhere.
func (l *Live) printer(b *liveBlock) *Printer {
	if b.isThought() {
		return l.reasoning
	}
	return l.text
}

// add shows the next text of a block.
func (l *Live) add(b *liveBlock, words string) {
	p := l.printer(b)
	if p == nil || b.done {
		return
	}
	b.received.WriteString(words)
	words = b.pending + words
	n := completePrefix(words)
	b.pending = words[n:]
	l.show(b, words[:n])
}

// flush shows pending bytes that will not be completed.
func (l *Live) flush(b *liveBlock) {
	held := b.pending
	b.pending = ""
	if l.printer(b) != nil {
		l.show(b, held)
	}
}

// show writes complete text.
func (l *Live) show(b *liveBlock, words string) {
	p := l.printer(b)
	if !p.o.Raw {
		words = string(b.escape.append(nil, words))
	}
	if b.tag != "" {
		words = strings.TrimLeft(words, "\n")
	}
	if words == "" {
		return
	}
	l.switchTo(b)
	l.shownReasoning = l.shownReasoning || b.isThought()
	g := p.buffer()
	for piece := range strings.Lines(words) {
		piece, ended := strings.CutSuffix(piece, "\n")
		g.livePiece(b, piece, ended)
		l.open = b
		if ended {
			l.open = nil
		}
	}
	g.end()
}

// switchTo ends the line of another block. Text blocks are joined; reasoning is set off by empty
// lines.
func (l *Live) switchTo(b *liveBlock) {
	last := l.last
	l.last = b
	if last != nil && last != b && b.isThought() {
		b.tag = reasoningTag
	}
	if last == nil || last == b || last.kind == b.kind && b.kind == content.KindAssistant {
		return
	}
	l.end()
	if (last.isThought() || b.isThought()) && l.reasoning != nil {
		l.reasoning.write("\n")
	}
}

// end ends a line that is open.
func (l *Live) end() {
	if l.open == nil {
		return
	}
	g := l.printer(l.open).buffer()
	g.livePiece(l.open, "", true)
	g.end()
	l.open = nil
}

func (g *lineBuffer) livePiece(b *liveBlock, words string, ended bool) {
	if !b.isThought() {
		g.add(words)
		if ended {
			g.add("\n")
		}
		return
	}
	g.add(paint(g.styles.tag, b.tag), paint(g.styles.reasoning, words))
	if g.styles.shaded && g.o.Width > 0 {
		b.line.WriteString(b.tag + words)
	}
	b.tag = ""
	if !ended {
		return
	}
	if g.styles.shaded && g.o.Width > 0 {
		g.add(paint(g.styles.reasoning, strings.Repeat(" ", cellsInLastRow(expandTabs(b.line.String()), g.o.Width))))
		b.line.Reset()
	}
	g.add("\n")
}

// done shows what a complete block adds to its deltas.
func (l *Live) done(e llm.Event) {
	b := l.block(e.Index, e.Block.Kind())
	if b.done {
		return // a seal came late
	}
	switch block := e.Block.(type) {
	case content.Text, content.Reasoning:
		if rest, more := strings.CutPrefix(block.String(), b.received.String()); more && block.Kind() == b.kind {
			l.add(b, rest)
		}
		l.flush(b)
		if block.Form().Seal.Type == content.Redacted {
			l.oneLineBlock(b, reasoningTag, block)
		}
	case content.ToolCall:
		l.oneLineBlock(b, callTag, block)
	case content.ToolResult:
		l.oneLineBlock(b, resultTag, block)
	case content.Native:
		l.oneLineBlock(b, "[native] ", block)
	default:
		l.oneLineBlock(b, "", block)
	}
	b.done = true
}

func (l *Live) oneLineBlock(b *liveBlock, tag string, block content.Block) {
	p := l.printer(b)
	if p == nil {
		return
	}
	l.switchTo(b)
	l.end()
	g := p.buffer()
	words := Summary(block, g.cellsLeft(tag))
	if b.isThought() {
		g.reasoningLine("", tag, words)
	} else {
		g.line(paint(g.styles.tool, tag), words)
	}
	g.end()
}
