package inspect

import (
	"regexp/syntax"
	"slices"
	"strings"
)

// How a search is made fast. Running a regular expression over every line of a store is slow, while
// looking for a fixed string in a text is fast. Most expressions require certain fixed strings: every
// match of "time(out|d out)" contains "timeout" or "timed out". required derives such strings from the
// syntax tree of the expression. Of parts that follow each other, the one whose shortest string is the
// longest is used, because it excludes most texts; of alternatives, the strings of all are needed. A
// block whose text, in lower case, has none of the strings cannot match, and its lines are not
// searched. An expression without required strings searches every block.

// literals are lower-case strings, at least one of which is in the lower-case text of every match
// of a pattern; an empty list excludes nothing.
type literals []string

// mostLiterals is the largest number of strings that are looked for; looking for more takes longer
// than searching the lines.
const mostLiterals = 8

// literalsOf returns the literals of a regular expression.
func literalsOf(expression string) literals {
	re, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return nil
	}
	return requiredLiterals(re.Simplify())
}

// requiredLiterals returns the literals of a syntax tree, those that exclude most texts.
func requiredLiterals(re *syntax.Regexp) (best literals) {
	switch re.Op {
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase != 0 {
			return longestCaseSafeLiteral(string(re.Rune))
		}
		return lowerCaseLiteral(string(re.Rune))
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			some := requiredLiterals(sub)
			if best = append(best, some...); some == nil || len(best) > mostLiterals {
				return nil
			}
		}
	case syntax.OpCapture, syntax.OpPlus, syntax.OpConcat:
		for _, sub := range re.Sub {
			if some := requiredLiterals(sub); some.shortestLen() > best.shortestLen() {
				best = some
			}
		}
	case syntax.OpRepeat:
		if re.Min > 0 {
			return requiredLiterals(re.Sub[0])
		}
	}
	return best
}

// shortestLen returns the length of the shortest literal; 0 when there is none.
func (l literals) shortestLen() int {
	if len(l) == 0 {
		return 0
	}
	return len(slices.MinFunc(l, func(a, b string) int { return len(a) - len(b) }))
}

// longestCaseSafeLiteral returns the literal for a text that matches in any case: its longest ASCII part
// without the letters k and s, which have a third case form outside ASCII.
func longestCaseSafeLiteral(text string) literals {
	best := ""
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r >= 0x80 || strings.ContainsRune("kKsS", r) }) {
		if len(part) > len(best) {
			best = part
		}
	}
	return lowerCaseLiteral(best)
}

// lowerCaseLiteral returns text in lower case as the only literal; nil for the empty text.
func lowerCaseLiteral(text string) literals {
	if text == "" {
		return nil
	}
	return literals{strings.ToLower(text)}
}

// mayMatch reports whether a text contains literal of the literals, so that it may have a match.
func (l literals) mayMatch(text string) bool {
	lower := strings.ToLower(text)
	return len(l) == 0 || slices.ContainsFunc(l, func(literal string) bool { return strings.Contains(lower, literal) })
}
