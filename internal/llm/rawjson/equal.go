package rawjson

import (
	"bytes"
	"maps"
)

// Equal reports whether a and b are the same JSON value: white space and the order
// of members do not matter, of members with equal keys the last counts, strings
// are equal when [Value.Text] is, numbers when their literal or their exact value
// is (1, 1.0 and 10e-1; exponents beyond a billion count by literal). Two absent
// values are equal. Below [MaxDepth], where Parse does not go, bytes are compared.
// The time is in proportion to the length times the depth, and objects cost a map.
func Equal(a, b Value) bool { return equal(a, b, 0) }

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
	x, y := elements(a), elements(b)
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

// lastMembers has the members of v that count.
func lastMembers(v Value) map[string]Value {
	return maps.Collect(v.Members())
}

func equalNumbers(a, b Value) bool {
	var bufA, bufB [32]byte
	x, okX := parseDecimal(a, bufA[:0])
	y, okY := parseDecimal(b, bufB[:0])
	return okX && okY && x.neg == y.neg && x.exp == y.exp && bytes.Equal(x.digits, y.digits)
}

// decimal is the number digits * 10^exp in the one form that has no zeros at
// either end of digits. Zero has no digits, no sign and no exponent.
type decimal struct {
	neg    bool
	digits []byte
	exp    int64
}

const maxExponent = 1_000_000_000

// parseDecimal reads a number literal, appending the digits to buf. It reports
// false for what is no number, and for exponents beyond maxExponent.
func parseDecimal(v Value, buf []byte) (decimal, bool) {
	d := decimal{digits: buf}
	i := 0
	if i < len(v) && v[i] == '-' {
		d.neg = true
		i++
	}
	seen := false
	for point := false; i < len(v); i++ {
		c := v[i]
		if c == '.' && !point {
			point = true
			continue
		}
		if !isDigit(c) {
			break
		}
		seen = true
		if point {
			d.exp--
		}
		if c != '0' || len(d.digits) > 0 {
			d.digits = append(d.digits, c)
		}
	}
	exp, ok := parseExponent(v[i:])
	if !seen || !ok {
		return decimal{}, false
	}
	d.exp += exp
	for n := len(d.digits); n > 0 && d.digits[n-1] == '0'; n-- {
		d.digits = d.digits[:n-1]
		d.exp++
	}
	if len(d.digits) == 0 {
		return decimal{}, true
	}
	return d, true
}

// parseExponent reads the rest of a number literal: nothing, or e and an integer.
func parseExponent(b []byte) (int64, bool) {
	if len(b) == 0 {
		return 0, true
	}
	if b[0] != 'e' && b[0] != 'E' {
		return 0, false
	}
	b = b[1:]
	sign := int64(1)
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		if b[0] == '-' {
			sign = -1
		}
		b = b[1:]
	}
	n := int64(0)
	for _, c := range b {
		if n = n*10 + int64(c-'0'); !isDigit(c) || n > maxExponent {
			return 0, false
		}
	}
	return sign * n, len(b) > 0
}
