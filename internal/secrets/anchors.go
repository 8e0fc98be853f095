package secrets

import "sync"

// anchors finds all the words that a secret may begin with or stand behind, in one
// pass over a text (Aho and Corasick's automaton). Upper and lower case are the
// same to it. Only around what it finds a rule looks closer.
type anchors struct {
	class [256]uint16      // bytes that no word has are class 0
	next  *[1 << 16]uint16 // the state<<classBits, by state<<classBits | class
	found [][]anchor       // by state: the words that end there
	first uint16           // states<<classBits from here on have words
}

// anchor is a word, and what to do where it stands.
type anchor struct {
	word string
	look func(v *view, at, end int)
}

// classBits is enough for letters, digits and what else is in words. A state that is
// gone through is always <<classBits: so any is a place in next, and nothing is checked.
const classBits = 6

// step returns the state after one more byte.
func (a *anchors) step(state uint16, c byte) uint16 { return a.next[state|a.class[c]] }

// scan looks at each place where a word stands.
func (a *anchors) scan(v *view) {
	state := uint16(0)
	for i := range len(v.text) {
		if state = a.step(state, v.text[i]); state >= a.first {
			a.stop(v, state, i+1)
		}
	}
}

// stop looks at the words that end at a place.
func (a *anchors) stop(v *view, state uint16, end int) {
	for _, w := range a.found[state>>classBits] {
		w.look(v, end-len(w.word), end)
	}
}

// automaton is made when the first text is looked at.
var automaton = sync.OnceValue(func() *anchors {
	var list []anchor
	for _, r := range table {
		for _, t := range r.tokens {
			list = append(list, anchor{lower(t.prefix), t.look(r.Name)})
		}
		for _, w := range r.words {
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
		for _, c := range []byte(w.word) {
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

// grow makes the tree of the words. State 0 is its root, and where nothing follows. next is
// the state by state and class.
func (a *anchors) grow(list []anchor) (next [][1 << classBits]uint16) {
	add := func() (state uint16) {
		next, a.found = append(next, [1 << classBits]uint16{}), append(a.found, nil)
		return uint16(len(next) - 1)
	}
	add()
	for _, w := range list {
		at := uint16(0)
		for _, c := range []byte(w.word) {
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

// link says, state by state from the root, where it goes on when the tree does not: to
// what follows the longest other beginning of a word that it ends in.
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

// number returns the states other numbers, so that those with words come last.
func (a *anchors) number(next [][1 << classBits]uint16) {
	order := make([]int, 0, len(a.found))
	for _, words := range []bool{false, true} {
		if words {
			a.first = uint16(len(order) << classBits)
		}
		for state := range a.found {
			if (len(a.found[state]) > 0) == words {
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
