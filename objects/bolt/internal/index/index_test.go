package index

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// chunk is a key with its value.
type chunk struct{ key, value []byte }

func encode(r Run, entries []Entry) (list []chunk) {
	r.Encode(entries, func(key, value []byte) { list = append(list, chunk{key, value}) })
	return list
}

// FuzzChunk decodes any chunk: what is not refused is written in the same bytes, or in other
// chunks if it is too long.
func FuzzChunk(f *testing.F) {
	for _, c := range encode(Run{1, 7, 2}, []Entry{{1 << 24, 1, 2}, {2 << 24, 3, 4}}) {
		f.Add(c.key, c.value)
	}
	f.Fuzz(func(t *testing.T, key, value []byte) {
		entries, err := Decode(nil, key, value)
		if err != nil {
			return
		}
		r, err := ParseKey(key)
		if err != nil || len(entries) == 0 {
			t.Fatalf("%d entries, %v", len(entries), err)
		}
		var again []Entry
		for _, c := range encode(r, slices.Clone(entries)) {
			more, err := Decode(nil, c.key, c.value)
			if err != nil {
				t.Fatal(err)
			}
			again = append(again, more...)
		}
		if !slices.Equal(again, entries) {
			t.Errorf("%v is read again as %v", entries, again)
		}
	})
}

// TestRunsRoundTrip has ids that begin alike, as few as can be told apart and as many as
// there never are.
func TestRunsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var entries []Entry
		draw := rapid.SampledFrom([]byte{0, 1, 7, 0xff})
		for i := range rapid.IntRange(1, 3000).Draw(t, "entries") {
			prefix := Prefix([]byte{draw.Draw(t, "first"), byte(i >> 8), byte(i), draw.Draw(t, "fourth")})
			if i%100 > 60 {
				prefix = Prefix([]byte{1, 2, 3, 4})
			}
			entries = append(entries, Entry{prefix, rapid.Uint32().Draw(t, "pack"), rapid.Uint16().Draw(t, "row")})
		}
		r := Run{Level: 3, Number: 1, Entries: uint64(len(entries))}
		var got []Entry
		for _, c := range encode(r, slices.Clone(entries)) {
			more, err := Decode(nil, c.key, c.value)
			if err != nil {
				t.Fatal(err)
			}
			if len(got) > 0 && got[len(got)-1].Prefix == more[0].Prefix {
				t.Fatalf("%x is in two chunks", more[0].Prefix)
			}
			if !bytes.Equal(c.key, r.ChunkKey(more[0].Prefix)) || !r.Has(c.key) {
				t.Fatalf("the chunk %x begins with %x", c.key, more[0].Prefix)
			}
			got = append(got, more...)
		}
		slices.SortFunc(entries, Entry.Compare)
		if !slices.Equal(got, entries) {
			t.Fatalf("%d entries are read as %d others", len(entries), len(got))
		}
		for _, e := range entries {
			if i := Search(entries, e.Prefix); entries[i].Prefix != e.Prefix || i > 0 && entries[i-1].Prefix == e.Prefix {
				t.Fatalf("%x is found at %d", e.Prefix, i)
			}
		}
	})
}

// TestChunkWithAChangedBit is refused, wherever the bit is.
func TestChunkWithAChangedBit(t *testing.T) {
	for _, c := range encode(Run{0, 7, 2}, []Entry{{5, 1, 2}, {1 << 24, 3, 4}}) {
		for i := range 8 * (len(c.key) + len(c.value)) {
			all := append(bytes.Clone(c.key), c.value...)
			all[i/8] ^= 1 << (i % 8)
			if entries, err := Decode(nil, all[:len(c.key)], all[len(c.key):]); err == nil {
				t.Errorf("bit %d is changed, and it is read as %v", i, entries)
			}
		}
	}
}
