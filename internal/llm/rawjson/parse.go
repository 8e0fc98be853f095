package rawjson

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
)

// How JSON is checked.
//
// Parse reads the text once, from left to right, by recursive descent: one method of parser
// for each rule of the grammar of RFC 8259. The parser builds no tree and copies nothing. It
// only checks the text and finds where the first value ends, so a Value is a slice of the
// text. The depth of nesting is limited to MaxDepth, so that a text cannot exhaust the stack.
// Strings are checked for escapes and control characters but not for valid UTF-8, because
// their bytes must be kept as they are. At the end of the text, every error is marked
// Truncated: a longer text could have been valid.

// MaxDepth is the largest nesting depth of objects and arrays that [Parse] accepts.
const MaxDepth = 256

// SyntaxError describes why and where a text is not JSON.
type SyntaxError struct {
	Offset    int    // index of the offending byte, counting a byte order mark
	Problem   string // what is wrong, or what the parser expected there
	Truncated bool   // the text is a truncated JSON text
}

// Error returns the offset and the problem.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("parse JSON: at byte %d: %s", e.Offset, e.Problem)
}

// Parse checks that b is one JSON text (RFC 8259) and returns its value, which
// shares the bytes of b, without white space around it or a byte order mark before it.
// Strings may contain invalid UTF-8 and lone surrogates, and numbers may have any number
// of digits. An error is a [*SyntaxError], and the value is then nil.
func Parse(b []byte) (Value, error) {
	v, rest, err := ParseFirst(b)
	if len(rest) > 0 {
		return nil, &SyntaxError{Offset: len(b) - len(rest), Problem: "want nothing after the value"}
	}
	return v, err
}

// ParseFirst is like [Parse] for a text that may continue after the value. It also returns
// the rest of the text, without leading white space.
func ParseFirst(b []byte) (v Value, rest []byte, err error) {
	p := parser{text: b}
	if bytes.HasPrefix(b, bom) {
		p.i = len(bom)
	}
	p.i = skipSpace(b, p.i)
	start := p.i
	if !p.readValue() {
		return nil, nil, p.err
	}
	return Value(b[start:p.i:p.i]), b[skipSpace(b, p.i):], nil
}

var bom = []byte("\xEF\xBB\xBF")

// parser checks the grammar. Its methods begin at i and move i to the end of what they
// read. On an error, they set err and return false.
type parser struct {
	text  []byte
	i     int
	depth int
	err   *SyntaxError
}

// fail sets err to a problem at i and returns false.
func (p *parser) fail(problem string) bool {
	p.err = &SyntaxError{Offset: p.i, Problem: problem}
	if p.i >= len(p.text) {
		p.err.Truncated, p.err.Problem = true, "text ends, "+problem
	}
	return false
}

// peek returns the byte at i, or 0 at the end of the text. The two need not be distinguished,
// because a NUL byte is never allowed.
func (p *parser) peek() byte {
	if p.i < len(p.text) {
		return p.text[p.i]
	}
	return 0
}

// readValue reads any value.
func (p *parser) readValue() (ok bool) {
	switch c := p.peek(); c {
	case '"':
		return p.readString()
	case '{':
		return p.readNested('}')
	case '[':
		return p.readNested(']')
	case 't':
		return p.readLiteral("true")
	case 'f':
		return p.readLiteral("false")
	case 'n':
		return p.readLiteral("null")
	default:
		if c == '-' || isDigit(c) {
			return p.readNumber()
		}
		return p.fail("want a value")
	}
}

// readLiteral reads true, false or null.
func (p *parser) readLiteral(word string) (ok bool) {
	for n := range len(word) {
		if p.peek() != word[n] {
			return p.fail("want " + word)
		}
		p.i++
	}
	return true
}

// readNested reads an object or an array up to its closing bracket.
func (p *parser) readNested(closing byte) (ok bool) {
	if p.depth++; p.depth > MaxDepth {
		return p.fail(fmt.Sprintf("want at most %d levels of nesting", MaxDepth))
	}
	p.i = skipSpace(p.text, p.i+1)
	if p.peek() == closing {
		p.depth--
		p.i++
		return true
	}
	for {
		if closing == '}' && !p.readKeyAndColon() {
			return false
		}
		if !p.readValue() {
			return false
		}
		p.i = skipSpace(p.text, p.i)
		switch p.peek() {
		case ',':
			p.i = skipSpace(p.text, p.i+1)
		case closing:
			p.depth--
			p.i++
			return true
		default:
			return p.fail("want , or " + string(closing))
		}
	}
}

// readKeyAndColon reads a key and the colon, up to the value.
func (p *parser) readKeyAndColon() (ok bool) {
	if p.peek() != '"' {
		return p.fail("want a key in quotes")
	}
	if !p.readString() {
		return false
	}
	p.i = skipSpace(p.text, p.i)
	if p.peek() != ':' {
		return p.fail("want :")
	}
	p.i = skipSpace(p.text, p.i+1)
	return true
}

// readString reads a string.
func (p *parser) readString() (ok bool) {
	for p.i++; ; {
		p.i = skipPlain(p.text, p.i)
		switch p.peek() {
		case '"':
			p.i++
			return true
		case '\\':
			p.i++
			if !p.readEscape() {
				return false
			}
		default:
			return p.fail("want a closing quote, or control characters escaped")
		}
	}
}

// readEscape reads an escape sequence after its backslash.
func (p *parser) readEscape() (ok bool) {
	switch p.peek() {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		p.i++
		return true
	case 'u':
		for range 4 {
			p.i++
			if !isHexDigit(p.peek()) {
				return p.fail("want four hex digits")
			}
		}
		p.i++
		return true
	default:
		return p.fail("want an escape character")
	}
}

// readNumber reads a number.
func (p *parser) readNumber() (ok bool) {
	if p.peek() == '-' {
		p.i++
	}
	if p.peek() == '0' {
		p.i++
	} else if !p.readDigits() {
		return false
	}
	if p.peek() == '.' {
		p.i++
		if !p.readDigits() {
			return false
		}
	}
	if c := p.peek(); c == 'e' || c == 'E' {
		p.i++
		if c = p.peek(); c == '+' || c == '-' {
			p.i++
		}
		return p.readDigits()
	}
	return true
}

// readDigits reads one or more digits.
func (p *parser) readDigits() (ok bool) {
	start := p.i
	for isDigit(p.peek()) {
		p.i++
	}
	return p.i > start || p.fail("want a digit")
}

// skipPlain returns the index of the next byte that is not plain text of a
// string: a quote, a backslash or a control character; len(b) when there is none.
// It examines eight bytes at once: subtracting from a byte that is smaller than the
// subtrahend sets the high bit of the byte. A borrow can cause false hits only in bytes
// above a true hit, and the lowest hit is used.
func skipPlain(b []byte, i int) int {
	const (
		ones = 0x0101010101010101
		high = 0x80 * ones
	)
	for ; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		hit := ((x - ' '*ones) | ((x ^ '"'*ones) - ones) | ((x ^ '\\'*ones) - ones)) &^ x & high
		if hit != 0 {
			return i + bits.TrailingZeros64(hit)/8
		}
	}
	for i < len(b) && b[i] >= ' ' && b[i] != '"' && b[i] != '\\' {
		i++
	}
	return i
}
