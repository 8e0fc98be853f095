package inspect

import (
	"bytes"
	"regexp/syntax"
	"slices"
	"strings"
)

// literals are texts of which every match of a pattern has at least one; none: a match may
// be anything. Most blocks contain none of them, and need not be decoded.
type literals []literal

// literal is bytes to look for.
type literal struct {
	text []byte // lower case when fold is set
	fold bool   // ASCII letters of both cases count
	rare int    // the byte of text that is likely the rarest
}

// mostLiterals is how many texts are searched for one after the other; more take longer
// than decoding.
const mostLiterals = 8

// literalsOf returns the texts of which every match of an expression has one.
func literalsOf(expression string) literals {
	re, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return nil
	}
	return required(re.Simplify())
}

func required(re *syntax.Regexp) (best literals) {
	switch re.Op {
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase != 0 {
			return folded(string(re.Rune))
		}
		return newLiteral(string(re.Rune), false)
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			some := required(sub)
			if best = append(best, some...); some == nil || len(best) > mostLiterals {
				return nil
			}
		}
	case syntax.OpCapture, syntax.OpPlus, syntax.OpConcat:
		for _, sub := range re.Sub {
			if some := required(sub); some.least() > best.least() {
				best = some
			}
		}
	case syntax.OpRepeat:
		if re.Min > 0 {
			return required(re.Sub[0])
		}
	}
	return best
}

// least is the length of the shortest.
func (l literals) least() int {
	if len(l) == 0 {
		return 0
	}
	return len(slices.MinFunc(l, func(a, b literal) int { return len(a.text) - len(b.text) }).text)
}

// folded is the longest part of a text of which each letter has only an upper and a lower
// case: k and s have a third form outside ASCII.
func folded(text string) literals {
	best := ""
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r >= 0x80 || strings.ContainsRune("kKsS", r) }) {
		if len(part) > len(best) {
			best = part
		}
	}
	return newLiteral(strings.ToLower(best), true)
}

func newLiteral(text string, fold bool) literals {
	if text == "" {
		return nil
	}
	l := literal{text: []byte(text), fold: fold}
	for i := range l.text {
		if commonness(l.text[i]) < commonness(l.text[l.rare]) {
			l.rare = i
		}
	}
	return literals{l}
}

// common is what texts and programs are made of, the most common first.
const common = " etaoinsrhldcumfpgwyb\",.v\n:-_k0/1'()=2{};\\x3T5j4ISACq98E67zRN"

// commonness orders bytes by how often they are likely to be in a text: half of the letters
// outside ASCII begin with the same byte.
func commonness(c byte) int {
	if c >= 0xc0 {
		return len(common)
	}
	if i := strings.IndexByte(common, c); i >= 0 {
		return len(common) - i
	}
	return 0
}

// in reports whether data may have a match.
func (l literals) in(data []byte) bool {
	return len(l) == 0 || slices.ContainsFunc(l, func(one literal) bool { return one.in(data) })
}

func (l literal) in(data []byte) bool {
	c := l.text[l.rare]
	if l.by(c, data) {
		return true
	}
	return l.fold && c >= 'a' && c <= 'z' && l.by(c-'a'+'A', data)
}

// by compares wherever data has a byte at the offset of the rarest one.
func (l literal) by(c byte, data []byte) bool {
	beyond := len(l.text) - l.rare - 1
	for at, wrong := l.rare, 0; at < len(data)-beyond; wrong++ {
		next := bytes.IndexByte(data[at:len(data)-beyond], c)
		if next < 0 {
			return false
		}
		at += next
		if l.is(data[at-l.rare : at+beyond+1]) {
			return true
		}
		if at++; !l.fold && wrong > 64+at/16 {
			return bytes.Contains(data[at-l.rare:], l.text) // it is common here
		}
	}
	return false
}

func (l literal) is(data []byte) bool {
	if !l.fold {
		return string(data) == string(l.text)
	}
	for i, c := range data {
		if lower[c] != l.text[i] {
			return false
		}
	}
	return true
}

// lower is the lower case of ASCII letters.
var lower = func() (table [256]byte) {
	for c := range table {
		if table[c] = byte(c); c >= 'A' && c <= 'Z' {
			table[c] += 'a' - 'A'
		}
	}
	return table
}()
