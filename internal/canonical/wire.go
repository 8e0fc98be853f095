package canonical

import "encoding/binary"

// The two wire types of a record.
const (
	wireVarint = 0
	wireBytes  = 2 // a length and so many bytes
)

// maxField is the largest number of a field that is read.
const maxField = 1<<31 - 1

// Varint returns the varint at the start of b and its length. The length is 0 when there is
// none, when it overflows 64 bits, or when a shorter encoding exists.
func Varint(b []byte) (v uint64, n int) {
	if len(b) > 0 && b[0] < 0x80 {
		return uint64(b[0]), 1
	}
	return longVarint(b)
}

func longVarint(b []byte) (v uint64, n int) {
	if v, n = binary.Uvarint(b); n <= 0 || b[n-1] == 0 {
		return 0, 0
	}
	return v, n
}

func appendVarint(b []byte, v uint64) []byte {
	if v < 0x80 {
		return append(b, byte(v))
	}
	return binary.AppendUvarint(b, v)
}

// zigzag returns a signed number as one that is small when it is near zero.
func zigzag(v int64) uint64 { return uint64(v<<1) ^ uint64(v>>63) }

func unzigzag(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }
