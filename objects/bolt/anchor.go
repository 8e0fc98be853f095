package bolt

import (
	"encoding/binary"
	"errors"
	"io"
)

// anchor is the last thing that was acknowledged. It lies in the lock file that
// the writer holds, is written after the sync of the journal and never synced
// itself: it may be old after the power failed, and is right after everything
// else. What it names and the journal has not was lost, not torn.
type anchor struct {
	salt [saltSize]byte
	gen  uint64
	from int64 // where what is not in the file begins
	end  int64
	seq  uint64
}

const anchorSize = saltSize + 5*8

func (a anchor) encode() []byte {
	b := append([]byte(nil), a.salt[:]...)
	b = binary.BigEndian.AppendUint64(b, a.gen)
	b = binary.BigEndian.AppendUint64(b, uint64(a.from))
	b = binary.BigEndian.AppendUint64(b, uint64(a.end))
	b = binary.BigEndian.AppendUint64(b, a.seq)
	return binary.BigEndian.AppendUint64(b, sum(b))
}

// readAnchor reads the anchor of a lock file. An empty one, and one of zeros that
// a power failure leaves, has none.
func readAnchor(f io.ReaderAt) (a anchor, ok bool, err error) {
	var b [anchorSize]byte
	n, err := f.ReadAt(b[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return a, false, err
	}
	if n == 0 || b == [anchorSize]byte{} {
		return a, false, nil
	}
	if n < anchorSize || binary.BigEndian.Uint64(b[anchorSize-8:]) != sum(b[:anchorSize-8]) {
		return a, false, errors.New("the anchor in the lock file is damaged")
	}
	copy(a.salt[:], b[:])
	a.gen = binary.BigEndian.Uint64(b[saltSize:])
	a.from = int64(binary.BigEndian.Uint64(b[saltSize+8:]) & (1<<63 - 1))
	a.end = int64(binary.BigEndian.Uint64(b[saltSize+16:]) & (1<<63 - 1))
	a.seq = binary.BigEndian.Uint64(b[saltSize+24:])
	return a, true, nil
}

// newer tells whether an anchor is of a later state of the file than that which names
// its journal so.
func (a anchor) newer(b binding) bool {
	return a.gen > b.gen || a.gen == b.gen && a.from > b.begin()
}
