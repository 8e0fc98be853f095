package thinktags

import "strings"

// codeScanner follows Markdown's code spans and fenced blocks through lines, to tell
// whether a tag is in code.
type codeScanner struct {
	fence        byte // the character of the open fence; 0: no block is open
	fenceLen     int
	fencedTag    span   // the first tag in the block, in case the block is never closed
	unclosedFrom [2]int // fences of ` and ~ from this length on are never closed; 0: not known

	place         linePlace
	blank         bool   // nothing but white space so far
	indent        int    // its width; a tab is as wide as the indent of code
	quote         bool   // nothing but white space and > before the mark
	mark          byte   // the fence character at the start of the line; 0: none
	markLen       int    // how often it is repeated
	run           int    // backticks just read
	runs          int    // runs of backticks that have ended
	openRun       byte   // length of the run that may open a code span; 0: none
	runsSinceOpen []byte // lengths of the runs from that one on; 0 is a tag
	tags          []span // the tags among them
}

// codeIndent is how much white space makes code of a line.
const codeIndent = 4

type linePlace uint8

const (
	linePrefix linePlace = iota // in what may stand before a fence
	lineMark                    // in a run of fence characters after that
	lineAfter                   // in white space after the run
	lineBody                    // anywhere else
)

func (c *codeScanner) reset() {
	*c = codeScanner{unclosedFrom: c.unclosedFrom, blank: true, quote: true, runsSinceOpen: c.runsSinceOpen[:0], tags: c.tags[:0]}
}

// inBody reports whether step ignores everything but a backtick.
func (c *codeScanner) inBody() bool { return c.place == lineBody && c.run == 0 }

// step reads one byte of a line.
func (c *codeScanner) step(b byte) {
	if b == '`' {
		c.run++
	} else {
		c.endRun()
	}
	white := isWhite(b)
	if c.blank && white {
		c.indent++
		if b == '\t' {
			c.indent += codeIndent - 1
		}
	}
	c.blank = c.blank && white
	switch {
	case c.place == linePrefix && (b == '`' || b == '~'):
		c.place, c.mark, c.markLen = lineMark, b, 1
	case c.place == linePrefix && strings.IndexByte("-*+.)0123456789", b) >= 0:
		c.quote = false
	case c.place == linePrefix && (white || b == '>'):
	case c.place == lineMark && b == c.mark:
		c.markLen++
	case c.place >= lineMark && white && c.place != lineBody:
		c.place = lineAfter
	default:
		c.place = lineBody
	}
}

// longestRun is how many backticks or tildes can begin code. Without a bound each
// length could make the rest of a line, or of the content, be read once more.
const longestRun = 31

// endRun ends a run of backticks. The first run opens a code span, and the next run of the
// same length closes it, if the line has one.
func (c *codeScanner) endRun() {
	if c.run == 0 {
		return
	}
	n := byte(min(c.run, longestRun+1))
	c.run = 0
	c.runs++
	if n > longestRun {
		return
	}
	switch c.openRun {
	case 0:
		c.openRun, c.runsSinceOpen = n, append(c.runsSinceOpen[:0], n)
	case n:
		c.openRun, c.runsSinceOpen, c.tags = 0, c.runsSinceOpen[:0], c.tags[:0]
	default:
		c.runsSinceOpen = append(c.runsSinceOpen, n)
	}
}

// hidesTag reports whether the tag that was just read may be in code, and remembers it
// then.
func (c *codeScanner) hidesTag(tag span) bool {
	switch {
	case c.openRun != 0:
		c.runsSinceOpen, c.tags = append(c.runsSinceOpen, 0), append(c.tags, tag)
	case c.fence == 0 && !c.isFence('~'), c.isNeverClosed():
		return false
	case !c.fencedTag.found():
		c.fencedTag = tag
	}
	return true
}

// isFence reports whether a fence of this kind may begin the line.
func (c *codeScanner) isFence(mark byte) bool {
	return c.mark == mark && c.markLen >= 3 && c.markLen <= longestRun
}

// isNeverClosed reports whether the open fence, or else the one at the start of the line,
// is known to have no end.
func (c *codeScanner) isNeverClosed() bool {
	mark, n := c.fence, c.fenceLen
	if mark == 0 {
		mark, n = c.mark, c.markLen
	}
	least := c.unclosedFrom[fenceIndex(mark)]
	return least != 0 && n >= least
}

func fenceIndex(mark byte) int {
	if mark == '~' {
		return 1
	}
	return 0
}

// endFence ends a block at the end of the content. It was not a block then, and neither
// are later ones with such a fence. It returns the first tag in the block.
func (c *codeScanner) endFence() span {
	tag := c.fencedTag
	if c.fence != 0 {
		c.unclosedFrom[fenceIndex(c.fence)] = c.fenceLen
	}
	return tag
}

// endLine ends the line and returns its first tag that might have been in code and is not.
// In a fenced block that tag waits for the end of the block.
func (c *codeScanner) endLine() (tag span, ok bool) {
	c.endRun()
	tag, ok = c.tagOutsideCode()
	switch {
	case c.fence == 0 && (c.isFence('~') || c.isFence('`') && c.runs == 1):
		c.fence, c.fenceLen = c.mark, c.markLen
	case c.fence != 0 && c.mark == c.fence && c.markLen >= c.fenceLen && c.quote && c.place != lineBody:
		c.fence, c.fencedTag = 0, span{}
	}
	if ok && c.fence != 0 && !c.isNeverClosed() {
		if !c.fencedTag.found() {
			c.fencedTag = tag
		}
		ok = false
	}
	fence, fenceLen, caught := c.fence, c.fenceLen, c.fencedTag
	c.reset()
	c.fence, c.fenceLen, c.fencedTag = fence, fenceLen, caught
	return tag, ok
}

// tagOutsideCode returns the first tag since the open run that is in no code span, now
// that the whole line is known.
func (c *codeScanner) tagOutsideCode() (span, bool) {
	if len(c.tags) == 0 {
		return span{}, false
	}
	var last [longestRun + 1]int
	for i, n := range c.runsSinceOpen {
		last[n] = i
	}
	tags := c.tags
	for i := 0; i < len(c.runsSinceOpen); i++ {
		n := c.runsSinceOpen[i]
		if n == 0 {
			return tags[0], true
		}
		if last[n] == i {
			continue
		}
		for i++; c.runsSinceOpen[i] != n; i++ {
			if c.runsSinceOpen[i] == 0 {
				tags = tags[1:]
			}
		}
	}
	return span{}, false
}

// tagMatch matches tags byte by byte.
type tagMatch struct {
	want []string // the tags that count, in lower case
	part []byte   // what was read of a tag, in lower case
}

type matched uint8

const (
	matchNone matched = iota
	matchPart
	matchWhole
)

// add compares what was read of a tag, with c added, to the wanted tags. Text that is part
// of none is forgotten.
func (m *tagMatch) add(c byte) matched {
	m.part = append(m.part, byte(lower(rune(c))))
	for _, t := range m.want {
		if strings.HasPrefix(t, string(m.part)) {
			if len(t) == len(m.part) {
				return matchWhole
			}
			return matchPart
		}
	}
	m.part = m.part[:0]
	return matchNone
}

func (m *tagMatch) begun() bool { return len(m.part) > 0 }

// take returns what was read of a tag and forgets it.
func (m *tagMatch) take() string {
	part := string(m.part)
	m.part = m.part[:0]
	return part
}

// lower folds the case of ASCII letters and keeps other characters.
func lower(r rune) rune {
	if r >= 'A' && r <= 'Z' {
		r += 'a' - 'A'
	}
	return r
}

const whiteSpace = " \t\r\n\v\f"

func isWhite(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// lineSpecial has the bytes that matter in the middle of a line.
var lineSpecial = [256]bool{'\n': true, '<': true, '`': true}
