package postgres

import (
	"encoding/hex"
	"iter"
	"strings"

	"github.com/tract-vcs/tract/objects"
)

// hintSize is how many bytes of an id tract_index has. What is found by them is a candidate.
const hintSize = 6

func hintOf(id objects.ID) []byte { return id[:hintSize] }

// indexPart returns the part of tract_index that has ids with the same first byte.
func indexPart(first byte) int16 { return int16(first >> 4) }

// indexParts is how many parts there are.
const indexParts = 16

// indexHints yields the hints in a row of tract_index that may be those of ids with a hexadecimal prefix.
func indexHints(data []byte, prefix string) iter.Seq[[hintSize]byte] {
	prefix = prefix[:min(len(prefix), 2*hintSize)]
	return func(yield func([hintSize]byte) bool) {
		for ; len(data) >= hintSize; data = data[hintSize:] {
			if prefix != "" && !strings.HasPrefix(hex.EncodeToString(data[:hintSize]), prefix) {
				continue
			}
			if !yield([hintSize]byte(data)) {
				return
			}
		}
	}
}
