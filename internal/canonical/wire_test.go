package canonical

import (
	"encoding/binary"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"
)

// TestNumbersAreThoseOfProtobuf reads bytes as protobuf's own library does, which
// also takes what is longer than it must be.
func TestNumbersAreThoseOfProtobuf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 2, 0x7f, 0x80, 0x81, 0xff}), 0, 12).Draw(t, "bytes")
		if rapid.Bool().Draw(t, "well formed") {
			b = protowire.AppendVarint(nil, rapid.Uint64().Draw(t, "number"))
		}
		want, length := protowire.ConsumeVarint(b)
		if length < 0 || length != protowire.SizeVarint(want) {
			want, length = 0, 0
		}
		if v, n := Varint(b); v != want || n != length {
			t.Fatalf("%x is %d in %d bytes, want %d in %d", b, v, n, want, length)
		}
	})
}

// TestRecordsAreThoseOfProtobuf writes a field of each sort in both ways.
func TestRecordsAreThoseOfProtobuf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		field := rapid.IntRange(1, 1<<29-3).Draw(t, "field")
		v := rapid.Uint64Min(1).Draw(t, "number")
		signed := rapid.Int64().Filter(func(v int64) bool { return v != 0 }).Draw(t, "signed")
		text := rapid.StringN(1, 300, -1).Draw(t, "text")
		var w Record
		w.Uint(field, &v)
		w.Int(field+1, &signed)
		w.String(field+2, &text)
		n := protowire.Number(field)
		want := protowire.AppendVarint(protowire.AppendTag(nil, n, protowire.VarintType), v)
		want = protowire.AppendVarint(protowire.AppendTag(want, n+1, protowire.VarintType), protowire.EncodeZigZag(signed))
		want = protowire.AppendString(protowire.AppendTag(want, n+2, protowire.BytesType), text)
		if string(w.Bytes()) != string(want) {
			t.Fatalf("wrote %x, protobuf %x", w.Bytes(), want)
		}
		r := NewReader(want)
		var number uint64
		var zigzag int64
		var read string
		r.Uint(field, &number)
		r.Int(field+1, &zigzag)
		r.String(field+2, &read)
		if number != v || zigzag != signed || read != text || r.Err() != nil {
			t.Fatalf("%x is not read: %v", want, r.Err())
		}
	})
}

// TestFieldsHaveABound refuses fields that no schema can have.
func TestFieldsHaveABound(t *testing.T) {
	for tag, fine := range map[uint64]bool{0: false, 7: false, 1 << 3: true, maxField << 3: true, (maxField + 1) << 3: false, 1<<64 - 8: false} {
		r, v := NewReader(append(binary.AppendUvarint(nil, tag), 1)), uint64(0)
		r.Uint(int(min(tag>>3, maxField)), &v)
		if (r.Err() == nil) != fine {
			t.Errorf("tag %#x: %v", tag, r.Err())
		}
	}
}
