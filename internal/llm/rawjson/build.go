package rawjson

import (
	"fmt"
	"slices"
	"strconv"
)

// Compact returns v without white space between the tokens; strings and numbers
// keep their bytes. It returns v itself when there is nothing to leave out.
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
// other members keep their bytes and their order. It returns v itself when there
// is nothing to take out or v is not an object.
func Without(v Value, keys ...string) Value {
	listed := func(raw Value) bool { return slices.ContainsFunc(keys, raw.is) }
	hit := false
	c := members(v)
	for raw, val := c.next(); val != nil && !hit; raw, val = c.next() {
		hit = listed(raw)
	}
	if !hit {
		return v
	}
	var o Object
	c = members(v)
	for raw, val := c.next(); val != nil; raw, val = c.next() {
		if !listed(raw) {
			o.append(raw, val)
		}
	}
	return o.Bytes()
}

// Object writes an object member by member. The zero value is an empty object,
// ready for use. It is not for use by several goroutines at once.
type Object struct {
	buf  []byte // without the closing brace; empty: no member yet
	keys map[string]struct{}
}

// NewObject returns an object with members, given as keys and values in turn: strings, as
// [Object.SetString] adds them, numbers, other objects, and values or other JSON, as
// [Object.Set] does. It panics for anything else.
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

// Set adds a member whose value is the bytes of v, which have to be JSON and are
// copied. A member of that key is taken out first, so that no key is there twice.
// An absent v changes nothing.
func (o *Object) Set(key string, v Value) {
	if len(v) != 0 {
		o.key(key)
		o.buf = append(o.buf, v...)
	}
}

// SetString adds a member that is a string, as Set does, written as by
// [AppendString].
func (o *Object) SetString(key, s string) {
	o.key(key)
	o.buf = AppendString(o.buf, s)
}

// SetNonEmpty is SetString for a text that is not empty; for an empty one it does
// nothing.
func (o *Object) SetNonEmpty(key, s string) {
	if s != "" {
		o.SetString(key, s)
	}
}

// SetInt adds a member that is a number, as Set does.
func (o *Object) SetInt(key string, n int64) {
	o.key(key)
	o.buf = strconv.AppendInt(o.buf, n, 10)
}

// SetBool adds a member that is true or false, as Set does.
func (o *Object) SetBool(key string, b bool) {
	o.key(key)
	o.buf = strconv.AppendBool(o.buf, b)
}

// SetTrue is SetBool for what is true; for what is not it does nothing.
func (o *Object) SetTrue(key string, b bool) {
	if b {
		o.SetBool(key, true)
	}
}

// Merge adds the members of the object extra whose keys are not there yet, keys
// and values with the bytes they have. Of members of extra with equal keys the
// last counts. An extra that is not an object changes nothing. It returns o.
func (o *Object) Merge(extra Value) *Object {
	last := lastMembers(extra)
	c := members(extra)
	for raw, val := c.next(); val != nil; raw, val = c.next() {
		key := raw.Text()
		if val, ok := last[key]; ok {
			delete(last, key)
			if o.isNew(key) {
				o.append(raw, val)
			}
		}
	}
	return o
}

// Bytes returns the object. It is valid until the next change of o, which may
// overwrite it.
func (o *Object) Bytes() Value {
	if len(o.buf) == 0 {
		return Value("{}")
	}
	return append(o.buf, '}')
}

// key writes what stands before the value of a member.
func (o *Object) key(key string) {
	if !Clean(key) {
		key = Value(AppendString(nil, key)).Text()
	}
	if !o.isNew(key) {
		o.buf = o.without(key)
	}
	o.buf = append(AppendString(appendComma(o.buf, '{'), key), ':')
}

// isNew notes a key and reports whether no member has it yet.
func (o *Object) isNew(key string) bool {
	if o.keys == nil {
		o.keys = map[string]struct{}{}
	}
	n := len(o.keys)
	o.keys[key] = struct{}{}
	return len(o.keys) > n
}

// without returns the buffer with the member of key taken out.
func (o *Object) without(key string) []byte {
	v := Without(o.Bytes(), key)
	if len(v) <= len("{}") {
		return nil
	}
	return v[:len(v)-1]
}

// append writes a member as it lies in some text.
func (o *Object) append(raw, val Value) {
	o.buf = append(append(append(appendComma(o.buf, '{'), raw...), ':'), val...)
}

// Array writes an array element by element. The zero value is an empty array,
// ready for use. It is not for use by several goroutines at once.
type Array struct {
	buf []byte // without the closing bracket; empty: no element yet
}

// Add adds the bytes of v, which have to be JSON and are copied. An absent v adds
// nothing.
func (a *Array) Add(v Value) {
	if len(v) != 0 {
		a.buf = append(appendComma(a.buf, '['), v...)
	}
}

// AddString adds a string, written as by [AppendString].
func (a *Array) AddString(s string) {
	a.buf = AppendString(appendComma(a.buf, '['), s)
}

// Bytes returns the array. It is valid until the next change of a, which may
// overwrite it.
func (a *Array) Bytes() Value {
	if len(a.buf) == 0 {
		return Value("[]")
	}
	return append(a.buf, ']')
}

// appendComma appends what stands before a member or an element: the opening bracket
// before the first one, a comma before the others.
func appendComma(buf []byte, opening byte) []byte {
	if len(buf) == 0 {
		return append(buf, opening)
	}
	return append(buf, ',')
}
