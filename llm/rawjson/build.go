package rawjson

import (
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
	keys keySet
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

// Merge adds the members of the object extra whose keys are not there yet, keys
// and values with the bytes they have. Of members of extra with equal keys the
// last counts. An extra that is not an object changes nothing.
func (o *Object) Merge(extra Value) {
	last := lastMembers(extra)
	c := members(extra)
	for raw, val := c.next(); val != nil; raw, val = c.next() {
		key := raw.Text()
		if val, ok := last[key]; ok {
			delete(last, key)
			if o.keys.add(key) {
				o.append(raw, val)
			}
		}
	}
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
	if !o.keys.add(key) {
		o.buf = o.without(key)
	}
	o.comma()
	o.buf = append(AppendString(o.buf, key), ':')
}

// without is the buffer with the member of key taken out.
func (o *Object) without(key string) []byte {
	v := Without(o.Bytes(), key)
	if len(v) <= len("{}") {
		return nil
	}
	return v[:len(v)-1]
}

// append writes a member as it lies in some text.
func (o *Object) append(raw, val Value) {
	o.comma()
	o.buf = append(append(append(o.buf, raw...), ':'), val...)
}

func (o *Object) comma() {
	if len(o.buf) == 0 {
		o.buf = append(o.buf, '{')
	} else {
		o.buf = append(o.buf, ',')
	}
}

// keySet is a set of keys that costs no map while it is small.
type keySet struct {
	list []string
	set  map[string]struct{}
}

const smallSet = 16

// add puts key into the set and tells whether it was new.
func (s *keySet) add(key string) bool {
	if s.set == nil {
		if slices.Contains(s.list, key) {
			return false
		}
		if len(s.list) < smallSet {
			s.list = append(s.list, key)
			return true
		}
		s.set = make(map[string]struct{}, 2*smallSet)
		for _, k := range s.list {
			s.set[k] = struct{}{}
		}
	}
	if _, there := s.set[key]; there {
		return false
	}
	s.set[key] = struct{}{}
	return true
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
		if len(a.buf)+len(v)+2 > cap(a.buf) {
			a.buf = slices.Grow(a.buf, len(a.buf)+len(v)+2) // twice as long: long ones are copied less often
		}
		a.comma()
		a.buf = append(a.buf, v...)
	}
}

// AddString adds a string, written as by [AppendString].
func (a *Array) AddString(s string) {
	a.comma()
	a.buf = AppendString(a.buf, s)
}

// Bytes returns the array. It is valid until the next change of a, which may
// overwrite it.
func (a *Array) Bytes() Value {
	if len(a.buf) == 0 {
		return Value("[]")
	}
	return append(a.buf, ']')
}

func (a *Array) comma() {
	if len(a.buf) == 0 {
		a.buf = append(a.buf, '[')
	} else {
		a.buf = append(a.buf, ',')
	}
}
