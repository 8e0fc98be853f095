package rawjson

import (
	"bytes"
	"fmt"
	"iter"
	"strconv"
)

// Value is the text of one JSON value, without white space around it. It shares the bytes
// of the text that contains it, and is valid as long as they are. The nil Value means
// absent: it is the value of a missing member.
type Value []byte

// Kind is the kind of a [Value].
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

// Kind returns the kind of v, which its first byte determines.
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

// Get returns the member of nested objects at the path of keys. It returns nil if a member
// is missing or a value on the path is not an object, and v itself if there are no keys. Of
// members with equal keys it returns the last. Its time is proportional to the length of
// the objects. It allocates nothing unless a key in the text has escapes.
func (v Value) Get(keys ...string) Value {
	for _, key := range keys {
		var found Value
		c := memberCursor(v)
		for raw, val := c.next(); val != nil; raw, val = c.next() {
			if raw.textEquals(key) {
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
		c := memberCursor(v)
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
		c := elementCursor(v)
		for _, val := c.next(); val != nil; _, val = c.next() {
			if !yield(val) {
				return
			}
		}
	}
}

// ElementsEnd returns where the first n elements of the array under a key begin and end in the text
// of object v. There must be an array with so many elements; of members with equal keys the first
// counts.
func ElementsEnd(v Value, key string, n int) (begin, end int) {
	c := memberCursor(v)
	for raw, list := c.next(); list != nil; raw, list = c.next() {
		if raw.textEquals(key) {
			begin = c.i - len(list) + 1
			in := elementCursor(list)
			for range n {
				in.next()
			}
			return begin, begin - 1 + in.i
		}
	}
	return 0, 0
}

// At returns element i of an array, counted from 0, or nil if there is none. Its time is
// proportional to the length of the elements before it: use [Value.Elements] to read all.
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

// Int returns v as an integer, and reports whether v is an integer that fits an int64, in
// any notation (12, 12.0 and 1.2e1 are 12).
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

// textEquals reports whether v, which must be a string, decodes to s.
func (v Value) textEquals(s string) bool {
	in := v.inner()
	if bytes.IndexByte(in, '\\') < 0 {
		return string(in) == s
	}
	return v.Text() == s
}

// How a Value is read without a tree.
//
// A Value is only text, so each call of Get, Members or Elements scans it again. A cursor
// returns the members or elements one by one: it skips white space and commas, and skipValue
// finds the end of the next value by counting brackets and skipping strings, without looking
// inside. This is fast because Parse has checked the text before. For text that Parse did not
// check, the functions stay within its bounds and always make progress.

// cursor iterates over the members of an object or the elements of an array. It does not
// check the grammar, and stops where the text is clearly invalid.
type cursor struct {
	text  Value
	i     int // len(text): at the end
	keyed bool
}

// memberCursor returns a cursor over the members of v; an empty one if v is not an object.
func memberCursor(v Value) cursor { return openCursor(v, KindObject) }

// elementCursor returns a cursor over the elements of v; an empty one if v is not an array.
func elementCursor(v Value) cursor { return openCursor(v, KindArray) }

// openCursor returns a cursor at the beginning of v; an empty one if v is not of kind k.
func openCursor(v Value, k Kind) cursor {
	if v.Kind() != k {
		return cursor{}
	}
	return cursor{text: v, i: 1, keyed: k == KindObject}
}

// next returns the next value and, in an object, its key in JSON form with quotes. Both are
// nil at the end.
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

// skipSpace returns the index of the next byte from i that is not white space.
func skipSpace(b []byte, i int) int {
	for i < len(b) && isSpace(b[i]) {
		i++
	}
	return i
}

// skipString returns the index after the string that begins with the quote at i. A later
// quote ends the string unless an odd number of backslashes precedes it.
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

// skipValue returns the index after the value that begins at i, or i if no value begins
// there.
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

// isEnd marks the bytes that end a number or a literal.
var isEnd = [256]bool{'"': true, '{': true, '[': true, '}': true, ']': true, ',': true, ':': true, ' ': true, '\t': true, '\n': true, '\r': true}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

func isDigit(c byte) bool { return c-'0' <= 9 }
