package thinktags

import (
	"slices"
	"strings"
)

// Piece is a part of a content that was split at think tags. The texts of all
// pieces of a content, put together, are the content, byte for byte.
type Piece struct {
	Kind Kind
	Text string
}

// PieceKind tells what a [Piece] is.
type Kind uint8

// The kinds of pieces. White space next to a tag is part of the tag's piece.
const (
	// PieceText is more of the answer.
	Text Kind = 1 + iota
	// PieceOpen is an opening tag: a block of reasoning begins.
	Open
	// PieceReasoning is more of the block that the last PieceOpen began.
	Reasoning
	// PieceClose is the closing tag of the block. A block that the content breaks
	// off in has none.
	Close
	// PieceReclassify is a closing tag without an opening one: all the text before
	// it, which was given out as PieceText, is one block of reasoning. It comes at
	// most once, and before any other kind than PieceText.
	Reclassify
)

var pieceNames = [...]string{"", "text", "open", "reasoning", "close", "reclassify"}

// String is the name of the kind.
func (k Kind) String() string {
	if int(k) < len(pieceNames) {
		return pieceNames[k]
	}
	return "unknown"
}

// TagSplitter takes the reasoning out of a content that has it between think tags:
// <think>, <thinking>, <thought> or <antthinking>, in any case.
//
// An opening tag counts at the start of the content and right after a closed
// block. The closing tag has the name of the opening one and does not lie in code: not
// between backticks on one line, not in a fenced block. Code that is never closed
// hides no tag, and more than 31 backticks or tildes in a row begin no code. Without a
// closing tag all that follows is reasoning.
//
// After the first words of the answer prose about tags is left alone: a block counts
// there only when it has its lines for itself. Either it is one line, or the opening tag
// is alone on a line and the closing one alone on a later line. It does not lie in a
// fenced block or in code that is indented, and without its closing tag it is text.
//
// Some prompts end in the opening tag, so that the content has only the closing
// one. Where no opening tag was seen, a closing tag that is alone on its line and
// in no fenced block ends such reasoning: see [PieceReclassify].
//
// Give the content to Write in chunks of any size and call Close at its end.
// Pieces come as early as they can: held back is what may still be a tag, white
// space that may be next to one, what comes after a closing tag until it is
// known whether that lies in code, and what may be a block in the middle of the answer. How the chunks are cut changes nothing but how
// texts are cut into pieces. The zero value is ready for use; it is not for use by
// several goroutines at once.
type Splitter struct {
	// NoImplicit leaves closing tags without opening ones alone. Set it when the
	// reasoning comes in a field of its own; it counts from the next Write on.
	NoImplicit bool

	mode tagMode
	hold []byte // what was not given out yet of the chunks before this one
	off  int    // offset in the content of the chunk, or of what is left of it
	out  []Piece

	opens, closes []string // tags that count at the start, and alone on a line
	seen          bool     // a tag was found: no implicit opening any more
	implicit      bool     // textMode: a closing tag alone on its line ends reasoning
	ending        Kind     // of the tag that hold begins with in seekMode, or 0

	match tagMatch // the tags of this mode
	tag   span     // the one that has begun; when a mode ends: the one that ends it
	first bool     // it is the first thing on its line
	white int      // white space at the end of the chunk before
	alone span     // textMode: a closing tag with nothing else on its line so far
	code  codeScan
	lines ownLines
}

// ownLines is what may be a block that has its lines for itself. It is held back, from
// its opening tag on.
type ownLines struct {
	closing string   // its closing tag
	head    int      // length of the opening tag
	line    int      // where the last line begins in what is held
	several bool     // the opening tag is alone on its line
	missing []string // closing tags that no later line has
}

type tagMode uint8

const (
	startMode  tagMode = iota // nothing was read
	seekMode                  // where an opening tag counts
	openMode                  // in the white space after an opening tag
	reasonMode                // in a block
	textMode                  // in text
	linesMode                 // in what may be a block with lines of its own
)

// span is a tag with the white space before it: content[start:end].
type span struct{ start, end int }

func (s span) found() bool { return s.end > 0 }

// Write takes more of the content and returns what is known now, perhaps nothing.
// The slice is valid until the next call, the texts for ever.
func (s *Splitter) Write(chunk string) []Piece {
	s.out = s.out[:0]
	s.start()
	if s.NoImplicit && s.implicit {
		if s.mode == textMode {
			_, chunk = s.cut(chunk, s.off-len(s.hold))
			s.match.take()
		}
		s.noImplicit()
	}
	s.feed(chunk)
	return s.out
}

// Close ends the content and returns what was held back, as Write does. The
// splitter is then ready for another content.
func (s *Splitter) Close() []Piece {
	s.out = s.out[:0]
	s.start()
	for {
		switch {
		case s.mode == linesMode:
			s.endLines()
			continue
		case s.atEnd():
			s.feed(s.leave(""))
			continue
		}
		break
	}
	s.emit(s.kind(), string(s.hold))
	*s = Splitter{NoImplicit: s.NoImplicit, out: s.out, hold: s.hold[:0]}
	return s.out
}

// start sets up the tags at the start of a content.
func (s *Splitter) start() {
	if s.mode != startMode {
		return
	}
	s.mode = seekMode
	for _, name := range []string{"think", "thinking", "thought", "antthinking"} {
		s.opens = append(s.opens, "<"+name+">")
		s.closes = append(s.closes, "</"+name+">")
	}
	s.match.want = s.opens
}

// feed takes a chunk through the modes. Each mode returns what it leaves to the
// next one.
func (s *Splitter) feed(in string) {
	for in != "" {
		switch s.mode {
		case seekMode:
			in = s.seek(in)
		case openMode:
			in = s.open(in)
		case linesMode:
			in = s.takeLine(in)
		default:
			in = s.scan(in)
		}
	}
}

// kind is what held text is when nothing follows.
func (s *Splitter) kind() Kind {
	switch {
	case s.mode == seekMode && s.ending != 0:
		return s.ending
	case s.mode == openMode:
		return Open
	case s.mode == reasonMode:
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

// cut divides what was not given out, held and in the chunk, at offset to. Only
// rest is left afterwards, as the chunk. What was held is copied, the chunk only
// when rest begins in what was held.
func (s *Splitter) cut(in string, to int) (head, rest string) {
	n := to - s.off
	s.off = to
	switch {
	case len(s.hold) == 0:
		return in[:n], in[n:]
	case n >= 0:
		head, rest = string(append(s.hold, in[:n]...)), in[n:]
	default:
		n += len(s.hold)
		head, rest = string(s.hold[:n]), string(append(s.hold[n:], in...))
	}
	s.hold = s.hold[:0]
	return head, rest
}

// give gives out what lies before offset to and returns the rest.
func (s *Splitter) give(kind Kind, in string, to int) string {
	head, rest := s.cut(in, to)
	s.emit(kind, head)
	return rest
}

// keep gives out what lies before offset from and holds the rest back.
func (s *Splitter) keep(in string, from int) {
	if from > s.off-len(s.hold) {
		in = s.give(s.kind(), in, from)
	}
	s.hold = append(s.hold, in...)
	s.off += len(in)
}

// seek looks for an opening tag, after white space.
func (s *Splitter) seek(in string) string {
	i := 0
	if !s.match.begun() {
		i = len(in) - len(strings.TrimLeft(in, whiteSpace))
		if i < len(in) && s.ending != 0 {
			in = s.give(s.ending, in, s.off+i)
			s.ending, i = 0, 0
		}
	}
	for ; i < len(in); i++ {
		switch s.match.add(in[i]) {
		case matchWhole:
			s.match.want = []string{"</" + strings.TrimPrefix(s.match.take(), "<")}
			s.seen, s.mode = true, openMode
			s.keep(in[:i+1], 0)
			return in[i+1:]
		case matchNone:
			_, in = s.cut(in, s.off-len(s.hold))
			if s.implicit = !s.seen && !s.NoImplicit; s.implicit {
				s.match.want = slices.Concat(s.opens, s.closes)
			}
			s.begin(textMode)
			return in
		case matchPart:
		}
	}
	s.keep(in, 0)
	return ""
}

// open takes the white space after an opening tag.
func (s *Splitter) open(in string) string {
	i := len(in) - len(strings.TrimLeft(in, whiteSpace))
	if i == len(in) {
		s.keep(in, 0)
		return ""
	}
	in = s.give(Open, in, s.off+i)
	s.begin(reasonMode)
	return in
}

// begin enters one of the modes that look at lines.
func (s *Splitter) begin(m tagMode) {
	s.mode, s.white, s.alone = m, 0, span{}
	s.code.reset()
}

// scan reads text or reasoning line by line, up to a tag that ends it.
func (s *Splitter) scan(in string) string {
	for i := 0; i < len(in); i++ {
		if !s.match.begun() && !s.alone.found() && s.code.inBody() {
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
				if s.tag.end = s.off + i + 1; s.ends() {
					return s.leave(in)
				}
				continue
			case matchNone:
			}
		}
		if s.alone.found() && !isWhite(c) {
			s.alone = span{}
		}
		switch {
		case c == '\n':
			if s.endLine() {
				return s.leave(in)
			}
			continue
		case c == '<' && (s.mode == reasonMode || s.code.fence == 0 && s.code.run == 0):
			s.match.add(c)
			s.tag.start = s.off + i
			if s.mode == reasonMode || s.implicit {
				s.tag.start -= s.whiteBefore(in[:i])
			}
			s.first = s.code.blank
		}
		s.code.step(c)
	}
	s.keep(in, s.known(in))
	s.white = s.whiteBefore(in)
	return ""
}

// ends reports whether the tag that was just read ends the mode. In text a closing
// tag has to wait for the end of its line, and an opening one, be it only talked
// about, shows that no closing tag is without one.
func (s *Splitter) ends() bool {
	tag := s.match.take()
	switch {
	case s.mode == reasonMode:
		return !s.code.hides(s.tag)
	case !strings.HasPrefix(tag, "</"):
		s.noImplicit()
		s.tag.start = s.tag.end - len(tag)
		s.lines.closing, s.lines.head = "</"+tag[1:], len(tag)
		return s.first && s.code.indent < codeIndent
	case s.first:
		s.alone = s.tag
	}
	return false
}

// noImplicit makes a closing tag without an opening one text.
func (s *Splitter) noImplicit() {
	s.implicit, s.alone, s.match.want = false, span{}, s.opens
}

// endLine tells whether the line that ends here has a tag that ends the mode.
func (s *Splitter) endLine() bool {
	tag, ok := s.code.endLine()
	if s.mode == textMode {
		tag, ok = s.alone, s.alone.found()
	}
	if ok {
		s.tag = tag
	}
	return ok
}

// atEnd is endLine for the end of the content, where unclosed fences are none.
func (s *Splitter) atEnd() bool {
	if s.mode != reasonMode && s.mode != textMode {
		return false
	}
	s.match.take()
	if s.endLine() {
		return true
	}
	s.tag = s.code.endFence()
	return s.tag.found()
}

// leave ends the mode at its tag and returns what comes after that.
func (s *Splitter) leave(in string) string {
	n := s.tag.end - s.tag.start
	if s.mode == textMode && !s.alone.found() {
		in = s.give(Text, in, s.tag.start)
		s.keep(in[:n], 0)
		s.mode, s.lines.line, s.lines.several = linesMode, n, false
		return in[n:]
	}
	in = s.give(s.kind(), in, s.tag.start)
	kind := Close
	if s.mode == textMode {
		kind = Reclassify
	}
	s.closed(kind)
	s.keep(in[:n], 0)
	return in[n:]
}

// closed enters the mode after a closing tag.
func (s *Splitter) closed(kind Kind) {
	s.mode, s.ending, s.seen = seekMode, kind, true
	s.noImplicit()
}

// takeLine takes a line of what may be a block with lines of its own, or a part of one.
func (s *Splitter) takeLine(in string) string {
	n := strings.IndexByte(in, '\n') + 1
	if n == 0 {
		s.keep(in, 0)
		return ""
	}
	s.keep(in[:n], 0)
	return s.endLineOf(in[n:])
}

// endLineOf decides at the end of a line, and returns what comes next.
func (s *Splitter) endLineOf(in string) string {
	b := &s.lines
	text := strings.Map(lower, strings.Trim(string(s.hold[b.line:]), whiteSpace))
	switch {
	case b.several && text == b.closing:
		return s.ownBlock(in)
	case b.several:
	case text == "" && !slices.Contains(b.missing, b.closing):
	default:
		if inner, closes := strings.CutSuffix(text, b.closing); closes && !strings.Contains(inner, b.closing) {
			return s.ownBlock(in)
		}
		return s.noBlock(in)
	}
	b.several, b.line = true, len(s.hold)
	return in
}

// endLines is endLineOf at the end of the content. A closing tag that is not there will
// be missed by no later block either.
func (s *Splitter) endLines() {
	s.endLineOf("")
	if s.mode == linesMode {
		s.lines.missing = append(s.lines.missing, s.lines.closing)
		s.noBlock("")
	}
}

// ownBlock gives out the block that is held. Its closing tag may go on.
func (s *Splitter) ownBlock(in string) string {
	held := string(s.hold)
	end := len(strings.TrimRight(held, whiteSpace)) - len(s.lines.closing)
	inner := held[s.lines.head:end]
	from := s.lines.head + len(inner) - len(strings.TrimLeft(inner, whiteSpace))
	to := max(from, s.lines.head+len(strings.TrimRight(inner, whiteSpace)))
	s.emit(Open, held[:from])
	s.emit(Reasoning, held[from:to])
	s.hold = append(s.hold[:0], held[to:]...)
	s.closed(Close)
	return in
}

// noBlock makes text of what is held, which is then read as such.
func (s *Splitter) noBlock(in string) string {
	held := string(s.hold)
	s.hold, s.off = s.hold[:0], s.off-len(held)+s.lines.head
	s.emit(Text, held[:s.lines.head])
	s.mode, s.white = textMode, 0
	s.feed(held[s.lines.head:])
	return in
}

// known is the offset up to which nothing can become a tag or be next to one.
func (s *Splitter) known(in string) int {
	switch {
	case s.code.caught.found():
		return s.code.caught.start
	case len(s.code.tags) > 0:
		return s.code.tags[0].start
	case s.alone.found():
		return s.alone.start
	case s.match.begun() && (s.mode == reasonMode || s.first):
		return s.tag.start
	case s.mode == reasonMode || s.implicit:
		return s.off + len(in) - s.whiteBefore(in)
	}
	return s.off + len(in)
}

// whiteBefore is how much white space ends the content read so far, of which the
// chunk has in.
func (s *Splitter) whiteBefore(in string) int {
	n := len(in) - len(strings.TrimRight(in, whiteSpace))
	if n == len(in) {
		n += s.white
	}
	return n
}
