package format

import (
	"strings"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/llm"
)

// Live shows an answer as it comes. Text, thoughts and calls are shown in the
// order they come in; a character that is cut waits for its rest. It is for one
// answer and one goroutine.
type Live struct {
	text, thoughts *Printer
	blocks         map[int]*shown
	open           *shown // whose last line is not ended; nil: none
	before         *shown // what was shown last
	thought        bool   // words of a thought were shown
}

// shown is a block as far as it came.
type shown struct {
	kind   content.Kind
	came   strings.Builder // its words
	held   string          // the end of them that waits for its rest
	escape escaper
	line   strings.Builder // its last line, where that is shaded
	tag    string          // to be shown before its words
	done   bool
}

// NewLive shows text and calls on one printer and thoughts on another, which may
// be the same; nil: thoughts are not shown.
func NewLive(text, thoughts *Printer) *Live {
	return &Live{text: text, thoughts: thoughts, blocks: map[int]*shown{}}
}

// Event shows what an event brings. What was shown stays: where a whole block
// says other words than its deltas did, only what it adds to them is shown.
func (l *Live) Event(e llm.Event) {
	switch e.Type {
	case llm.TextDelta:
		l.more(l.block(e.Index, content.KindAssistant), e.Text)
	case llm.ReasoningDelta:
		l.more(l.block(e.Index, content.KindReasoning), e.Text)
	case llm.BlockDone:
		l.done(e)
	}
}

// Close ends the last line. When thoughts were counted and none could be read,
// it says so.
func (l *Live) Close(u content.Usage, provider string) {
	if l.open != nil {
		l.flush(l.open)
	}
	l.end()
	if l.thoughts == nil || l.thought || u.Reasoning == 0 {
		return
	}
	said := count(u.Reasoning) + " tokens, not disclosed"
	if provider != "" {
		said += " by " + Line(provider)
	}
	g := l.thoughts.page()
	g.shade("", thoughtTag, said)
	g.end()
}

func (l *Live) block(index int, kind content.Kind) *shown {
	b := l.blocks[index]
	if b == nil {
		b = &shown{kind: kind}
		if kind == content.KindReasoning {
			b.tag = thoughtTag
		}
		l.blocks[index] = b
	}
	return b
}

func (b *shown) isThought() bool { return b.kind == content.KindReasoning }

// printer is where a block is shown; nil: nowhere.
func (l *Live) printer(b *shown) *Printer {
	if b.isThought() {
		return l.thoughts
	}
	return l.text
}

// more shows the next words of a block.
func (l *Live) more(b *shown, words string) {
	p := l.printer(b)
	if p == nil || b.done {
		return
	}
	b.came.WriteString(words)
	words = b.held + words
	n := whole(words)
	b.held = words[n:]
	l.show(b, words[:n])
}

// flush shows what will not get its rest any more.
func (l *Live) flush(b *shown) {
	held := b.held
	b.held = ""
	if l.printer(b) != nil {
		l.show(b, held)
	}
}

// show writes words that are whole.
func (l *Live) show(b *shown, words string) {
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
	l.turnTo(b)
	l.thought = l.thought || b.isThought()
	g := p.page()
	for piece := range strings.Lines(words) {
		piece, ended := strings.CutSuffix(piece, "\n")
		g.piece(b, piece, ended)
		l.open = b
		if ended {
			l.open = nil
		}
	}
	g.end()
}

// turnTo ends the line of another block. Blocks of text are one text; thoughts
// have an empty line around them.
func (l *Live) turnTo(b *shown) {
	last := l.before
	l.before = b
	if last != nil && last != b && b.isThought() {
		b.tag = thoughtTag
	}
	if last == nil || last == b || last.kind == b.kind && b.kind == content.KindAssistant {
		return
	}
	l.end()
	if (last.isThought() || b.isThought()) && l.thoughts != nil {
		l.thoughts.write("\n")
	}
}

// end ends a line that is open.
func (l *Live) end() {
	if l.open == nil {
		return
	}
	g := l.printer(l.open).page()
	g.piece(l.open, "", true)
	g.end()
	l.open = nil
}

// piece adds a piece of a line.
func (g *page) piece(b *shown, words string, ended bool) {
	if !b.isThought() {
		g.add(words)
		if ended {
			g.add("\n")
		}
		return
	}
	g.add(paint(g.ink.tag, b.tag), paint(g.ink.thought, words))
	if g.ink.shaded && g.o.Width > 0 {
		b.line.WriteString(b.tag + words)
	}
	b.tag = ""
	if !ended {
		return
	}
	if g.ink.shaded && g.o.Width > 0 {
		g.add(paint(g.ink.thought, strings.Repeat(" ", rest(expand(b.line.String()), g.o.Width))))
		b.line.Reset()
	}
	g.add("\n")
}

// done shows what a whole block says beyond what its deltas said.
func (l *Live) done(e llm.Event) {
	b := l.block(e.Index, e.Block.Kind())
	if b.done {
		return // a seal came late
	}
	switch block := e.Block.(type) {
	case content.Text, content.Reasoning:
		if rest, more := strings.CutPrefix(block.String(), b.came.String()); more && block.Kind() == b.kind {
			l.more(b, rest)
		}
		l.flush(b)
		if block.Form().Seal.Type == content.Redacted {
			l.note(b, thoughtTag, block)
		}
	case content.ToolCall:
		l.note(b, callTag, block)
	case content.ToolResult:
		l.note(b, resultTag, block)
	case content.Native:
		l.note(b, "[native] ", block)
	default:
		l.note(b, "", block)
	}
	b.done = true
}

// note shows a block in one line.
func (l *Live) note(b *shown, tag string, block content.Block) {
	p := l.printer(b)
	if p == nil {
		return
	}
	l.turnTo(b)
	l.end()
	g := p.page()
	words := Summary(block, g.after(tag))
	if b.isThought() {
		g.shade("", tag, words)
	} else {
		g.line(paint(g.ink.tool, tag), words)
	}
	g.end()
}
