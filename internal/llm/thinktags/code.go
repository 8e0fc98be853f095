package thinktags

import "strings"

// codeScanner follows Markdown's code spans and fenced blocks through lines, to tell
// whether a tag is in code.
type codeScanner struct {
	fence        byte // the character of the open fence; 0: no block is open
	fenceLen     int
	fencedTag    span   // the first tag in the block, in case the block is never closed
	unclosedFrom [2]int // fences of ` and ~ from this length on are never closed; 0: not known

	place           linePlace
	blank           bool   // nothing but white space so far
	indent          int    // its width; a tab is as wide as the indent of code
	onlyQuoteBefore bool   // nothing but white space and > before the mark
	mark            byte   // the fence character at the start of the line; 0: none
	markLen         int    // how often it is repeated
	run             int    // backticks just read
	endedRuns       int    // runs of backticks that have ended
	openRun         byte   // length of the run that may open a code span; 0: none
	runsSinceOpen   []byte // lengths of the runs from that one on; 0 is a tag
	tags            []span // the tags among them
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
	*c = codeScanner{unclosedFrom: c.unclosedFrom, blank: true, onlyQuoteBefore: true, runsSinceOpen: c.runsSinceOpen[:0], tags: c.tags[:0]}
}

// ignoresAllButBackticks reports whether step ignores every byte of the line but a backtick.
func (c *codeScanner) ignoresAllButBackticks() bool { return c.place == lineBody && c.run == 0 }

// step reads one byte of a line.
func (c *codeScanner) step(b byte) {
	if b == '`' {
		c.run++
	} else {
		c.endBacktickRun()
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
		c.onlyQuoteBefore = false
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

// endBacktickRun ends a run of backticks. The first run opens a code span, and the next run of the
// same length closes it, if the line has one.
func (c *codeScanner) endBacktickRun() {
	if c.run == 0 {
		return
	}
	n := byte(min(c.run, longestRun+1))
	c.run = 0
	c.endedRuns++
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

// deferTagInCode reports whether the tag that was just read may be in code, and then keeps the
// tag until the end of the line or of the fenced block.
func (c *codeScanner) deferTagInCode(tag span) (deferred bool) {
	switch {
	case c.openRun != 0:
		c.runsSinceOpen, c.tags = append(c.runsSinceOpen, 0), append(c.tags, tag)
	case c.fence == 0 && !c.canOpenFence('~'), c.fenceIsNeverClosed():
		return false
	case !c.fencedTag.found():
		c.fencedTag = tag
	}
	return true
}

// canOpenFence reports whether the line begins with a run of the fence character mark that can
// open a fenced block.
func (c *codeScanner) canOpenFence(mark byte) bool {
	return c.mark == mark && c.markLen >= 3 && c.markLen <= longestRun
}

// fenceIsNeverClosed reports whether the open fence, or else the one at the start of the line,
// is known to have no end.
func (c *codeScanner) fenceIsNeverClosed() bool {
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

// recordUnclosedFence notes at the end of the content that the open fence was never closed: it
// was not code then, and neither are later ones of its length. It returns the first tag after the
// fence.
func (c *codeScanner) recordUnclosedFence() (firstTag span) {
	if c.fence != 0 {
		c.unclosedFrom[fenceIndex(c.fence)] = c.fenceLen
	}
	return c.fencedTag
}

// endLine ends the line and returns its first tag that might have been in code and is not.
// In a fenced block that tag waits for the end of the block.
func (c *codeScanner) endLine() (tag span, found bool) {
	c.endBacktickRun()
	tag, found = c.firstTagOutsideCode()
	switch {
	case c.fence == 0 && (c.canOpenFence('~') || c.canOpenFence('`') && c.endedRuns == 1):
		c.fence, c.fenceLen = c.mark, c.markLen
	case c.fence != 0 && c.mark == c.fence && c.markLen >= c.fenceLen && c.onlyQuoteBefore && c.place != lineBody:
		c.fence, c.fencedTag = 0, span{}
	}
	if found && c.fence != 0 && !c.fenceIsNeverClosed() {
		if !c.fencedTag.found() {
			c.fencedTag = tag
		}
		found = false
	}
	fence, fenceLen, fencedTag := c.fence, c.fenceLen, c.fencedTag
	c.reset()
	c.fence, c.fenceLen, c.fencedTag = fence, fenceLen, fencedTag
	return tag, found
}

// firstTagOutsideCode returns the first tag since the open run that is in no code span, now
// that the whole line is known.
func (c *codeScanner) firstTagOutsideCode() (tag span, found bool) {
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
	m.part = append(m.part, byte(lowerASCII(rune(c))))
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

// lowerASCII folds the case of ASCII letters and keeps other characters.
func lowerASCII(r rune) rune {
	if r >= 'A' && r <= 'Z' {
		r += 'a' - 'A'
	}
	return r
}

const whiteSpace = " \t\r\n\v\f"

func isWhite(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// lineSpecial has the bytes that matter in the middle of a line.
var lineSpecial = [256]bool{'\n': true, '<': true, '`': true}
