package tract

import (
	"bytes"
	"regexp/syntax"
	"strings"
)

// literal is bytes that stand in every text that a pattern matches. Most blocks
// have not got them, and need not be decoded.
type literal struct {
	text []byte // lower case when fold is set
	fold bool
	room []byte // of a text in lower case
}

// literalOf finds the longest bytes that every match of an expression has; none when
// it has no such.
func literalOf(expression string) *literal {
	re, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return &literal{}
	}
	return required(re.Simplify())
}

func required(re *syntax.Regexp) *literal {
	best := &literal{}
	switch re.Op {
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase != 0 {
			return folded(string(re.Rune))
		}
		return &literal{text: []byte(string(re.Rune))}
	case syntax.OpCapture, syntax.OpPlus, syntax.OpConcat:
	case syntax.OpRepeat:
		if re.Min == 0 {
			return best
		}
	default:
		return best
	}
	for _, sub := range re.Sub {
		if found := required(sub); len(found.text) > len(best.text) {
			best = found
		}
	}
	return best
}

// folded is the longest part of a text that upper and lower case alone tell apart:
// k and s have a third form outside of ASCII.
func folded(text string) *literal {
	best := ""
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r >= 0x80 || strings.ContainsRune("kKsS", r) }) {
		if len(part) > len(best) {
			best = part
		}
	}
	return &literal{text: bytes.ToLower([]byte(best)), fold: true}
}

// in tells whether the bytes may stand in a text.
func (l *literal) in(text []byte) bool {
	if len(l.text) == 0 {
		return true
	}
	if !l.fold {
		return bytes.Contains(text, l.text)
	}
	l.room = append(l.room[:0], text...)
	for i, c := range l.room {
		l.room[i] = lower[c]
	}
	return bytes.Contains(l.room, l.text)
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
