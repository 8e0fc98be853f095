package rawjson

import (
	"bytes"
	"maps"
	"math/big"
)

// Equal reports whether a and b are the same JSON value. White space and the order of
// members do not matter. If an object has members with equal keys, the last one is
// compared. Strings are equal if their [Value.Text] is equal. Numbers are equal if their
// literals or their exact values are (1, 1.0 and 10e-1). For number literals of more than
// 64 bytes, or with an exponent of more than 4 bytes, only the literals are compared. Two
// absent values are equal. Below [MaxDepth], the limit of Parse, only bytes are compared.
// The time is proportional to the length times the depth; each pair of objects allocates
// two maps.
func Equal(a, b Value) bool { return equal(a, b, 0) }

// equal is Equal for values at a depth.
func equal(a, b Value, depth int) bool {
	kind := a.Kind()
	switch {
	case kind != b.Kind():
		return false
	case bytes.Equal(a, b):
		return true
	case depth > MaxDepth:
		return false
	}
	switch kind {
	case KindNumber:
		return equalNumbers(a, b)
	case KindString:
		return a.Text() == b.Text()
	case KindArray:
		return equalArrays(a, b, depth+1)
	case KindObject:
		return equalObjects(a, b, depth+1)
	default:
		return false
	}
}

func equalArrays(a, b Value, depth int) bool {
	x, y := elementCursor(a), elementCursor(b)
	for {
		_, v := x.next()
		_, w := y.next()
		if v == nil || w == nil {
			return v == nil && w == nil
		}
		if !equal(v, w, depth) {
			return false
		}
	}
}

func equalObjects(a, b Value, depth int) bool {
	x, y := lastMembers(a), lastMembers(b)
	if len(x) != len(y) {
		return false
	}
	for key, v := range x {
		w, ok := y[key]
		if !ok || !equal(v, w, depth) {
			return false
		}
	}
	return true
}

// lastMembers returns the members of v by key; of members with equal keys, the last.
func lastMembers(v Value) map[string]Value {
	return maps.Collect(v.Members())
}

// equalNumbers reports whether two number literals have the same exact value.
func equalNumbers(a, b Value) bool {
	x, y := exactNumber(a), exactNumber(b)
	return x != nil && y != nil && x.Cmp(y) == 0
}

// The longest literal, and the longest exponent with its sign, for which exactNumber computes
// the value. They are limited because a short literal can mean a number of a billion digits.
const (
	maxNumberBytes   = 64
	maxExponentBytes = 4
)

// exactNumber returns the exact value of a number literal; nil if v is not a number or its
// literal or exponent is too long.
func exactNumber(v Value) *big.Rat {
	p := parser{text: v}
	if len(v) > maxNumberBytes || !p.readNumber() || p.i < len(v) {
		return nil
	}
	if e := bytes.IndexAny(v, "eE"); e >= 0 && len(v)-e-1 > maxExponentBytes {
		return nil
	}
	n, _ := new(big.Rat).SetString(string(v))
	return n
}
