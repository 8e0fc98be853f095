package checksum

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// TestRepairFindsEveryBit flips each bit that the checksum covers, and then two at once.
func TestRepairFindsEveryBit(t *testing.T) {
	key := []byte("key")
	b := append(make([]byte, Size), "what the checksum covers"...)
	binary.BigEndian.PutUint64(b, Sum(key, b[Size:]))
	for bit := Size * 8; bit < len(b)*8; bit++ {
		flipped := bytes.Clone(b)
		flipped[bit/8] ^= 1 << (bit % 8)
		if !bytes.Equal(Repair(key, flipped), b) {
			t.Errorf("bit %d is not flipped back", bit)
		}
		other := Size + (bit/8-Size+1)%(len(b)-Size)
		flipped[other] ^= 3
		if bytes.Equal(Repair(key, flipped), b) {
			t.Errorf("bits of two bytes are flipped back")
		}
	}
}
