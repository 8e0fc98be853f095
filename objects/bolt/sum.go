package bolt

import "hash/crc32"

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
