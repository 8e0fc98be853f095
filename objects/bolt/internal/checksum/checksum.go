// Package checksum has the checksum of frames, packs and index chunks. It finds damage; it
// does not stop an attacker, for which there are the ids of objects.
package checksum

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
)

// Size is the length of a checksum in bytes.
const Size = 8

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Sum returns a checksum of 64 bits over the concatenation of the pieces: CRC-32C in the
// upper half and CRC-32 (IEEE) in the lower. Current processors have instructions for both.
func Sum(pieces ...[]byte) uint64 {
	var a, b uint32
	for _, p := range pieces {
		a = crc32.Update(a, castagnoli, p)
		b = crc32.Update(b, crc32.IEEETable, p)
	}
	return uint64(a)<<32 | uint64(b)
}

// Repair returns b, whose first 8 bytes are the sum of key and the rest, with the one bit
// flipped back that makes the sum wrong; if no single bit does, it returns b as it is. A
// flipped bit changes a CRC by a value that depends on its position only, so the position
// is found by stepping back from the end. The caller must verify the repaired bytes by
// other means, such as the hash of an object.
func Repair(key, b []byte) []byte {
	wrong := binary.BigEndian.Uint64(b) ^ Sum(key, b[Size:])
	var by [8][2]uint32 // what each bit of the current byte changes
	for k := range by {
		by[k] = [2]uint32{castagnoli[1<<k], crc32.IEEETable[1<<k]}
	}
	for at := len(b) - 1; at >= Size; at-- {
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
