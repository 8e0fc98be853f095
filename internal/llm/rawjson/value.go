package rawjson

import (
	"bytes"
	"fmt"
	"iter"
	"strconv"
)

// Value is one JSON value as it lies in the text, without white space around it.
// It shares the bytes it was cut from and is valid as long as they are. The nil
// Value is absent: what a member that is not there has for a value.
type Value []byte

// Kind tells what a [Value] is.
type Kind uint8

// The kinds. KindAbsent is the kind of the nil Value and of anything that does
// not begin like a JSON value.
const (
	KindAbsent Kind = iota
	KindNull
	KindBool
	KindNumber
	KindString
	KindArray
	KindObject
)

var kindNames = [...]string{"absent", "null", "bool", "number", "string", "array", "object"}

// String returns the name of the kind in lower case, for messages.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Kind returns what v is, by its first byte.
func (v Value) Kind() Kind {
	if len(v) == 0 {
		return KindAbsent
	}
	switch c := v[0]; c {
	case '{':
		return KindObject
	case '[':
		return KindArray
	case '"':
		return KindString
	case 't', 'f':
		return KindBool
	case 'n':
		return KindNull
	default:
		if c == '-' || isDigit(c) {
			return KindNumber
		}
		return KindAbsent
	}
}

// Get walks down nested objects and returns the member at the end of the path.
// It returns nil when a member is missing or something on the way is not an
// object, and v itself without keys. Of members with equal keys the last counts.
// It takes time in proportion to the length of the objects and allocates nothing,
// unless a key of the text is written with escapes.
func (v Value) Get(keys ...string) Value {
	for _, key := range keys {
		var found Value
		c := members(v)
		for raw, val := c.next(); val != nil; raw, val = c.next() {
			if raw.is(key) {
				found = val
			}
		}
		if v = found; v == nil {
			return nil
		}
	}
	return v
}

// Members yields the members of an object in the order of the text, duplicates
// included, keys decoded as by [Value.Text]. It yields nothing for another kind.
func (v Value) Members() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		c := members(v)
		for raw, val := c.next(); val != nil; raw, val = c.next() {
			if !yield(raw.Text(), val) {
				return
			}
		}
	}
}

// Elements yields the elements of an array. It yields nothing for another kind.
func (v Value) Elements() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		c := elements(v)
		for _, val := c.next(); val != nil; _, val = c.next() {
			if !yield(val) {
				return
			}
		}
	}
}

// At returns element i of an array, counted from 0, or nil when there is none.
// It walks there: use [Value.Elements] to see them all.
func (v Value) At(i int) Value {
	for e := range v.Elements() {
		if i == 0 {
			return e
		}
		i--
	}
	return nil
}

// Bool reports whether v is the literal true.
func (v Value) Bool() bool { return string(v) == "true" }

// Int returns the number v and whether it is one: a whole number that an int64
// can hold, in any notation (12, 12.0 and 1.2e1 are 12).
func (v Value) Int() (int64, bool) {
	if v.Kind() != KindNumber {
		return 0, false
	}
	if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
		return n, true
	}
	n := exactNumber(v)
	if n == nil || !n.IsInt() || !n.Num().IsInt64() {
		return 0, false
	}
	return n.Num().Int64(), true
}

// is reports whether v is a string that decodes to s.
func (v Value) is(s string) bool {
	in := v.inner()
	if bytes.IndexByte(in, '\\') < 0 {
		return string(in) == s
	}
	return v.Text() == s
}

// cursor walks over the members of an object or the elements of an array. It
// trusts the text where it can and stops where it cannot go on.
type cursor struct {
	text  Value
	i     int // len(text): at the end
	keyed bool
}

func members(v Value) cursor { return open(v, KindObject) }

func elements(v Value) cursor { return open(v, KindArray) }

func open(v Value, k Kind) cursor {
	if v.Kind() != k {
		return cursor{}
	}
	return cursor{text: v, i: 1, keyed: k == KindObject}
}

// next returns the next value, nil at the end, and its key where there are keys,
// still in quotes.
func (c *cursor) next() (key, val Value) {
	c.i = skipSpace(c.text, c.i)
	if c.i < len(c.text) && c.text[c.i] == ',' {
		c.i = skipSpace(c.text, c.i+1)
	}
	if c.keyed {
		start := c.i
		if start == len(c.text) || c.text[start] != '"' {
			return nil, nil
		}
		end := skipString(c.text, start)
		key = c.text[start:end:end]
		c.i = skipSpace(c.text, end)
		if c.i == len(c.text) || c.text[c.i] != ':' {
			return nil, nil
		}
		c.i = skipSpace(c.text, c.i+1)
	}
	end := skipValue(c.text, c.i)
	if end == c.i {
		return nil, nil
	}
	val, c.i = c.text[c.i:end:end], end
	return key, val
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && isSpace(b[i]) {
		i++
	}
	return i
}

// skipString returns the index after the string that begins with the quote at i. A quote
// ends it unless an odd number of backslashes stands before; the one at i is none of those.
func skipString(b []byte, i int) int {
	for end := i + 1; ; end++ {
		n := bytes.IndexByte(b[end:], '"')
		if n < 0 {
			return len(b)
		}
		end += n
		from := end
		for b[from-1] == '\\' {
			from--
		}
		if (end-from)%2 == 0 {
			return end + 1
		}
	}
}

// skipValue returns the index after the value that begins at i, or i when none
// begins there.
func skipValue(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			i = skipString(b, i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
			i++
		case ',', ':', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return i
			}
			i++
			continue
		default:
			for i++; i < len(b) && !isEnd[b[i]]; i++ {
			}
		}
		if depth == 0 {
			return i
		}
	}
	return i
}

// isEnd has the bytes that end a number or a literal.
var isEnd = [256]bool{'"': true, '{': true, '[': true, '}': true, ']': true, ',': true, ':': true, ' ': true, '\t': true, '\n': true, '\r': true}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

func isDigit(c byte) bool { return c-'0' <= 9 }
