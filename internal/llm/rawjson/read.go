package rawjson

import (
	"bytes"
	"errors"
	"unicode/utf8"
)

// item is a JSON object that is being taken apart: some of its members become
// fields of a block, the rest is kept as it is.
type ObjectReader struct {
	Value
	Taken []string
}

// text takes a member that is a string and not empty.
func (i *ObjectReader) TakeText(key string) string {
	v := i.Get(key)
	if v.Kind() != KindString || len(v) == len(`""`) {
		return ""
	}
	i.Taken = append(i.Taken, key)
	return v.Text()
}

// string takes a member that is a string, empty or not.
func (i *ObjectReader) TakeString(key string) string {
	if i.Get(key).Kind() != KindString {
		return ""
	}
	return i.Take(key).Text()
}

// take takes a member of any kind.
func (i *ObjectReader) Take(key string) Value {
	v := i.Get(key)
	if v != nil {
		i.Taken = append(i.Taken, key)
	}
	return v
}

// isError takes the member is_error, if it is true.
func (i *ObjectReader) TakeIsError() bool {
	is := i.Get("is_error").Bool()
	if is {
		i.Take("is_error")
	}
	return is
}

// inner takes a member that is an object apart.
func (i *ObjectReader) TakeObject(key string) ObjectReader { return ObjectReader{Value: i.Take(key)} }

// rest is an object of the members that nobody took, without the keys that are
// not wanted in any case; nil when there are none.
func (i *ObjectReader) Rest(unwanted ...string) []byte {
	rest := Without(i.Value, append(unwanted, i.Taken...)...)
	for range rest.Members() {
		return bytes.Clone(rest)
	}
	return nil
}

// hollow tells whether a value holds nothing, or is not there.
func IsEmpty(v Value) bool {
	switch string(v) {
	case "", "null", `""`:
		return true
	}
	for range v.Elements() {
		return false
	}
	for range v.Members() {
		return false
	}
	return v.Kind() == KindArray || v.Kind() == KindObject
}

// told tells whether any member of an object holds something.
func HasContent(v Value) bool {
	for _, member := range v.Members() {
		if !IsEmpty(member) {
			return true
		}
	}
	return false
}

// some is an object that has members, else nil.
func NonEmptyObject(v Value) Value {
	for range v.Members() {
		return v
	}
	return nil
}

// nonEmpty is a value that is not hollow, else nil.
func NonEmpty(v Value) Value {
	if IsEmpty(v) {
		return nil
	}
	return v
}

// array is a list of values.
func ArrayOf(list []Value) Value {
	var a Array
	for _, v := range list {
		a.Add(v)
	}
	return a.Bytes()
}

// extended is an extra with one more member. Two objects become one.
func WithMember(extra []byte, key string, v Value) []byte {
	if v == nil {
		return extra
	}
	var o, both Object
	o.Merge(extra)
	if previous := o.Bytes().Get(key); previous.Kind() == KindObject && v.Kind() == KindObject {
		both.Merge(v)
		both.Merge(previous)
		v = both.Bytes()
	}
	o.Set(key, v)
	return bytes.Clone(o.Bytes())
}

// plain is a string as it reads and any other value as JSON; nothing for null.
func TextOrJSON(v Value) string {
	switch v.Kind() {
	case KindString:
		return v.Text()
	case KindAbsent, KindNull:
		return ""
	}
	return string(v)
}

// sendable is v with U+FFFD for what no server takes: invalid UTF-8, and escapes
// of half a surrogate pair.
func ValidUTF8(v Value) Value {
	if utf8.Valid(v) && !bytes.Contains(v, []byte(`\ud`)) && !bytes.Contains(v, []byte(`\uD`)) {
		return v
	}
	switch v.Kind() {
	case KindString:
		return AppendString(nil, v.Text())
	case KindArray:
		var a Array
		for e := range v.Elements() {
			a.Add(ValidUTF8(e))
		}
		return a.Bytes()
	case KindObject:
		var once, o Object
		once.Merge(v) // of members with equal keys the last counts
		for key, e := range once.Bytes().Members() {
			o.Set(key, ValidUTF8(e))
		}
		return o.Bytes()
	}
	return v
}

// cutShort tells whether a text is the beginning of JSON: a provider ends a call
// at the output limit in the middle of its arguments.
func IsTruncated(text string) bool {
	_, err := Parse([]byte(text))
	var syntax *SyntaxError
	return errors.As(err, &syntax) && syntax.Truncated
}

// maxExcerpt is how many bytes of an answer that cannot be read are shown.
const MaxExcerpt = 120

// excerpt is the beginning of a text, not cut inside a character.
func Excerpt(text []byte) []byte {
	text = bytes.TrimSpace(text)
	if len(text) <= MaxExcerpt {
		return text
	}
	n := MaxExcerpt
	for n > MaxExcerpt-utf8.UTFMax && !utf8.RuneStart(text[n]) {
		n--
	}
	return append(text[:n:n], "..."...)
}

// numbered is the elements of an array, with their places.
func Indexed(v Value) func(yield func(int, Value) bool) {
	return func(yield func(int, Value) bool) {
		i := 0
		for e := range v.Elements() {
			if !yield(i, e) {
				return
			}
			i++
		}
	}
}
