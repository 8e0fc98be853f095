package bolt

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sum is a checksum of 64 bits over the pieces, one after the other: CRC-32C and
// CRC-32 (IEEE) beside one another. Every machine in use has instructions for
// both. It finds damage; against malice there are the ids.
func sum(pieces ...[]byte) uint64 {
	var a, b uint32
	for _, p := range pieces {
		a = crc32.Update(a, castagnoli, p)
		b = crc32.Update(b, crc32.IEEETable, p)
	}
	return uint64(a)<<32 | uint64(b)
}

// mended gives a value that begins with its sum as it was before one bit of it was
// flipped, or as it is when that does not explain why the sum is wrong. A flipped bit
// changes a CRC by what depends on its place alone, so that the place is found going
// back from the end. Who takes what is mended for true has to hash it.
func mended(key, b []byte) []byte {
	wrong := binary.BigEndian.Uint64(b) ^ sum(key, b[8:])
	var by [8][2]uint32 // what each bit of the byte at hand changes
	for k := range by {
		by[k] = [2]uint32{castagnoli[1<<k], crc32.IEEETable[1<<k]}
	}
	for at := len(b) - 1; at >= 8; at-- {
		for k := range by {
			x, y := by[k][0], by[k][1]
			if uint64(x)<<32|uint64(y) == wrong {
				b = bytes.Clone(b)
				b[at] ^= 1 << k
				return b
			}
			by[k] = [2]uint32{castagnoli[byte(x)] ^ x>>8, crc32.IEEETable[byte(y)] ^ y>>8}
		}
	}
	return b
}
