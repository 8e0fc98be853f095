package secrets

import "sync"

// anchors finds all keywords that a secret begins with or follows, in one pass over a
// text, without regard to case (the automaton of Aho and Corasick). The rules examine
// only the text around a keyword.
type anchors struct {
	class [256]uint16      // bytes that no keyword has are class 0
	next  *[1 << 16]uint16 // state<<classBits, by state<<classBits | class
	found [][]anchor       // by state: the keywords that end there
	first uint16           // states<<classBits from here on have keywords
}

// anchor is a keyword, and the function to call where it occurs.
type anchor struct {
	keyword string
	look    func(v *view, at, end int)
}

// classBits is enough for the different bytes of all keywords. States are kept shifted by
// classBits, so that every uint16 is an index of next, without bounds checks.
const classBits = 6

// step returns the state after one more byte.
func (a *anchors) step(state uint16, c byte) uint16 { return a.next[state|a.class[c]] }

// scan calls the functions of all keywords that occur in a text.
func (a *anchors) scan(v *view) {
	state := uint16(0)
	for i := range len(v.text) {
		if state = a.step(state, v.text[i]); state >= a.first {
			a.stop(v, state, i+1)
		}
	}
}

// stop calls the functions of the keywords that end at a position.
func (a *anchors) stop(v *view, state uint16, end int) {
	for _, w := range a.found[state>>classBits] {
		w.look(v, end-len(w.keyword), end)
	}
}

// automaton is made when the first text is searched.
var automaton = sync.OnceValue(func() *anchors {
	var list []anchor
	for _, r := range table {
		for _, t := range r.tokens {
			list = append(list, anchor{lower(t.prefix), t.look(r.Name)})
		}
		for _, w := range r.keywords {
			look, name := r.look, r.Name
			list = append(list, anchor{w, func(v *view, at, end int) { look(v, name, at, end) }})
		}
	}
	return newAnchors(list)
})

// newAnchors makes an automaton.
func newAnchors(list []anchor) *anchors {
	a := &anchors{next: new([1 << 16]uint16)}
	classes := uint16(1)
	for _, w := range list {
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
	next := a.grow(list)
	a.link(next)
	a.number(next)
	return a
}

// grow makes the trie of the keywords. State 0 is its root, and in next, which is indexed
// by state and class, it means that there is no child.
func (a *anchors) grow(list []anchor) (next [][1 << classBits]uint16) {
	add := func() (state uint16) {
		next, a.found = append(next, [1 << classBits]uint16{}), append(a.found, nil)
		return uint16(len(next) - 1)
	}
	add()
	for _, w := range list {
		at := uint16(0)
		for _, c := range []byte(w.keyword) {
			from := at
			if at = next[from][a.class[c]]; at == 0 {
				at = add()
				next[from][a.class[c]] = at
			}
		}
		a.found[at] = append(a.found[at], w)
	}
	return next
}

// link sets the missing transitions, state by state from the root: those of the failure
// link, the state of the longest proper suffix that is a prefix of a keyword.
func (a *anchors) link(next [][1 << classBits]uint16) {
	fail := make([]uint16, len(next))
	for queue := []uint16{0}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		for c := range next[at] {
			other := uint16(0)
			if at != 0 {
				other = next[fail[at]][c]
			}
			to := next[at][c]
			if to == 0 {
				next[at][c] = other
				continue
			}
			fail[to], queue = other, append(queue, to)
			a.found[to] = append(a.found[to], a.found[other]...)
		}
	}
}

// number renumbers the states, so that those with keywords come last.
func (a *anchors) number(next [][1 << classBits]uint16) {
	order := make([]int, 0, len(a.found))
	for _, hasKeyword := range []bool{false, true} {
		if hasKeyword {
			a.first = uint16(len(order) << classBits)
		}
		for state := range a.found {
			if (len(a.found[state]) > 0) == hasKeyword {
				order = append(order, state)
			}
		}
	}
	numbers := make([]uint16, len(order))
	for number, state := range order {
		numbers[state] = uint16(number << classBits)
	}
	found := make([][]anchor, len(order))
	for number, state := range order {
		found[number] = a.found[state]
		for c, to := range next[state] {
			a.next[number<<classBits|c] = numbers[to]
		}
	}
	a.found = found
}

func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
