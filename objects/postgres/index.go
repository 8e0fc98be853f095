package postgres

import (
	"encoding/binary"
	"encoding/hex"
	"iter"
	"strings"

	"github.com/tract-vcs/tract/objects"
)

// An entry of tract_index is a hint and the number of a segment.
const (
	hintSize  = 6
	entrySize = hintSize + 4
)

// hint returns what tract_index has of an id. What is found by it is a candidate.
func hint(id objects.ID) []byte { return id[:hintSize] }

// runSize is how many segments have their entries in the same rows of tract_index.
const runSize = 64

// appendEntry appends an entry to a row of tract_index.
func appendEntry(data, hint []byte, segment int32) []byte {
	return binary.BigEndian.AppendUint32(append(data, hint...), uint32(segment))
}

// indexEntries yields the entries of a row of tract_index whose hints may be those of ids with a
// hexadecimal prefix.
func indexEntries(data []byte, prefix string) iter.Seq2[[hintSize]byte, int32] {
	prefix = prefix[:min(len(prefix), 2*hintSize)]
	return func(yield func([hintSize]byte, int32) bool) {
		for ; len(data) >= entrySize; data = data[entrySize:] {
			h := [hintSize]byte(data)
			if prefix != "" && !strings.HasPrefix(hex.EncodeToString(h[:]), prefix) {
				continue
			}
			if !yield(h, int32(binary.BigEndian.Uint32(data[hintSize:]))) {
				return
			}
		}
	}
}
