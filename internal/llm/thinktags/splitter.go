package thinktags

import (
	"slices"
	"strings"
)

// How the splitter works.
//
// It is a state machine over the bytes of a content, whose modes are the constants of
// tagMode: before an opening tag, after one, in reasoning, in text, and in what may be a
// block on lines of its own. A mode reads on until a tag ends it. Text whose kind is not
// known yet is held back; its offsets count from the start of the content, so that the
// cuts between chunks do not matter. Whether a tag is in code is decided by codeScanner,
// in code.go, at the end of a line or of a fenced block; a tag that has to wait is the
// place up to which text can be emitted (decidedUpTo).

// Piece is a part of a content that was split at think tags. The texts of all
// pieces of a content, put together, are the content, byte for byte.
type Piece struct {
	Kind Kind
	Text string
}

// Kind tells what a [Piece] is.
type Kind uint8

// The kinds of pieces. White space next to a tag is part of the tag's piece.
const (
	// Text is more of the answer.
	Text Kind = 1 + iota
	// Open is an opening tag: a block of reasoning begins.
	Open
	// Reasoning is more of the block that the last Open began.
	Reasoning
	// Close is the closing tag of the block. A block that the content breaks
	// off in has none.
	Close
	// Reclassify is a closing tag without an opening one: all the text before
	// it, which was given out as Text, is one block of reasoning. It comes at
	// most once, and before any other kind than Text.
	Reclassify
)

var pieceNames = [...]string{"", "text", "open", "reasoning", "close", "reclassify"}

// String returns the name of the kind.
func (k Kind) String() string {
	if int(k) < len(pieceNames) {
		return pieceNames[k]
	}
	return "unknown"
}

// Splitter takes the reasoning out of a content that has it between think tags: <think>,
// <thinking>, <thought> or <antthinking>, in any case.
type Splitter struct {
	// NoImplicit leaves closing tags without opening ones alone. Set it when the
	// reasoning comes in a field of its own; it counts from the next Write on.
	NoImplicit bool

	mode   tagMode
	held   []byte // text of earlier chunks that was not emitted yet
	offset int    // offset of the chunk, or of the rest of it, in the content
	out    []Piece

	opens, closes  []string // tags that count at the start, and alone on a line
	seen           bool     // a tag was found: no implicit opening any more
	allowsImplicit bool     // textMode: a closing tag alone on its line ends reasoning
	heldTag        Kind     // the kind of the tag that held begins with in beforeTagMode, or 0

	match         tagMatch // the tags of this mode
	tag           span     // the tag that has begun; at the end of a mode, the tag that ends it
	tagIsFirst    bool     // it is the first thing on its line
	trailingWhite int      // white space at the end of the chunk before
	closingAlone  span     // textMode: a closing tag with nothing else on its line so far
	code          codeScanner
	block         lineBlock
}

// lineBlock is what may be a block on lines of its own. It is held back from its opening
// tag on.
type lineBlock struct {
	closing   string   // its closing tag
	openLen   int      // length of the opening tag
	lineStart int      // where the last line begins in the held text
	multiline bool     // the opening tag is alone on its line
	notFound  []string // closing tags that no later line has
}

type tagMode uint8

const (
	startMode        tagMode = iota // nothing was read
	beforeTagMode                   // where an opening tag counts
	afterOpenTagMode                // in the white space after an opening tag
	reasoningMode                   // in a block
	textMode                        // in text
	blockLinesMode                  // in what may be a block with lines of its own
)

// span is a tag with the white space before it: content[start:end].
type span struct{ start, end int }

func (s span) found() bool { return s.end > 0 }

// Write takes the next chunk of the content and returns the pieces that are known now,
// perhaps none. The slice is valid until the next call; the texts stay valid.
func (s *Splitter) Write(chunk string) []Piece {
	s.out = s.out[:0]
	s.start()
	if s.NoImplicit && s.allowsImplicit {
		if s.mode == textMode {
			_, chunk = s.cut(chunk, s.offset-len(s.held))
			s.match.take()
		}
		s.disallowImplicit()
	}
	s.feed(chunk)
	return s.out
}

// Close ends the content and returns what was held back, as Write does. The Splitter is
// then ready for another content.
func (s *Splitter) Close() []Piece {
	s.out = s.out[:0]
	s.start()
	for {
		switch {
		case s.mode == blockLinesMode:
			s.endBlockAtEOF()
			continue
		case s.endLastLine():
			s.feed(s.leaveMode(""))
			continue
		}
		break
	}
	s.emit(s.heldKind(), string(s.held))
	*s = Splitter{NoImplicit: s.NoImplicit, out: s.out, held: s.held[:0]}
	return s.out
}

// start sets the tags that count at the start of a content.
func (s *Splitter) start() {
	if s.mode != startMode {
		return
	}
	s.mode = beforeTagMode
	for _, name := range []string{"think", "thinking", "thought", "antthinking"} {
		s.opens = append(s.opens, "<"+name+">")
		s.closes = append(s.closes, "</"+name+">")
	}
	s.match.want = s.opens
}

// feed passes a chunk through the modes. Each mode returns the rest, which is for the next
// mode.
func (s *Splitter) feed(in string) {
	for in != "" {
		switch s.mode {
		case beforeTagMode:
			in = s.readBeforeTag(in)
		case afterOpenTagMode:
			in = s.readAfterOpenTag(in)
		case blockLinesMode:
			in = s.readBlockLine(in)
		default:
			in = s.scanTextOrReasoning(in)
		}
	}
}

// heldKind returns the kind that the held text has when nothing follows.
func (s *Splitter) heldKind() Kind {
	switch {
	case s.mode == beforeTagMode && s.heldTag != 0:
		return s.heldTag
	case s.mode == afterOpenTagMode:
		return Open
	case s.mode == reasoningMode:
		return Reasoning
	default:
		return Text
	}
}

func (s *Splitter) emit(kind Kind, text string) {
	if text != "" {
		s.out = append(s.out, Piece{kind, text})
	}
}

// cut splits the text that was not emitted, held and in, at an offset of the content.
// Afterwards nothing is held and rest is the chunk. Held text is copied; the chunk is
// copied only when rest begins in the held text.
func (s *Splitter) cut(in string, contentOffset int) (head, rest string) {
	n := contentOffset - s.offset
	s.offset = contentOffset
	switch {
	case len(s.held) == 0:
		return in[:n], in[n:]
	case n >= 0:
		head, rest = string(append(s.held, in[:n]...)), in[n:]
	default:
		n += len(s.held)
		head, rest = string(s.held[:n]), string(append(s.held[n:], in...))
	}
	s.held = s.held[:0]
	return head, rest
}

// emitBefore emits the text, held and in, before an offset of the content and returns the rest.
func (s *Splitter) emitBefore(kind Kind, in string, contentOffset int) (rest string) {
	head, rest := s.cut(in, contentOffset)
	s.emit(kind, head)
	return rest
}

// holdFrom emits the text, held and in, before an offset of the content and holds the rest.
func (s *Splitter) holdFrom(in string, contentOffset int) {
	if contentOffset > s.offset-len(s.held) {
		in = s.emitBefore(s.heldKind(), in, contentOffset)
	}
	s.held = append(s.held, in...)
	s.offset += len(in)
}

// readBeforeTag looks for an opening tag after white space.
func (s *Splitter) readBeforeTag(in string) string {
	i := 0
	if !s.match.begun() {
		i = len(in) - len(strings.TrimLeft(in, whiteSpace))
		if i < len(in) && s.heldTag != 0 {
			in = s.emitBefore(s.heldTag, in, s.offset+i)
			s.heldTag, i = 0, 0
		}
	}
	for ; i < len(in); i++ {
		switch s.match.add(in[i]) {
		case matchWhole:
			s.match.want = []string{"</" + strings.TrimPrefix(s.match.take(), "<")}
			s.seen, s.mode = true, afterOpenTagMode
			s.holdFrom(in[:i+1], 0)
			return in[i+1:]
		case matchNone:
			_, in = s.cut(in, s.offset-len(s.held))
			if s.allowsImplicit = !s.seen && !s.NoImplicit; s.allowsImplicit {
				s.match.want = slices.Concat(s.opens, s.closes)
			}
			s.enter(textMode)
			return in
		case matchPart:
		}
	}
	s.holdFrom(in, 0)
	return ""
}

// readAfterOpenTag reads the white space after an opening tag.
func (s *Splitter) readAfterOpenTag(in string) string {
	i := len(in) - len(strings.TrimLeft(in, whiteSpace))
	if i == len(in) {
		s.holdFrom(in, 0)
		return ""
	}
	in = s.emitBefore(Open, in, s.offset+i)
	s.enter(reasoningMode)
	return in
}

// enter begins a mode that reads lines.
func (s *Splitter) enter(m tagMode) {
	s.mode, s.trailingWhite, s.closingAlone = m, 0, span{}
	s.code.reset()
}

// scanTextOrReasoning reads text or reasoning line by line, up to a tag that ends the mode, and
// returns the rest.
func (s *Splitter) scanTextOrReasoning(in string) string {
	for i := 0; i < len(in); i++ {
		if !s.match.begun() && !s.closingAlone.found() && s.code.ignoresAllButBackticks() {
			for i < len(in) && !lineSpecial[in[i]] {
				i++
			}
			if i == len(in) {
				break
			}
		}
		c := in[i]
		if s.match.begun() {
			switch s.match.add(c) {
			case matchPart:
				continue
			case matchWhole:
				if s.tag.end = s.offset + i + 1; s.finishTag() {
					return s.leaveMode(in)
				}
				continue
			case matchNone:
			}
		}
		if s.closingAlone.found() && !isWhite(c) {
			s.closingAlone = span{}
		}
		switch {
		case c == '\n':
			if s.endLine() {
				return s.leaveMode(in)
			}
			continue
		case c == '<' && (s.mode == reasoningMode || s.code.fence == 0 && s.code.run == 0):
			s.match.add(c)
			s.tag.start = s.offset + i
			if s.mode == reasoningMode || s.allowsImplicit {
				s.tag.start -= s.trailingWhiteLen(in[:i])
			}
			s.tagIsFirst = s.code.blank
		}
		s.code.step(c)
	}
	s.holdFrom(in, s.decidedUpTo(in))
	s.trailingWhite = s.trailingWhiteLen(in)
	return ""
}

// finishTag takes the tag that was just read and reports whether it ends the mode. In text a
// closing tag waits for the end of its line, and an opening tag, even if the text only talks
// about it, shows that no closing tag lacks one. In reasoning a tag that may be in code waits.
func (s *Splitter) finishTag() (endsMode bool) {
	tag := s.match.take()
	switch {
	case s.mode == reasoningMode:
		return !s.code.deferTagInCode(s.tag)
	case !strings.HasPrefix(tag, "</"):
		s.disallowImplicit()
		s.tag.start = s.tag.end - len(tag)
		s.block.closing, s.block.openLen = "</"+tag[1:], len(tag)
		return s.tagIsFirst && s.code.indent < codeIndent
	case s.tagIsFirst:
		s.closingAlone = s.tag
	}
	return false
}

// disallowImplicit makes a closing tag without an opening one text.
func (s *Splitter) disallowImplicit() {
	s.allowsImplicit, s.closingAlone, s.match.want = false, span{}, s.opens
}

// endLine ends the line and reports whether it has a tag that ends the mode.
func (s *Splitter) endLine() (endsMode bool) {
	tag, found := s.code.endLine()
	if s.mode == textMode {
		tag, found = s.closingAlone, s.closingAlone.found()
	}
	if found {
		s.tag = tag
	}
	return found
}

// endLastLine is endLine for the end of the content, where an unclosed fence is not code.
func (s *Splitter) endLastLine() (endsMode bool) {
	if s.mode != reasoningMode && s.mode != textMode {
		return false
	}
	s.match.take()
	if s.endLine() {
		return true
	}
	s.tag = s.code.recordUnclosedFence()
	return s.tag.found()
}

// leaveMode ends the mode at its tag and returns the text after it.
func (s *Splitter) leaveMode(in string) string {
	n := s.tag.end - s.tag.start
	if s.mode == textMode && !s.closingAlone.found() {
		in = s.emitBefore(Text, in, s.tag.start)
		s.holdFrom(in[:n], 0)
		s.mode, s.block.lineStart, s.block.multiline = blockLinesMode, n, false
		return in[n:]
	}
	in = s.emitBefore(s.heldKind(), in, s.tag.start)
	kind := Close
	if s.mode == textMode {
		kind = Reclassify
	}
	s.enterBeforeTag(kind)
	s.holdFrom(in[:n], 0)
	return in[n:]
}

// enterBeforeTag enters beforeTagMode after a closing tag, which the held text begins with or is
// about to; heldTag is the kind of its piece.
func (s *Splitter) enterBeforeTag(heldTag Kind) {
	s.mode, s.heldTag, s.seen = beforeTagMode, heldTag, true
	s.disallowImplicit()
}

// readBlockLine reads a line, or a part of one, of what may be a block on lines of its
// own.
func (s *Splitter) readBlockLine(in string) string {
	n := strings.IndexByte(in, '\n') + 1
	if n == 0 {
		s.holdFrom(in, 0)
		return ""
	}
	s.holdFrom(in[:n], 0)
	s.endBlockLine()
	return in[n:]
}

// endBlockLine decides at the end of a line whether the held text is a block with lines of its
// own, is none, or may still be one.
func (s *Splitter) endBlockLine() {
	b := &s.block
	text := strings.Map(lowerASCII, strings.Trim(string(s.held[b.lineStart:]), whiteSpace))
	if !b.multiline && (text != "" || slices.Contains(b.notFound, b.closing)) {
		inner, closes := strings.CutSuffix(text, b.closing)
		if closes && !strings.Contains(inner, b.closing) {
			s.emitHeldBlock()
		} else {
			s.rejectHeldBlock()
		}
		return
	}
	if b.multiline && text == b.closing {
		s.emitHeldBlock()
		return
	}
	b.multiline, b.lineStart = true, len(s.held)
}

// endBlockAtEOF is endBlockLine for the end of the content. A closing tag that is missing
// is missing for later blocks too.
func (s *Splitter) endBlockAtEOF() {
	s.endBlockLine()
	if s.mode == blockLinesMode {
		s.block.notFound = append(s.block.notFound, s.block.closing)
		s.rejectHeldBlock()
	}
}

// emitHeldBlock emits the held block. White space after its closing tag may follow.
func (s *Splitter) emitHeldBlock() {
	held := string(s.held)
	end := len(strings.TrimRight(held, whiteSpace)) - len(s.block.closing)
	inner := held[s.block.openLen:end]
	from := s.block.openLen + len(inner) - len(strings.TrimLeft(inner, whiteSpace))
	to := max(from, s.block.openLen+len(strings.TrimRight(inner, whiteSpace)))
	s.emit(Open, held[:from])
	s.emit(Reasoning, held[from:to])
	s.held = append(s.held[:0], held[to:]...)
	s.enterBeforeTag(Close)
}

// rejectHeldBlock turns the held text into text, which is then read as such.
func (s *Splitter) rejectHeldBlock() {
	held := string(s.held)
	s.held, s.offset = s.held[:0], s.offset-len(held)+s.block.openLen
	s.emit(Text, held[:s.block.openLen])
	s.mode, s.trailingWhite = textMode, 0
	s.feed(held[s.block.openLen:])
}

// decidedUpTo returns the offset up to which nothing can become a tag or be next to one.
func (s *Splitter) decidedUpTo(in string) (contentOffset int) {
	switch {
	case s.code.fencedTag.found():
		return s.code.fencedTag.start
	case len(s.code.tags) > 0:
		return s.code.tags[0].start
	case s.closingAlone.found():
		return s.closingAlone.start
	case s.match.begun() && (s.mode == reasoningMode || s.tagIsFirst):
		return s.tag.start
	case s.mode == reasoningMode || s.allowsImplicit:
		return s.offset + len(in) - s.trailingWhiteLen(in)
	}
	return s.offset + len(in)
}

// trailingWhiteLen returns how many bytes of white space end the content so far, of which in is
// the last part.
func (s *Splitter) trailingWhiteLen(in string) int {
	n := len(in) - len(strings.TrimRight(in, whiteSpace))
	if n == len(in) {
		n += s.trailingWhite
	}
	return n
}
