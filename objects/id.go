package objects

import (
	"bytes"
	"encoding/hex"
	"fmt"

	"github.com/zeebo/blake3"
)

// ID names an object: the BLAKE3-256 hash of what it is and what it points at.
// The zero ID names nothing.
type ID [32]byte

// ParseID reads the 64 hexadecimal digits of an id, in either case.
func ParseID(s string) (ID, error) {
	var id ID
	if len(s) != 2*len(id) {
		return ID{}, fmt.Errorf("object id %q: want %d hexadecimal digits, have %d", s, 2*len(id), len(s))
	}
	if _, err := hex.Decode(id[:], []byte(s)); err != nil {
		return ID{}, fmt.Errorf("object id %q: not hexadecimal: %w", s, err)
	}
	return id, nil
}

// String returns the id as 64 lower-case hexadecimal digits.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// Short returns the first seven digits, for people.
func (id ID) Short() string { return hex.EncodeToString(id[:4])[:7] }

// IsZero reports whether the id names nothing.
func (id ID) IsZero() bool { return id == ID{} }

// Compare orders ids as their digits do.
func (id ID) Compare(other ID) int { return bytes.Compare(id[:], other[:]) }

// MarshalText writes the digits; the zero ID is empty text.
func (id ID) MarshalText() ([]byte, error) {
	if id.IsZero() {
		return []byte{}, nil
	}
	return hex.AppendEncode(nil, id[:]), nil
}

// UnmarshalText reads what MarshalText wrote.
func (id *ID) UnmarshalText(b []byte) (err error) {
	if len(b) == 0 {
		*id = ID{}
		return nil
	}
	*id, err = ParseID(string(b))
	return err
}

// Hash returns the BLAKE3-256 hash of pieces, one behind the other: for bytes that are
// compared and never stored, such as a request body.
func Hash(pieces ...[]byte) (id ID) {
	h := hashers.Get().(*blake3.Hasher) // Sum256 has one on the stack, which then grows by 16 kB
	h.Reset()
	for _, b := range pieces {
		_, _ = h.Write(b)
	}
	h.Sum(id[:0])
	hashers.Put(h)
	return id
}

// Unique returns the ids without those that come again and without the zero id, which no object
// has.
func Unique(ids []ID) []ID {
	seen, list := make(map[ID]bool, len(ids)), make([]ID, 0, len(ids))
	for _, id := range ids {
		if !seen[id] && !id.IsZero() {
			seen[id] = true
			list = append(list, id)
		}
	}
	return list
}
