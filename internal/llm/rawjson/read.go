package rawjson

import (
	"bytes"
	"errors"
	"unicode/utf8"
)

// ObjectReader reads members of an object and records their keys in Taken, so that the caller
// can keep the other members.
type ObjectReader struct {
	Value
	Taken []string
}

// TakeText takes a member that is a string and not empty, and returns its text. It does not
// take any other member, and returns "" for it.
func (i *ObjectReader) TakeText(key string) string {
	v := i.Get(key)
	if v.Kind() != KindString || len(v) == len(`""`) {
		return ""
	}
	i.Taken = append(i.Taken, key)
	return v.Text()
}

// TakeString takes a member that is a string, empty or not, and returns its text.
func (i *ObjectReader) TakeString(key string) string {
	if i.Get(key).Kind() != KindString {
		return ""
	}
	return i.Take(key).Text()
}

// Take takes a member of any kind and returns its value.
func (i *ObjectReader) Take(key string) Value {
	v := i.Get(key)
	if v != nil {
		i.Taken = append(i.Taken, key)
	}
	return v
}

// TakeIsError takes the member is_error if it is true, and reports whether it is.
func (i *ObjectReader) TakeIsError() bool {
	is := i.Get("is_error").Bool()
	if is {
		i.Take("is_error")
	}
	return is
}

// TakeObject takes a member and returns a reader for the members of its value.
func (i *ObjectReader) TakeObject(key string) ObjectReader { return ObjectReader{Value: i.Take(key)} }

// Rest returns an object of the members that were not taken and are not in unwanted; nil if
// there are none. The bytes are a copy.
func (i *ObjectReader) Rest(unwanted ...string) []byte {
	rest := Without(i.Value, append(unwanted, i.Taken...)...)
	for range rest.Members() {
		return bytes.Clone(rest)
	}
	return nil
}

// IsEmpty reports whether a value is absent, null, "", [] or {}.
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

// HasContent reports whether any member of an object is not empty.
func HasContent(v Value) bool {
	for _, member := range v.Members() {
		if !IsEmpty(member) {
			return true
		}
	}
	return false
}

// NonEmptyObject returns v if it is an object with members, else nil.
func NonEmptyObject(v Value) Value {
	for range v.Members() {
		return v
	}
	return nil
}

// NonEmpty returns v unless it is empty, else nil.
func NonEmpty(v Value) Value {
	if IsEmpty(v) {
		return nil
	}
	return v
}

// ArrayOf returns an array of values.
func ArrayOf(list ...Value) Value {
	var a Array
	for _, v := range list {
		a.Add(v)
	}
	return a.Bytes()
}

// ArrayOfStrings returns an array of strings.
func ArrayOfStrings(list ...string) Value {
	var a Array
	for _, s := range list {
		a.AddString(s)
	}
	return a.Bytes()
}

// WithMember returns object extra with one more member. If v and the present value of the
// member are objects, they are merged, and v takes precedence. A nil v changes nothing.
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

// TextOrJSON returns the text of a string and the JSON of any other value; "" for null.
func TextOrJSON(v Value) string {
	switch v.Kind() {
	case KindString:
		return v.Text()
	case KindAbsent, KindNull:
		return ""
	}
	return string(v)
}

// ValidUTF8 returns v with U+FFFD in place of invalid UTF-8 and of escapes of lone surrogates,
// which servers refuse.
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
		once.Merge(v) // keeps the last of members with equal keys
		for key, e := range once.Bytes().Members() {
			o.Set(key, ValidUTF8(e))
		}
		return o.Bytes()
	}
	return v
}

// IsTruncated reports whether a text is a truncated JSON text. The arguments of a call are
// truncated when the provider reaches the output limit.
func IsTruncated(text string) bool {
	_, err := Parse([]byte(text))
	var syntax *SyntaxError
	return errors.As(err, &syntax) && syntax.Truncated
}

// MaxExcerpt is the largest number of bytes of a malformed text that an error shows.
const MaxExcerpt = 120

// Excerpt returns the beginning of a text, at most MaxExcerpt bytes and whole characters,
// followed by ... if it was cut.
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

// Indexed yields the elements of an array with their indexes.
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
