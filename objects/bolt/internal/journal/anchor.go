package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/tract-vcs/tract/objects/bolt/internal/checksum"
)

// Anchor is the end of the last acknowledged frame. It is stored in the lock file, written
// after each sync of the journal and never synced itself: after a power failure it may be
// older than the journal, or damaged, but it never names a frame that was not durable. A
// frame that the anchor names and the journal lacks was lost; one beyond the anchor may
// have been torn by a crash.
type Anchor struct {
	Salt       [SaltSize]byte
	Generation uint64
	End        int64
	Sequence   uint64
}

const anchorSize = SaltSize + 4*8

// Encode returns the bytes of a.
func (a Anchor) Encode() []byte {
	b := append([]byte(nil), a.Salt[:]...)
	b = binary.BigEndian.AppendUint64(b, a.Generation)
	b = binary.BigEndian.AppendUint64(b, uint64(a.End))
	b = binary.BigEndian.AppendUint64(b, a.Sequence)
	return binary.BigEndian.AppendUint64(b, checksum.Sum(b))
}

// ReadAnchor reads the anchor in a lock file. The anchor is advisory: where it is missing,
// truncated, zeroed or has a wrong checksum, ok is false and only the check for lost
// frames is skipped. intact is false if the file holds bytes that are no anchor.
func ReadAnchor(f io.ReaderAt) (a Anchor, ok, intact bool) {
	var b [anchorSize]byte
	n, err := f.ReadAt(b[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return a, false, false
	}
	if b == [anchorSize]byte{} {
		return a, false, true
	}
	if n < anchorSize || binary.BigEndian.Uint64(b[anchorSize-8:]) != checksum.Sum(b[:anchorSize-8]) {
		return a, false, false
	}
	copy(a.Salt[:], b[:])
	a.Generation = binary.BigEndian.Uint64(b[SaltSize:])
	a.End = int64(binary.BigEndian.Uint64(b[SaltSize+8:]) & (1<<63 - 1))
	a.Sequence = binary.BigEndian.Uint64(b[SaltSize+16:])
	return a, true, true
}

// Acknowledged returns the end of the acknowledged frames according to the anchor in a lock file;
// 0 if the anchor does not say. See [ReadAnchor] for intact. It is an error if the anchor is of a
// later generation: the database file is older than what was acknowledged.
func (b Binding) Acknowledged(lockFile io.ReaderAt) (end int64, intact bool, err error) {
	a, ok, intact := ReadAnchor(lockFile)
	switch {
	case !ok || a.Salt != b.Salt || a.Generation < b.Generation:
		return 0, intact, nil
	case a.Generation > b.Generation:
		return 0, intact, fmt.Errorf("the file is older than what was acknowledged: its journal has generation %d, and %d was acknowledged", b.Generation, a.Generation)
	}
	return a.End, intact, nil
}
