package canonical

import "fmt"

// hashSize is the length of a hash, in bytes.
const hashSize = 32

// Hash writes a hash as the bytes of a field, or nothing when it is zero.
func (e *Encoder) Hash(field int, hash [hashSize]byte) {
	if hash != [hashSize]byte{} {
		e.Raw(field, hash[:])
	}
}

// Hash returns the hash that [Encoder.Hash] wrote. The zero hash and any other length are refused.
func (d *Decoder) Hash() [hashSize]byte { return d.hash(d.Raw()) }

// HashItem reads one hash of a repeated field, as Hash does.
func (d *Decoder) HashItem() [hashSize]byte { return d.hash(d.Item()) }

func (d *Decoder) hash(b []byte) (hash [hashSize]byte) {
	switch {
	case d.Err() != nil:
	case len(b) != hashSize:
		d.Refuse(fmt.Sprintf("an id has %d bytes, not %d", hashSize, len(b)))
	case [hashSize]byte(b) == hash:
		d.Refuse("the zero id is written")
	default:
		hash = [hashSize]byte(b)
	}
	return hash
}
