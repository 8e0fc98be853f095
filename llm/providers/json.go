package providers

import (
	"bytes"
	"errors"
	"unicode/utf8"

	"github.com/tract-vcs/tract/internal/llm/rawjson"
)

// item is a JSON object that is being taken apart: some of its members become
// fields of a block, the rest is kept as it is.
type item struct {
	rawjson.Value
	taken []string
}

// text takes a member that is a string and not empty.
func (i *item) text(key string) string {
	v := i.Get(key)
	if v.Kind() != rawjson.KindString || len(v) == len(`""`) {
		return ""
	}
	i.taken = append(i.taken, key)
	return v.Text()
}

// string takes a member that is a string, empty or not.
func (i *item) string(key string) string {
	if i.Get(key).Kind() != rawjson.KindString {
		return ""
	}
	return i.take(key).Text()
}

// take takes a member of any kind.
func (i *item) take(key string) rawjson.Value {
	v := i.Get(key)
	if v != nil {
		i.taken = append(i.taken, key)
	}
	return v
}

// isError takes the member is_error, if it is true.
func (i *item) isError() bool {
	is := i.Get("is_error").Bool()
	if is {
		i.take("is_error")
	}
	return is
}

// inner takes a member that is an object apart.
func (i *item) inner(key string) item { return item{Value: i.take(key)} }

// rest is an object of the members that nobody took, without the keys that are
// not wanted in any case; nil when there are none.
func (i *item) rest(unwanted ...string) []byte {
	left := rawjson.Without(i.Value, append(unwanted, i.taken...)...)
	for range left.Members() {
		return bytes.Clone(left)
	}
	return nil
}

// hollow tells whether a value holds nothing, or is not there.
func hollow(v rawjson.Value) bool {
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
	return v.Kind() == rawjson.KindArray || v.Kind() == rawjson.KindObject
}

// told tells whether any member of an object holds something.
func told(v rawjson.Value) bool {
	for _, member := range v.Members() {
		if !hollow(member) {
			return true
		}
	}
	return false
}

// some is an object that has members, else nil.
func some(v rawjson.Value) rawjson.Value {
	for range v.Members() {
		return v
	}
	return nil
}

// nonEmpty is a value that is not hollow, else nil.
func nonEmpty(v rawjson.Value) rawjson.Value {
	if hollow(v) {
		return nil
	}
	return v
}

// array is a list of values.
func array(list []rawjson.Value) rawjson.Value {
	var a rawjson.Array
	for _, v := range list {
		a.Add(v)
	}
	return a.Bytes()
}

// extended is an extra with one more member. Two objects become one.
func extended(extra []byte, key string, v rawjson.Value) []byte {
	if v == nil {
		return extra
	}
	var o, both rawjson.Object
	o.Merge(extra)
	if was := o.Bytes().Get(key); was.Kind() == rawjson.KindObject && v.Kind() == rawjson.KindObject {
		both.Merge(v)
		both.Merge(was)
		v = both.Bytes()
	}
	o.Set(key, v)
	return bytes.Clone(o.Bytes())
}

// plain is a string as it reads and any other value as JSON; nothing for null.
func plain(v rawjson.Value) string {
	switch v.Kind() {
	case rawjson.KindString:
		return v.Text()
	case rawjson.KindAbsent, rawjson.KindNull:
		return ""
	}
	return string(v)
}

// sendable is v with U+FFFD for what no server takes: invalid UTF-8, and escapes
// of half a surrogate pair.
func sendable(v rawjson.Value) rawjson.Value {
	if utf8.Valid(v) && !bytes.Contains(v, []byte(`\ud`)) && !bytes.Contains(v, []byte(`\uD`)) {
		return v
	}
	switch v.Kind() {
	case rawjson.KindString:
		return rawjson.AppendString(nil, v.Text())
	case rawjson.KindArray:
		var a rawjson.Array
		for e := range v.Elements() {
			a.Add(sendable(e))
		}
		return a.Bytes()
	case rawjson.KindObject:
		var once, o rawjson.Object
		once.Merge(v) // of members with equal keys the last counts
		for key, e := range once.Bytes().Members() {
			o.Set(key, sendable(e))
		}
		return o.Bytes()
	}
	return v
}

// cutShort tells whether a text is the beginning of JSON: a provider ends a call
// at the output limit in the middle of its arguments.
func cutShort(text string) bool {
	_, err := rawjson.Parse([]byte(text))
	var syntax *rawjson.SyntaxError
	return errors.As(err, &syntax) && syntax.Truncated
}

// maxExcerpt is how many bytes of an answer that cannot be read are shown.
const maxExcerpt = 120

// excerpt is the beginning of a text, not cut inside a character.
func excerpt(text []byte) []byte {
	text = bytes.TrimSpace(text)
	if len(text) <= maxExcerpt {
		return text
	}
	n := maxExcerpt
	for n > maxExcerpt-utf8.UTFMax && !utf8.RuneStart(text[n]) {
		n--
	}
	return append(text[:n:n], "..."...)
}

// numbered is the elements of an array, with their places.
func numbered(v rawjson.Value) func(yield func(int, rawjson.Value) bool) {
	return func(yield func(int, rawjson.Value) bool) {
		i := 0
		for e := range v.Elements() {
			if !yield(i, e) {
				return
			}
			i++
		}
	}
}
