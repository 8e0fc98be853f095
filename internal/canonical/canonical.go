// Package canonical writes and reads canonical records: bytes for which there is
// exactly one encoding of each value, so that equal values have equal hashes.
//
// A record is in the protobuf wire format with the freedom taken out: fields
// ascend, varints are minimal, a zero value is absent, a map is a run of pairs
// with ascending keys, strings are any bytes. A [Record] cannot write anything
// else and refuses to read anything else, an unknown or repeated field included.
// So decoding and encoding again gives the same bytes, or an error.
//
// A type lists its fields once, for both directions:
//
//	func (p *point) fields(r *canonical.Record) {
//		r.Uint(1, &p.x)
//		r.String(2, &p.name)
//	}
//
//	var w canonical.Record // the zero value writes
//	p.fields(&w)
//	record := w.Bytes()
//
//	r := canonical.NewReader(record)
//	p.fields(&r)
//	err := r.Err()
//
// Writing changes no field. Reading leaves a field that is absent from the record as it
// is, so that it starts from a zero value. Nothing here allocates but what is read and the
// buffer that is written.
package canonical

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
	"unsafe"
)

// ErrMalformed is wrapped by every error of a [Record].
var ErrMalformed = errors.New("not a canonical record")

// Record is one record that is written or read, field by field. The zero value writes.
// Fields are to be listed in ascending order; writing panics when they are not, because
// that is a mistake in the program and never in its input. Reading never panics.
type Record struct {
	buf  []byte // that is written
	last int    // the field that was written last

	reading bool
	rest    []byte // what follows the tag of the next field
	field   int    // number of the next field; 0: there is none
	wire    uint64 // its wire type
	shared  bool   // strings are parts of the record
	err     error
}

// smallRecord is the first capacity of a record that is written: most records fit, apart from
// their texts.
const smallRecord = 120

// NewReader returns a record that is read from b. The elements that a [List] decodes are slices of b.
func NewReader(b []byte) (r Record) {
	r.Read(b, false)
	return r
}

// Read makes r a record that is read from b. If b is shared, it must never change again: strings are
// then parts of it, without a copy.
func (r *Record) Read(b []byte, shared bool) {
	r.reading, r.rest, r.shared, r.err = true, b, shared, nil
	r.readTag()
}

// Bytes returns the record that was written. It stays valid until the next write.
func (r *Record) Bytes() []byte { return r.buf }

// Err returns the first error of reading; nil: the whole record was read.
func (r *Record) Err() error {
	if r.field != 0 {
		r.fail("field %d is unknown, repeated or out of order", r.field)
	}
	return r.err
}

// NextField returns the number of the field that is read next; 0: there is none.
func (r *Record) NextField() int { return r.field }

// Refuse makes the record invalid. Err returns why.
func (r *Record) Refuse(why string) { r.fail("%s", why) }

func (r *Record) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: "+format, append([]any{ErrMalformed}, args...)...)
	}
	r.rest, r.field = nil, 0
}

// readTag reads the tag of the next field.
func (r *Record) readTag() {
	r.field = 0
	if len(r.rest) == 0 {
		return
	}
	tag, n := Varint(r.rest)
	if n == 0 || tag>>3 == 0 || tag>>3 > maxField {
		r.fail("bad field tag")
		return
	}
	r.field, r.wire, r.rest = int(tag>>3), tag&7, r.rest[n:]
}

// readNumber reads a number, if the field is the next one.
func (r *Record) readNumber(field int) (v uint64, ok bool) {
	if r.field != field {
		return 0, false
	}
	v, n := Varint(r.rest)
	if n == 0 || r.wire != wireVarint || v == 0 {
		r.fail("field %d: want a number that is not zero", field)
		return 0, false
	}
	r.rest = r.rest[n:]
	r.readTag()
	return v, true
}

// readBytes reads bytes, which may be empty only in a repeated field, if the field is the next
// one.
func (r *Record) readBytes(field int, repeated bool) (b []byte, ok bool) {
	if r.field != field {
		return nil, false
	}
	size, n := Varint(r.rest)
	if n == 0 || r.wire != wireBytes || size == 0 && !repeated || size > uint64(len(r.rest)-n) {
		r.fail("field %d: want %d bytes", field, size)
		return nil, false
	}
	b, r.rest = r.rest[n:][:size:size], r.rest[n+int(size):]
	r.readTag()
	return b, true
}

func (r *Record) writeTag(field int, wire uint64, repeated bool) {
	if field < r.last || field == r.last && !repeated {
		panic(fmt.Sprintf("canonical: field %d written after field %d", field, r.last))
	}
	if r.last = field; r.buf == nil {
		r.buf = make([]byte, 0, smallRecord)
	}
	r.buf = appendVarint(r.buf, uint64(field)<<3|wire)
}

func (r *Record) writeNumber(field int, v uint64) {
	if v != 0 {
		r.writeTag(field, wireVarint, false)
		r.buf = appendVarint(r.buf, v)
	}
}

func writeBytes[T string | []byte](r *Record, field int, b T, repeated bool) {
	if len(b) > 0 || repeated {
		r.writeTag(field, wireBytes, repeated)
		r.buf = append(appendVarint(r.buf, uint64(len(b))), b...)
	}
}

// Uint is an unsigned number.
func (r *Record) Uint(field int, v *uint64) {
	if !r.reading {
		r.writeNumber(field, *v)
	} else if n, ok := r.readNumber(field); ok {
		*v = n
	}
}

// Int is a signed number, written as zigzag.
func (r *Record) Int(field int, v *int64) {
	if !r.reading {
		r.writeNumber(field, zigzag(*v))
	} else if n, ok := r.readNumber(field); ok {
		*v = unzigzag(n)
	}
}

// Number is a number below limit; a negative one is written as zero.
func Number[T ~int | ~int64 | ~uint8 | ~uint64](r *Record, field int, v *T, limit uint64) {
	if !r.reading {
		r.writeNumber(field, uint64(max(*v, 0)))
	} else if n, ok := r.readNumber(field); ok && n < limit {
		*v = T(n)
	} else if ok {
		r.fail("field %d: %d is out of range", field, n)
	}
}

// Bool is a boolean.
func (r *Record) Bool(field int, v *bool) {
	n := uint8(0)
	if *v {
		n = 1
	}
	if Number(r, field, &n, 2); r.reading {
		*v = n == 1
	}
}

// Time is a time in UTC and whole milliseconds. Without the field it is the start of 1970.
func (r *Record) Time(field int, v *time.Time) {
	if r.reading {
		ms := int64(0)
		r.Int(field, &ms)
		*v = time.UnixMilli(ms).UTC()
		return
	}
	r.writeNumber(field, zigzag(v.UnixMilli()))
}

// Millis is a duration in whole milliseconds; a negative one is written as zero.
func (r *Record) Millis(field int, v *time.Duration) {
	ms := v.Milliseconds()
	Number(r, field, &ms, math.MaxInt64/uint64(time.Millisecond)+1)
	if r.reading {
		*v = time.Duration(ms) * time.Millisecond
	}
}

// String is any bytes.
func (r *Record) String(field int, v *string) {
	if !r.reading {
		writeBytes(r, field, *v, false)
		return
	}
	b, ok := r.readBytes(field, false)
	switch {
	case !ok:
	case r.shared:
		*v = unsafe.String(unsafe.SliceData(b), len(b))
	default:
		*v = string(b)
	}
}

// Raw is any bytes, which reading copies.
func (r *Record) Raw(field int, v *[]byte) {
	if !r.reading {
		writeBytes(r, field, *v, false)
	} else if b, ok := r.readBytes(field, false); ok {
		*v = bytes.Clone(b)
	}
}

// hashSize is the length of a hash, in bytes.
const hashSize = 32

// Hash is a hash.
func (r *Record) Hash(field int, v *[hashSize]byte) {
	if !r.reading {
		if *v != [hashSize]byte{} {
			writeBytes(r, field, v[:], false)
		}
	} else if b, ok := r.readBytes(field, false); ok {
		hash, err := ParseHash(b)
		if *v = hash; err != nil {
			r.fail("field %d: %w", field, err)
		}
	}
}

// ParseHash returns the hash of some bytes. The zero hash and any other length are refused.
func ParseHash(b []byte) (hash [hashSize]byte, err error) {
	if copy(hash[:], b); len(b) != hashSize || hash == [hashSize]byte{} {
		return hash, fmt.Errorf("want an id of %d bytes that are not all zero", hashSize)
	}
	return hash, nil
}

// Strings is a list of strings.
func (r *Record) Strings(field int, list *[]string) {
	List(r, field, list, func(s *string) []byte { return []byte(*s) }, func(s *string, b []byte) error {
		*s = string(b)
		return nil
	})
}

// Records is a list of records.
func Records[T any](r *Record, field int, list *[]T, fields func(*T, *Record)) {
	List(r, field, list, func(v *T) []byte {
		var one Record
		fields(v, &one)
		return one.Bytes()
	}, func(v *T, b []byte) error {
		one := NewReader(b)
		fields(v, &one)
		return one.Err()
	})
}

// List is a repeated field: elements keep their order, and may have no bytes. encode returns the
// bytes of an element, and decode sets an element from them.
func List[T any](r *Record, field int, list *[]T, encode func(*T) []byte, decode func(*T, []byte) error) {
	for i := 0; i < len(*list) && !r.reading; i++ {
		writeBytes(r, field, encode(&(*list)[i]), true)
	}
	for b, ok := r.readBytes(field, true); ok; b, ok = r.readBytes(field, true) {
		var v T
		if err := decode(&v, b); err != nil {
			r.fail("field %d: %w", field, err)
		}
		*list = append(*list, v)
	}
}

// Uints is a list of numbers, written as one value.
func (r *Record) Uints(field int, list *[]uint64) {
	if !r.reading {
		var packed []byte
		for _, v := range *list {
			packed = appendVarint(packed, v)
		}
		writeBytes(r, field, packed, false)
		return
	}
	for packed, _ := r.readBytes(field, false); len(packed) > 0; {
		v, n := Varint(packed)
		if n == 0 {
			r.fail("field %d: bad number", field)
			return
		}
		*list, packed = append(*list, v), packed[n:]
	}
}

// pair is an entry of a map.
type pair struct{ key, value string }

func (p *pair) fields(r *Record) {
	r.String(1, &p.key)
	r.String(2, &p.value)
}

// Map is a run of pairs with ascending keys.
func (r *Record) Map(field int, m *map[string]string) {
	var pairs []pair
	if len(*m) > 0 {
		for _, key := range slices.Sorted(maps.Keys(*m)) {
			pairs = append(pairs, pair{key, (*m)[key]})
		}
	}
	Records(r, field, &pairs, (*pair).fields)
	for i := 0; i < len(pairs) && r.reading; i++ {
		p := pairs[i]
		if i > 0 && p.key <= pairs[i-1].key {
			r.fail("field %d: map key %q after %q", field, p.key, pairs[i-1].key)
		}
		if *m == nil {
			*m = map[string]string{}
		}
		(*m)[p.key] = p.value
	}
}
