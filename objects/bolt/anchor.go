package bolt

import (
	"encoding/binary"
	"errors"
	"io"
)

// anchor is the end of the last acknowledged journal frame. It is stored in the
// lock file, written after each sync of the journal and never synced itself: after a
// power failure it may be older than the journal, or damaged, but it never names a
// frame that was not durable. A frame that the anchor names and the journal lacks was
// lost; one beyond the anchor may have been torn by a crash.
type anchor struct {
	salt [saltSize]byte
	gen  uint64
	end  int64
	seq  uint64
}

const anchorSize = saltSize + 4*8

func (a anchor) encode() []byte {
	b := append([]byte(nil), a.salt[:]...)
	b = binary.BigEndian.AppendUint64(b, a.gen)
	b = binary.BigEndian.AppendUint64(b, uint64(a.end))
	b = binary.BigEndian.AppendUint64(b, a.seq)
	return binary.BigEndian.AppendUint64(b, sum(b))
}

// readAnchor reads the anchor in a lock file. The anchor is advisory: where it is
// missing, cut short, zeroed or has a wrong checksum, ok is false and only the check
// for lost frames is skipped. intact is false if the file holds bytes that are no
// anchor.
func readAnchor(f io.ReaderAt) (a anchor, ok, intact bool) {
	var b [anchorSize]byte
	n, err := f.ReadAt(b[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return a, false, false
	}
	if b == [anchorSize]byte{} {
		return a, false, true
	}
	if n < anchorSize || binary.BigEndian.Uint64(b[anchorSize-8:]) != sum(b[:anchorSize-8]) {
		return a, false, false
	}
	copy(a.salt[:], b[:])
	a.gen = binary.BigEndian.Uint64(b[saltSize:])
	a.end = int64(binary.BigEndian.Uint64(b[saltSize+8:]) & (1<<63 - 1))
	a.seq = binary.BigEndian.Uint64(b[saltSize+16:])
	return a, true, true
}
