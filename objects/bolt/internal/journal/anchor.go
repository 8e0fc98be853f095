package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/tract-vcs/tract/objects/bolt/internal/checksum"
)

// The anchor is the end of the last acknowledged frame: salt, generation, end and sequence number of
// the frame, checksum. It is stored in the lock file, written after each sync of the journal and never
// synced itself: after a power failure it may be older than the journal, or damaged, but it never names
// a frame that was not durable. A frame that the anchor names and the journal lacks was lost; one beyond
// the anchor may have been torn by a crash.
const anchorSize = SaltSize + 4*8

// EncodeAnchor returns the anchor for a journal that is acknowledged up to p.
func (p Position) EncodeAnchor() []byte {
	b := append([]byte(nil), p.Salt[:]...)
	for _, v := range [...]uint64{p.Generation, uint64(p.End), p.Sequence} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	return binary.BigEndian.AppendUint64(b, checksum.Sum(b))
}

// Acknowledged returns the end of the acknowledged frames according to the anchor in a lock file. The
// anchor is advisory: where it is missing, truncated, zeroed, has a wrong checksum or is of another
// store or an older generation, the end is 0 and only the check for lost frames is skipped. intact is
// false if the file holds bytes that are no anchor. It is an error if the anchor is of a later
// generation: the database file is older than what was acknowledged.
func (b Binding) Acknowledged(lockFile io.ReaderAt) (end int64, intact bool, err error) {
	var a [anchorSize]byte
	n, err := lockFile.ReadAt(a[:], 0)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return 0, false, nil
	case a == [anchorSize]byte{}:
		return 0, true, nil
	case n < anchorSize || binary.BigEndian.Uint64(a[anchorSize-8:]) != checksum.Sum(a[:anchorSize-8]):
		return 0, false, nil
	}
	generation := binary.BigEndian.Uint64(a[SaltSize:])
	switch {
	case [SaltSize]byte(a[:SaltSize]) != b.Salt || generation < b.Generation:
		return 0, true, nil
	case generation > b.Generation:
		return 0, true, fmt.Errorf("the file is older than what was acknowledged: its journal has generation %d, and %d was acknowledged", b.Generation, generation)
	}
	return int64(binary.BigEndian.Uint64(a[SaltSize+8:]) & (1<<63 - 1)), true, nil
}
