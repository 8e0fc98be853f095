package secrets

import "sync"

// anchors finds all the words that a secret may begin with or stand behind, in one
// pass over a text (Aho and Corasick's automaton). Upper and lower case are the
// same to it. Only around what it finds a rule looks closer.
type anchors struct {
	class [256]uint8 // bytes that no word has are class 0
	next  []uint16   // by state<<classBits | class
	found [][]anchor // by state: the words that end there
	first uint16     // states from here on have words
}

// anchor is a word, and what to do where it stands.
type anchor struct {
	word string
	look func(v *view, at, end int)
}

// classBits is enough for letters, digits and what else is in words.
const classBits = 6

// scan tells each place where a word stands.
func (a *anchors) scan(v *view) {
	state, first, next := uint16(0), a.first, a.next
	for i := range len(v.text) {
		state = next[int(state)<<classBits|int(a.class[v.text[i]]&(1<<classBits-1))]
		if state < first {
			continue
		}
		for _, w := range a.found[state] {
			w.look(v, i+1-len(w.word), i+1)
		}
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
	a := &anchors{}
	classes := uint8(1)
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
	nodes := grow(list, &a.class)
	a.number(nodes)
	return a
}

// node is a state while the automaton is made.
type node struct {
	next  map[uint8]int
	fail  int
	words []anchor
}

// grow makes the tree of the words, and with each node the longest other node that
// its word ends in.
func grow(list []anchor, class *[256]uint8) []node {
	nodes := []node{{next: map[uint8]int{}}}
	for _, w := range list {
		at := 0
		for _, c := range []byte(w.word) {
			to, ok := nodes[at].next[class[c]]
			if !ok {
				to = len(nodes)
				nodes[at].next[class[c]] = to
				nodes = append(nodes, node{next: map[uint8]int{}})
			}
			at = to
		}
		nodes[at].words = append(nodes[at].words, w)
	}
	for queue := []int{0}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		for c, to := range nodes[at].next {
			queue = append(queue, to)
			if at == 0 {
				continue
			}
			fail := nodes[at].fail
			for fail != 0 && !has(nodes[fail], c) {
				fail = nodes[fail].fail
			}
			nodes[to].fail = nodes[fail].next[c]
			nodes[to].words = append(nodes[to].words, nodes[nodes[to].fail].words...)
		}
	}
	return nodes
}

func has(n node, c uint8) bool {
	_, ok := n.next[c]
	return ok
}

// number gives the states their numbers, those with words last, and writes the
// table of what follows.
func (a *anchors) number(nodes []node) {
	numbers, n := make([]int, len(nodes)), 0
	for _, words := range []bool{false, true} {
		if words {
			a.first = uint16(n)
		}
		for i := range nodes {
			if (len(nodes[i].words) > 0) == words {
				numbers[i] = n
				n++
			}
		}
	}
	a.next, a.found = make([]uint16, len(nodes)<<classBits), make([][]anchor, len(nodes))
	for i := range nodes {
		a.found[numbers[i]] = nodes[i].words
		for c := range uint8(1 << classBits) {
			at := i
			for at != 0 && !has(nodes[at], c) {
				at = nodes[at].fail
			}
			a.next[numbers[i]<<classBits|int(c)] = uint16(numbers[nodes[at].next[c]])
		}
	}
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
