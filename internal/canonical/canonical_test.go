package canonical

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// sample has one field of every sort.
type sample struct {
	n     uint64
	z     int64
	flag  bool
	text  string
	raw   []byte
	list  []string
	nums  []uint64
	pairs map[string]string
}

func (s *sample) fields(r *Record) {
	r.Uint(1, &s.n)
	r.Int(2, &s.z)
	r.Bool(3, &s.flag)
	r.String(4, &s.text)
	r.Raw(5, &s.raw)
	r.Strings(6, &s.list)
	r.Uints(7, &s.nums)
	r.Map(17, &s.pairs)
}

func (s sample) encode() []byte {
	var r Record
	s.fields(&r)
	return r.Bytes()
}

func decode(b []byte) (sample, error) {
	var s sample
	r := NewReader(b)
	s.fields(&r)
	return s, r.Err()
}

func TestRoundTrip(t *testing.T) {
	anyBytes := rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })
	rapid.Check(t, func(t *rapid.T) {
		in := sample{
			n:     rapid.Uint64().Draw(t, "n"),
			z:     rapid.Int64().Draw(t, "z"),
			flag:  rapid.Bool().Draw(t, "flag"),
			text:  anyBytes.Draw(t, "text"),
			raw:   []byte(anyBytes.Draw(t, "raw")),
			list:  rapid.SliceOf(anyBytes).Draw(t, "list"),
			nums:  rapid.SliceOf(rapid.Uint64()).Draw(t, "nums"),
			pairs: rapid.MapOf(anyBytes, anyBytes).Draw(t, "pairs"),
		}
		b := in.encode()
		out, err := decode(b)
		if err != nil {
			t.Fatalf("decode what was encoded: %v", err)
		}
		if out.n != in.n || out.z != in.z || out.flag != in.flag || out.text != in.text ||
			!bytes.Equal(out.raw, in.raw) || !maps.Equal(out.pairs, in.pairs) ||
			!slices.Equal(out.nums, in.nums) {
			t.Fatalf("in  %+v\nout %+v", in, out)
		}
		if again := out.encode(); !bytes.Equal(again, b) {
			t.Fatalf("encoded again: %x, was %x", again, b)
		}
	})
}

func TestRefusesOtherEncodings(t *testing.T) {
	for name, b := range map[string][]byte{
		"zero written":          {0x08, 0x00},
		"long varint":           {0x08, 0x81, 0x00},
		"long tag":              {0x88, 0x00, 0x01},
		"descending fields":     {0x10, 0x02, 0x08, 0x01},
		"field twice":           {0x08, 0x01, 0x08, 0x01},
		"unknown field":         {0x40, 0x01},
		"unknown before known":  {0x40, 0x01, 0x8a, 0x01, 3, 0x0a, 1, 'a'},
		"wrong type":            {0x0a, 0x01, 'a'},
		"fixed width":           {0x0d, 1, 2, 3, 4},
		"field zero":            {0x00, 0x01},
		"field zero after one":  {0x08, 0x01, 0x00, 0x01},
		"flag of two":           {0x18, 0x02},
		"cut inside a tag":      {0x88},
		"cut inside bytes":      {0x22, 0x05, 'a'},
		"empty string":          {0x22, 0x00},
		"long varint in a list": {0x3a, 0x02, 0x81, 0x00},
		"map keys descend":      {0x8a, 0x01, 3, 0x0a, 1, 'b', 0x8a, 0x01, 3, 0x0a, 1, 'a'},
		"map key twice":         {0x8a, 0x01, 3, 0x0a, 1, 'a', 0x8a, 0x01, 3, 0x0a, 1, 'a'},
		"pair with a third one": {0x8a, 0x01, 2, 0x18, 1},
	} {
		if _, err := decode(b); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %x gave %v, want ErrMalformed", name, b, err)
		}
	}
}

func TestEncoderPanicsWhenFieldsDescend(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("field 1 after field 2 was written")
		}
	}()
	var r Record
	one := uint64(1)
	r.Uint(2, &one)
	r.Uint(1, &one)
}

func FuzzDecode(f *testing.F) {
	f.Add(sample{n: 1, z: -1, flag: true, text: "t", raw: []byte{0}, list: []string{"", "x"}, nums: []uint64{0, 300}, pairs: map[string]string{"k": "v"}}.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := decode(b)
		if err == nil && !bytes.Equal(s.encode(), b) {
			t.Errorf("%x was accepted and is written %x", b, s.encode())
		}
	})
}
