// Package canonical writes and reads canonical records: bytes for which there is
// exactly one encoding of each value, so that equal values have equal hashes.
//
// A record is in the protobuf wire format with the freedom taken out: fields
// ascend, varints are minimal, a zero value is absent, a map is a run of pairs
// with ascending keys, strings are any bytes. [Encoder] cannot write anything
// else and [Decoder] refuses anything else, an unknown or repeated field
// included. So decoding and encoding again gives the same bytes, or an error.
//
// Use it as
//
//	var e canonical.Encoder
//	e.Uint(1, 7)
//	e.String(2, "text")
//	record := e.Bytes()
//
//	d := canonical.NewDecoder(record)
//	for d.Next() {
//		switch d.Field() {
//		case 1:
//			n = d.Uint()
//		case 2:
//			s = d.String()
//		}
//	}
//	err := d.Err()
//
// A field that the switch does not read is an error. Nothing here allocates but
// the strings that a caller reads and the buffer that is written.
package canonical

import (
	"errors"
	"fmt"
	"iter"
	"slices"
)

// ErrMalformed is wrapped by every error of a [Decoder].
var ErrMalformed = errors.New("not a canonical record")

// Encoder builds one record. The zero value is ready for use. Fields are to be
// written in ascending order; an Encoder panics when they are not, because that
// is a mistake in the program and never in its input.
type Encoder struct {
	buf  []byte
	last int
}

// smallRecord is the first capacity of an encoder without a buffer: most records fit, apart from
// their texts.
const smallRecord = 120

// NewEncoder returns an encoder that writes into the spare capacity of buf, and allocates where
// that is not enough.
func NewEncoder(buf []byte) Encoder { return Encoder{buf: buf[len(buf):]} }

// Bytes returns the record. It stays valid until the next write.
func (e *Encoder) Bytes() []byte { return e.buf }

func (e *Encoder) tag(field int, wire uint64, repeat bool) {
	if field < e.last || field == e.last && !repeat {
		panic(fmt.Sprintf("canonical: field %d written after field %d", field, e.last))
	}
	if e.last = field; e.buf == nil {
		e.buf = make([]byte, 0, smallRecord)
	}
	e.buf = appendNumber(e.buf, uint64(field)<<3|wire)
}

// Uint writes v, or nothing when it is zero.
func (e *Encoder) Uint(field int, v uint64) {
	switch {
	case v == 0:
	case v < 0x80 && field < 0x10 && field > e.last && cap(e.buf)-len(e.buf) >= 2: // as most fields are
		e.last, e.buf = field, append(e.buf, byte(field<<3|wireVarint), byte(v))
	default:
		e.tag(field, wireVarint, false)
		e.buf = appendNumber(e.buf, v)
	}
}

// Int writes a signed number as zigzag, or nothing when it is zero.
func (e *Encoder) Int(field int, v int64) { e.Uint(field, zigzag(v)) }

// Bool writes v, or nothing when it is false.
func (e *Encoder) Bool(field int, v bool) {
	if v {
		e.Uint(field, 1)
	}
}

// String writes the bytes of s, or nothing when it is empty.
func (e *Encoder) String(field int, s string) {
	if s != "" {
		e.tag(field, wireBytes, false)
		e.buf = append(appendNumber(e.buf, uint64(len(s))), s...)
	}
}

// Raw writes b, or nothing when it is empty.
func (e *Encoder) Raw(field int, b []byte) {
	if len(b) != 0 {
		e.tag(field, wireBytes, false)
		e.buf = append(appendNumber(e.buf, uint64(len(b))), b...)
	}
}

// Item writes one element of a repeated field. Elements keep their order and
// may be empty.
func (e *Encoder) Item(field int, b []byte) {
	e.tag(field, wireBytes, true)
	e.buf = append(appendNumber(e.buf, uint64(len(b))), b...)
}

// Items writes every string of list as an element of a repeated field.
func (e *Encoder) Items(field int, list []string) {
	for _, s := range list {
		e.tag(field, wireBytes, true)
		e.buf = append(appendNumber(e.buf, uint64(len(s))), s...)
	}
}

// Uints writes a list of numbers as one value, or nothing when it is empty.
func (e *Encoder) Uints(field int, list []uint64) {
	var b []byte
	for _, v := range list {
		b = appendNumber(b, v)
	}
	e.Raw(field, b)
}

// Map writes m as a run of pairs with ascending keys.
func (e *Encoder) Map(field int, m map[string]string) {
	if len(m) == 0 {
		return
	}
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	var buf [256]byte
	for _, k := range keys {
		pair := NewEncoder(buf[:0])
		pair.String(1, k)
		pair.String(2, m[k])
		e.Item(field, pair.Bytes())
	}
}

// Decoder reads one record. It never panics and never reads past the record.
type Decoder struct {
	rest  []byte
	text  string // the same bytes as the record, or empty
	field int    // of the current value
	prev  int    // of the value before it
	key   string // last key of the map being read
	num   uint64 // the current value, when it is a number
	raw   []byte // the current value, when it is bytes
	bytes bool   // which of the two it is
	open  bool   // the current value was not read yet
	again bool   // the next Next stays at the current value
	err   error
}

// NewDecoder returns a decoder of the record b. The decoder keeps b and returns parts of it.
func NewDecoder(b []byte) *Decoder { return &Decoder{rest: b} }

func (d *Decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: "+format, append([]any{ErrMalformed}, args...)...)
	}
	d.rest, d.open = nil, false
}

// Reset makes the decoder read the record b. text is empty or has the same bytes: String then
// returns parts of text, without a copy.
func (d *Decoder) Reset(b []byte, text string) { *d = Decoder{rest: b, text: text} }

// Next moves to the next field and reports whether there is one.
func (d *Decoder) Next() bool {
	if d.again {
		d.again = false
		return d.err == nil
	}
	if d.open {
		d.fail("unknown field %d", d.field)
	}
	if d.err != nil || len(d.rest) == 0 {
		return false
	}
	tag, n := number(d.rest)
	if n == 0 || tag>>3 == 0 || tag>>3 > maxField {
		d.fail("bad field tag")
		return false
	}
	num, wire := int(tag>>3), tag&7
	if num < d.field {
		d.fail("field %d after field %d", num, d.field)
		return false
	}
	d.rest = d.rest[n:]
	if num != d.field {
		d.key = ""
	}
	d.prev, d.field, d.open = d.field, num, true
	return d.value(wire)
}

func (d *Decoder) value(wire uint64) bool {
	v, n := number(d.rest)
	if n == 0 {
		d.fail("field %d: bad number", d.field)
		return false
	}
	d.rest = d.rest[n:]
	switch wire {
	case wireVarint:
		d.num, d.raw, d.bytes = v, nil, false
	case wireBytes:
		if v > uint64(len(d.rest)) {
			d.fail("field %d: %d bytes wanted, %d left", d.field, v, len(d.rest))
			return false
		}
		d.num, d.raw, d.bytes = 0, d.rest[:v:v], true
		d.rest = d.rest[v:]
	default:
		d.fail("field %d: wire type %d", d.field, wire)
		return false
	}
	return true
}

// Again makes the next Next stay at the current field, which was not read yet, so that another
// loop can read the rest of the record.
func (d *Decoder) Again() { d.again = d.open }

// Field returns the number of the field that the last Next moved to.
func (d *Decoder) Field() int { return d.field }

// Err returns the first error; nil: the whole record was read.
func (d *Decoder) Err() error {
	if d.err == nil && d.open && !d.again {
		d.fail("unknown field %d", d.field)
	}
	return d.err
}

// Refuse makes the record invalid because of the current field. Err returns why.
func (d *Decoder) Refuse(why string) { d.fail("field %d: %s", d.field, why) }

func (d *Decoder) take(bytes, repeat bool) bool {
	switch {
	case d.err != nil:
		return false
	case d.bytes != bytes:
		d.fail("field %d: wrong type", d.field)
		return false
	case !repeat && d.field == d.prev:
		d.fail("field %d twice", d.field)
		return false
	case !repeat && d.num == 0 && len(d.raw) == 0:
		d.fail("field %d: zero value written", d.field)
		return false
	}
	d.open = false
	return true
}

// Uint returns the current number.
func (d *Decoder) Uint() uint64 {
	if !d.take(false, false) {
		return 0
	}
	return d.num
}

// Int returns the current signed number.
func (d *Decoder) Int() int64 { return unzigzag(d.Uint()) }

// Small returns the current number, which must be below limit.
func (d *Decoder) Small(limit uint64) uint64 {
	v := d.Uint()
	if v >= limit {
		d.Refuse(fmt.Sprintf("%d is out of range", v))
		return 0
	}
	return v
}

// Bool returns the current boolean.
func (d *Decoder) Bool() bool { return d.Small(2) == 1 }

// String returns the current bytes: a copy, or a part of the text given to Reset.
func (d *Decoder) String() string {
	raw := d.Raw()
	if d.text == "" {
		return string(raw)
	}
	end := len(d.text) - len(d.rest)
	return d.text[end-len(raw) : end]
}

// Raw returns the current bytes, a part of the record.
func (d *Decoder) Raw() []byte {
	if !d.take(true, false) {
		return nil
	}
	return d.raw
}

// Item returns one element of a repeated field, a part of the record.
func (d *Decoder) Item() []byte {
	if !d.take(true, true) {
		return nil
	}
	return d.raw
}

// Uints returns the current list of numbers.
func (d *Decoder) Uints() (list []uint64) {
	for b := d.Raw(); len(b) > 0; {
		v, n := number(b)
		if n == 0 {
			d.fail("field %d: bad number", d.field)
			return nil
		}
		list, b = append(list, v), b[n:]
	}
	return list
}

// Pair returns one entry of a map.
func (d *Decoder) Pair() (key, value string) {
	first := d.field != d.prev
	sub := NewDecoder(d.Item())
	for sub.Next() {
		switch sub.Field() {
		case 1:
			key = sub.String()
		case 2:
			value = sub.String()
		}
	}
	if err := sub.Err(); err != nil {
		d.fail("field %d: %v", d.field, err)
		return "", ""
	}
	if !first && key <= d.key {
		d.fail("field %d: map key %q after %q", d.field, key, d.key)
		return "", ""
	}
	d.key = key
	return key, value
}

// Fields yields the number of each field; the loop body reads the value.
func (d *Decoder) Fields() iter.Seq[int] {
	return func(yield func(int) bool) {
		for d.Next() {
			if !yield(d.Field()) {
				return
			}
		}
	}
}
