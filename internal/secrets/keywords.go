package secrets

import (
	"strings"
	"sync"
)

// keywordAutomaton finds all keywords that a secret begins with or follows, in one pass over a
// text, without regard to case (the automaton of Aho and Corasick). The rules examine
// only the text around a keyword.
type keywordAutomaton struct {
	class [256]uint8               // bytes that no keyword has are class 0
	next  [][1 << classBits]uint16 // the state after one more byte, by state and class
	found [][]keywordMatcher       // by state: the keywords that end there
}

// keywordMatcher is a keyword, and the function to call where it occurs.
type keywordMatcher struct {
	keyword string
	match   func(t *searchedText, at, end int)
}

// classBits is enough for the different bytes of all keywords.
const classBits = 6

// scan calls the functions of all keywords that occur in a text.
func (a *keywordAutomaton) scan(t *searchedText) {
	state := uint16(0)
	for i := range len(t.text) {
		state = a.next[state][a.class[t.text[i]]]
		for _, w := range a.found[state] {
			w.match(t, i+1-len(w.keyword), i+1)
		}
	}
}

// automaton is made when the first text is searched.
var automaton = sync.OnceValue(func() *keywordAutomaton {
	var list []keywordMatcher
	for _, r := range table {
		for _, t := range r.tokens {
			for prefix := range strings.FieldsSeq(t.prefixes) {
				list = append(list, keywordMatcher{lowerASCII(prefix), t.matchFunc(r.Name, prefix)})
			}
		}
		for _, w := range r.keywords {
			match, name := r.match, r.Name
			list = append(list, keywordMatcher{w, func(t *searchedText, at, end int) { match(t, name, at, end) }})
		}
	}
	return newKeywordAutomaton(list)
})

// newKeywordAutomaton makes an automaton.
func newKeywordAutomaton(keywords []keywordMatcher) *keywordAutomaton {
	a := &keywordAutomaton{}
	classes := uint8(1)
	for _, w := range keywords {
		for _, c := range []byte(w.keyword) {
			if a.class[c] == 0 {
				a.class[c] = classes
				classes++
			}
		}
	}
	for c := byte('A'); c <= 'Z'; c++ {
		a.class[c] = a.class[c+'a'-'A']
	}
	a.buildTrie(keywords)
	a.addFailureTransitions()
	return a
}

// buildTrie makes the trie of the keywords. State 0 is its root, and in next it means that there is
// no child.
func (a *keywordAutomaton) buildTrie(keywords []keywordMatcher) {
	add := func() (state uint16) {
		a.next, a.found = append(a.next, [1 << classBits]uint16{}), append(a.found, nil)
		return uint16(len(a.next) - 1)
	}
	add()
	for _, w := range keywords {
		at := uint16(0)
		for _, c := range []byte(w.keyword) {
			from := at
			if at = a.next[from][a.class[c]]; at == 0 {
				at = add()
				a.next[from][a.class[c]] = at
			}
		}
		a.found[at] = append(a.found[at], w)
	}
}

// addFailureTransitions sets the missing transitions, state by state from the root: those of the
// failure link, the state of the longest proper suffix that is a prefix of a keyword.
func (a *keywordAutomaton) addFailureTransitions() {
	fail := make([]uint16, len(a.next))
	for queue := []uint16{0}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		for c := range a.next[at] {
			other := uint16(0)
			if at != 0 {
				other = a.next[fail[at]][c]
			}
			to := a.next[at][c]
			if to == 0 {
				a.next[at][c] = other
				continue
			}
			fail[to], queue = other, append(queue, to)
			a.found[to] = append(a.found[to], a.found[other]...)
		}
	}
}

func lowerASCII(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
