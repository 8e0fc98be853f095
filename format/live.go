package format

import (
	"strings"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/llm"
)

// How a stream is shown. Each delta of text or reasoning is sanitized and written at once; the end of
// a delta waits in liveBlock.pending when it may be a part of a character. Blocks may alternate: when
// another block continues, switchToBlock ends the open line, and reasoning is separated by empty
// lines. A terminal has no color beyond the end of the written text, so the last row of each line of
// shaded reasoning is filled with spaces, which needs the length of the line so far
// (liveBlock.line). When a block is complete, done compares it with the text of its deltas and shows
// the rest.

// Live shows a response while it streams: text, reasoning and calls in order. A character that a
// delta cuts is shown when the next delta completes it. A Live is for one response and one
// goroutine.
type Live struct {
	text, reasoning *Printer
	blocks          map[int]*liveBlock
	open            *liveBlock // the block whose last line is not ended; nil: none
	last            *liveBlock // the block that was shown last
	shownReasoning  bool       // text of reasoning was shown
}

// liveBlock is the part of a block that was received.
type liveBlock struct {
	kind     content.Kind
	received strings.Builder // the text
	pending  string          // the incomplete character at the end of the text
	escape   escaper
	line     strings.Builder // the last line, when the output is shaded
	tag      string          // to be shown before the next text
	done     bool
}

// NewLive returns a Live that shows text and calls on one printer and reasoning on another, which
// may be the same; nil hides reasoning.
func NewLive(text, reasoning *Printer) *Live {
	return &Live{text: text, reasoning: reasoning, blocks: map[int]*liveBlock{}}
}

// Event shows an event. Of a complete block it shows only the part that its deltas did not have.
func (l *Live) Event(e llm.Event) {
	switch e.Type {
	case llm.TextDelta:
		l.writeDelta(l.ensureBlock(e.Index, content.KindAssistant), e.Text)
	case llm.ReasoningDelta:
		l.writeDelta(l.ensureBlock(e.Index, content.KindReasoning), e.Text)
	case llm.BlockDone:
		l.blockDone(e)
	}
}

// Close ends the last line. If the usage counts reasoning but no reasoning was readable, it adds a
// note.
func (l *Live) Close(u content.Usage, provider string) {
	if l.open != nil {
		l.flushPending(l.open)
	}
	l.endLine()
	if l.reasoning == nil || l.shownReasoning || u.Reasoning == 0 {
		return
	}
	note := thousands(u.Reasoning) + " tokens, not disclosed"
	if provider != "" {
		note += " by " + Line(provider)
	}
	g := l.reasoning.newBuffer()
	g.reasoningLine("", reasoningTag, note)
	g.flush()
}

// ensureBlock returns the block with an index, and creates it on first use.
func (l *Live) ensureBlock(index int, kind content.Kind) *liveBlock {
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

func (b *liveBlock) isReasoning() bool { return b.kind == content.KindReasoning }

// printerIfShown returns the printer for a block; nil: the block is not shown.
func (l *Live) printerIfShown(b *liveBlock) *Printer {
	if b.isReasoning() {
		return l.reasoning
	}
	return l.text
}

// writeDelta shows the next text of a block at once, except for a character that is cut at its end.
func (l *Live) writeDelta(b *liveBlock, text string) {
	p := l.printerIfShown(b)
	if p == nil || b.done {
		return
	}
	b.received.WriteString(text)
	text = b.pending + text
	n := completePrefixLen(text)
	b.pending = text[n:]
	l.writeWholeRunes(b, text[:n])
}

// flushPending shows the pending bytes of a character that will not be completed.
func (l *Live) flushPending(b *liveBlock) {
	held := b.pending
	b.pending = ""
	if l.printerIfShown(b) != nil {
		l.writeWholeRunes(b, held)
	}
}

// writeWholeRunes writes text of b that ends with a complete character. b becomes the last block.
func (l *Live) writeWholeRunes(b *liveBlock, text string) {
	p := l.printerIfShown(b)
	if !p.o.Raw {
		text = string(b.escape.appendEscaped(nil, text))
	}
	if b.tag != "" {
		text = strings.TrimLeft(text, "\n")
	}
	if text == "" {
		return
	}
	l.switchToBlock(b)
	l.shownReasoning = l.shownReasoning || b.isReasoning()
	g := p.newBuffer()
	for piece := range strings.Lines(text) {
		piece, ended := strings.CutSuffix(piece, "\n")
		g.addToLiveLine(b, piece, ended)
		l.open = b
		if ended {
			l.open = nil
		}
	}
	g.flush()
}

// switchToBlock makes b the block that was shown last. If another block was, it ends the line of that
// one, and reasoning gets its tag again. Text blocks are joined; empty lines separate reasoning from
// other blocks.
func (l *Live) switchToBlock(b *liveBlock) {
	last := l.last
	l.last = b
	if last != nil && last != b && b.isReasoning() {
		b.tag = reasoningTag
	}
	if last == nil || last == b || last.kind == b.kind && b.kind == content.KindAssistant {
		return
	}
	l.endLine()
	if (last.isReasoning() || b.isReasoning()) && l.reasoning != nil {
		l.reasoning.write("\n")
	}
}

// endLine ends a line that is open.
func (l *Live) endLine() {
	if l.open == nil {
		return
	}
	g := l.printerIfShown(l.open).newBuffer()
	g.addToLiveLine(l.open, "", true)
	g.flush()
	l.open = nil
}

// addToLiveLine adds text to the current line of a block that is streamed. lineEnds means that the
// line ends after the text.
func (g *lineBuffer) addToLiveLine(b *liveBlock, text string, lineEnds bool) {
	if !b.isReasoning() {
		g.add(text)
		if lineEnds {
			g.add("\n")
		}
		return
	}
	g.add(colorize(g.styles.tag, b.tag), colorize(g.styles.reasoning, text))
	if g.styles.shaded && g.o.Width > 0 {
		b.line.WriteString(b.tag + text)
	}
	b.tag = ""
	if !lineEnds {
		return
	}
	if g.styles.shaded && g.o.Width > 0 {
		g.add(colorize(g.styles.reasoning, strings.Repeat(" ", freeCellsInLastRow(expandTabs(b.line.String()), g.o.Width))))
		b.line.Reset()
	}
	g.add("\n")
}

// blockDone shows the part of a complete block that its deltas did not have.
func (l *Live) blockDone(e llm.Event) {
	b := l.ensureBlock(e.Index, e.Block.Kind())
	if b.done {
		return // the same block again, with its seal
	}
	switch block := e.Block.(type) {
	case content.Text, content.Reasoning:
		if rest, more := strings.CutPrefix(block.String(), b.received.String()); more && block.Kind() == b.kind {
			l.writeDelta(b, rest)
		}
		l.flushPending(b)
		if block.Form().Seal.Type == content.Redacted {
			l.writeSummaryLine(b, reasoningTag, block)
		}
	case content.ToolCall:
		l.writeSummaryLine(b, callTag, block)
	case content.ToolResult:
		l.writeSummaryLine(b, resultTag, block)
	case content.Native:
		l.writeSummaryLine(b, "[native] ", block)
	default:
		l.writeSummaryLine(b, "", block)
	}
	b.done = true
}

// writeSummaryLine writes a tag and the summary of a block on a line of its own.
func (l *Live) writeSummaryLine(b *liveBlock, tag string, block content.Block) {
	p := l.printerIfShown(b)
	if p == nil {
		return
	}
	l.switchToBlock(b)
	l.endLine()
	g := p.newBuffer()
	summary := Summary(block, g.cellsLeft(tag))
	if b.isReasoning() {
		g.reasoningLine("", tag, summary)
	} else {
		g.line(colorize(g.styles.tool, tag), summary)
	}
	g.flush()
}
