package rawjson

import (
	"fmt"
	"slices"
	"strconv"
)

// Compact returns v without white space between the tokens; strings and numbers
// keep their bytes. It returns v itself if there is no such white space.
func Compact(v Value) Value {
	var out Value
	copied := 0
	for i := 0; i < len(v); {
		switch c := v[i]; {
		case c == '"':
			i = skipString(v, i)
		case isSpace(c):
			if out == nil {
				out = make(Value, 0, len(v))
			}
			out = append(out, v[copied:i]...)
			i++
			copied = i
		default:
			i++
		}
	}
	if out == nil {
		return v
	}
	return append(out, v[copied:]...)
}

// Without returns the object v without the members that have one of the keys; the
// other members keep their bytes and their order. It returns v itself if v has none of
// the keys or is not an object.
func Without(v Value, keys ...string) Value {
	var kept [][2]Value
	hit := false
	c := memberCursor(v)
	for raw, val := c.next(); val != nil; raw, val = c.next() {
		if slices.ContainsFunc(keys, raw.textEquals) {
			hit = true
		} else {
			kept = append(kept, [2]Value{raw, val})
		}
	}
	if !hit {
		return v
	}
	var o Object
	for _, m := range kept {
		o.appendMember(m[0], m[1])
	}
	return o.Bytes()
}

// Object builds an object member by member. The zero value is an empty object,
// ready to use. It is not safe for concurrent use.
type Object struct {
	buf  []byte // the object without its closing brace; empty: no member yet
	keys map[string]struct{}
}

// NewObject returns an object with members, given as alternating keys and values. A value is a
// string, which is added by [Object.SetString], an int, or a Value, []byte or *Object, which
// is added by [Object.Set]. NewObject panics for any other type.
func NewObject(members ...any) *Object {
	o := &Object{}
	for i := 0; i < len(members); i += 2 {
		key := members[i].(string)
		switch v := members[i+1].(type) {
		case string:
			o.SetString(key, v)
		case int:
			o.SetInt(key, int64(v))
		case Value:
			o.Set(key, v)
		case []byte:
			o.Set(key, v)
		case *Object:
			o.Set(key, v.Bytes())
		default:
			panic(fmt.Sprintf("rawjson: member %s is a %T", key, v))
		}
	}
	return o
}

// Set adds a member whose value is v, which must be JSON and is copied. It first removes
// a member that has the same key, so no key is duplicated. An absent v changes nothing.
func (o *Object) Set(key string, v Value) {
	if len(v) != 0 {
		o.beginMember(key)
		o.buf = append(o.buf, v...)
	}
}

// SetString adds a member whose value is a string, encoded by [AppendString]. See Set.
func (o *Object) SetString(key, s string) {
	o.beginMember(key)
	o.buf = AppendString(o.buf, s)
}

// SetNonEmpty calls SetString unless s is empty.
func (o *Object) SetNonEmpty(key, s string) {
	if s != "" {
		o.SetString(key, s)
	}
}

// SetInt adds a member whose value is an integer. See Set.
func (o *Object) SetInt(key string, n int64) {
	o.beginMember(key)
	o.buf = strconv.AppendInt(o.buf, n, 10)
}

// SetBool adds a member whose value is true or false. See Set.
func (o *Object) SetBool(key string, b bool) {
	o.beginMember(key)
	o.buf = strconv.AppendBool(o.buf, b)
}

// SetTrue adds a member whose value is true if b is true; else it does nothing.
func (o *Object) SetTrue(key string, b bool) {
	if b {
		o.SetBool(key, true)
	}
}

// Merge adds the members of the object extra whose keys o does not have yet. Keys and
// values keep their bytes. If extra has members with equal keys, Merge uses the last one.
// An extra that is not an object changes nothing. Merge returns o.
func (o *Object) Merge(extra Value) *Object {
	last := lastMembers(extra)
	c := memberCursor(extra)
	for raw, val := c.next(); val != nil; raw, val = c.next() {
		key := raw.Text()
		if val, ok := last[key]; ok {
			delete(last, key)
			if o.addKey(key) {
				o.appendMember(raw, val)
			}
		}
	}
	return o
}

// Bytes returns the object. The bytes are valid until the next change of o, which may
// overwrite them.
func (o *Object) Bytes() Value {
	if len(o.buf) == 0 {
		return Value("{}")
	}
	return append(o.buf, '}')
}

// beginMember writes a comma or the opening brace, the key and the colon. It first removes
// a member that has the same key.
func (o *Object) beginMember(key string) {
	if !Clean(key) {
		key = Value(AppendString(nil, key)).Text()
	}
	if !o.addKey(key) {
		o.buf = o.bufferWithout(key)
	}
	o.buf = append(AppendString(appendOpeningOrComma(o.buf, '{'), key), ':')
}

// addKey records a key and reports whether no member had it before.
func (o *Object) addKey(key string) (isNew bool) {
	if o.keys == nil {
		o.keys = map[string]struct{}{}
	}
	n := len(o.keys)
	o.keys[key] = struct{}{}
	return len(o.keys) > n
}

// bufferWithout returns the buffer without the member that has this key.
func (o *Object) bufferWithout(key string) []byte {
	v := Without(o.Bytes(), key)
	if len(v) <= len("{}") {
		return nil
	}
	return v[:len(v)-1]
}

// appendMember appends a member whose key is in JSON form, with its quotes.
func (o *Object) appendMember(rawKey, val Value) {
	o.buf = append(append(append(appendOpeningOrComma(o.buf, '{'), rawKey...), ':'), val...)
}

// Array builds an array element by element. The zero value is an empty array,
// ready to use. It is not safe for concurrent use.
type Array struct {
	buf []byte // the array without its closing bracket; empty: no element yet
}

// Add adds the element v, which must be JSON and is copied. An absent v adds nothing.
func (a *Array) Add(v Value) {
	if len(v) != 0 {
		a.buf = append(appendOpeningOrComma(a.buf, '['), v...)
	}
}

// AddString adds a string, encoded by [AppendString].
func (a *Array) AddString(s string) {
	a.buf = AppendString(appendOpeningOrComma(a.buf, '['), s)
}

// Bytes returns the array. The bytes are valid until the next change of a, which may
// overwrite them.
func (a *Array) Bytes() Value {
	if len(a.buf) == 0 {
		return Value("[]")
	}
	return append(a.buf, ']')
}

// appendOpeningOrComma appends the opening bracket if buf is empty, else a comma.
func appendOpeningOrComma(buf []byte, opening byte) []byte {
	if len(buf) == 0 {
		return append(buf, opening)
	}
	return append(buf, ',')
}
