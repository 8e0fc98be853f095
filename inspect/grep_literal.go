package inspect

import (
	"regexp/syntax"
	"slices"
	"strings"
)

// literals are lower-case texts of which every match of a pattern has at least one, whatever
// its case; none: a match may be anything. Most blocks contain none of them, and the lines
// of these need not be searched.
type literals []string

// mostLiterals is how many texts are searched for one after the other; more take longer
// than the search of the lines.
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
		return newLiteral(string(re.Rune))
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
	return len(slices.MinFunc(l, func(a, b string) int { return len(a) - len(b) }))
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
	return newLiteral(best)
}

func newLiteral(text string) literals {
	if text == "" {
		return nil
	}
	return literals{strings.ToLower(text)}
}

// in reports whether a text may have a match.
func (l literals) in(text string) bool {
	lower := strings.ToLower(text)
	return len(l) == 0 || slices.ContainsFunc(l, func(one string) bool { return strings.Contains(lower, one) })
}
