package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/tract-vcs/tract/canon"
	"github.com/tract-vcs/tract/objects"
)

// The journal lies beside the file and holds the changes that are not in it yet,
// so that a group of writers costs one write and one sync. Its bytes are there
// before they are needed, as zeros: then a sync need not write what the file
// system knows of the file. Numbers are big-endian.
//
//	header   "tract journal\x00", version u16, salt [16]byte, sum u64; then
//	         zeros to 4096
//	frame    "TJF1", payload length u32, generation u64, sequence u64, sum u64;
//	         the payload; zeros to the next multiple of 64
//	change   bucket number (one byte, 0x80 added: the key is deleted), varint
//	         and key, and unless it is deleted varint and value
//
// The sum of a frame is over salt, its place in the file, its header without the
// sum, and the payload, so that a frame counts in one place of one store only.
// Frames of the generation that the file names in its meta bucket count, in
// ascending sequence without a gap; those of others are left from before.
const (
	journalMagic   = "tract journal\x00"
	journalVersion = 1
	journalStart   = 4096
	saltSize       = 16
	headerSize     = len(journalMagic) + 2 + saltSize + 8

	frameMagic = "TJF1"
	frameSize  = 32
	frameAlign = 64

	deleted = 0x80
)

const (
	journalFirst = 64 << 10 // bytes of a new journal
	journalStep  = 1 << 20  // most that it grows by at once
	journalLimit = 2 << 20  // when it is folded into the file
	journalClose = 512 << 10
	journalMost  = 4 << 20 // it is not written beyond this
	frameMost    = 1 << 20 // larger groups go into the file at once
)

var journalKey = []byte("journal")

func journalPath(db string) string { return db + "-journal" }

// binding is what the file says of its journal.
type binding struct {
	salt [saltSize]byte
	gen  uint64 // of the frames that count
	seq  uint64 // of the last frame that is in the file
}

func (b binding) encode() []byte {
	var e canon.Encoder
	e.Raw(1, b.salt[:])
	e.Uint(2, b.gen)
	e.Uint(3, b.seq)
	return seal(journalKey, e.Bytes())
}

func decodeBinding(value []byte) (b binding, err error) {
	record, err := unseal(journalKey, value)
	if err != nil {
		return b, err
	}
	d := canon.NewDecoder(record)
	for f := range d.Fields() {
		switch f {
		case 1:
			if raw := d.Raw(); len(raw) != copy(b.salt[:], raw) || len(raw) != saltSize {
				d.Refuse("no salt")
			}
		case 2:
			b.gen = d.Uint()
		case 3:
			b.seq = d.Uint()
		}
	}
	if err = d.Err(); err == nil && b.gen == 0 {
		err = errors.New("no generation")
	}
	return b, err
}

func encodeHeader(salt [saltSize]byte) []byte {
	b := append([]byte(journalMagic), 0, journalVersion)
	b = append(b, salt[:]...)
	return binary.BigEndian.AppendUint64(b, sum(b))
}

// checkHeader says what is wrong with the beginning of a journal.
func checkHeader(b []byte, salt [saltSize]byte) error {
	const version = len(journalMagic)
	switch {
	case len(b) < headerSize || !bytes.HasPrefix(b, []byte(journalMagic)):
		return errors.New("it is no journal")
	case binary.BigEndian.Uint64(b[headerSize-8:]) != sum(b[:headerSize-8]):
		return errors.New("its header has a wrong checksum")
	case binary.BigEndian.Uint16(b[version:]) != journalVersion:
		return fmt.Errorf("version %d, known is %d: %w: upgrade tract", binary.BigEndian.Uint16(b[version:]), journalVersion, objects.ErrFormat)
	case !bytes.Equal(b[version+2:headerSize-8], salt[:]):
		return errors.New("it is of another store")
	}
	return nil
}

// frameSum is the checksum of a frame at a place in the journal.
func frameSum(salt [saltSize]byte, at int64, header, payload []byte) uint64 {
	place := binary.BigEndian.AppendUint64(salt[:], uint64(at))
	return sum(place, header[:frameSize-8], payload)
}

// encodeFrame makes the frame of a list of changes for a place in the journal,
// with the zeros after it.
func encodeFrame(b binding, at int64, seq uint64, list []change) []byte {
	size := frameSize
	for _, c := range list {
		size += 1 + 2*binary.MaxVarintLen32 + len(c.key) + len(c.value)
	}
	f := make([]byte, frameSize, size+frameAlign)
	for _, c := range list {
		kind := byte(bucketNumber(c.bucket))
		if c.value == nil {
			kind |= deleted
		}
		f = append(f, kind)
		f = binary.AppendUvarint(f, uint64(len(c.key)))
		f = append(f, c.key...)
		if c.value != nil {
			f = binary.AppendUvarint(f, uint64(len(c.value)))
			f = append(f, c.value...)
		}
	}
	copy(f, frameMagic)
	binary.BigEndian.PutUint32(f[4:], uint32(len(f)-frameSize))
	binary.BigEndian.PutUint64(f[8:], b.gen)
	binary.BigEndian.PutUint64(f[16:], seq)
	binary.BigEndian.PutUint64(f[24:], frameSum(b.salt, at, f, f[frameSize:]))
	return f[:aligned(int64(len(f)))]
}

func aligned(n int64) int64 { return (n + frameAlign - 1) &^ (frameAlign - 1) }

// frameLength is how long the frame is that begins so; 0: none does.
func frameLength(b binding, head []byte) int64 {
	if len(head) < frameSize || string(head[:4]) != frameMagic || binary.BigEndian.Uint64(head[8:]) != b.gen {
		return 0
	}
	return frameSize + int64(binary.BigEndian.Uint32(head[4:]))
}

// parseFrame reads the frame at the beginning of b, which lies at a place of the
// journal. A frame of another generation or store, and half a frame, is none.
func parseFrame(b binding, at int64, f []byte) (payload []byte, seq uint64, ok bool) {
	size := frameLength(b, f)
	if size == 0 || size > int64(len(f)) {
		return nil, 0, false
	}
	payload = f[frameSize:size:size]
	if binary.BigEndian.Uint64(f[24:]) != frameSum(b.salt, at, f, payload) {
		return nil, 0, false
	}
	return payload, binary.BigEndian.Uint64(f[16:]), true
}

// parseChanges reads a payload. The changes keep pieces of it.
func parseChanges(b []byte) (list []change, err error) {
	piece := func() []byte {
		n, size := binary.Uvarint(b)
		if size <= 0 || size > 1 && b[size-1] == 0 || n > uint64(len(b)-size) {
			err = errors.New("a change is cut off")
			return nil
		}
		p := b[size : size+int(n) : size+int(n)]
		b = b[size+int(n):]
		return p
	}
	for len(b) > 0 && err == nil {
		kind := b[0]
		if b = b[1:]; int(kind&^deleted) >= bucketCount {
			return nil, fmt.Errorf("a change of bucket %d", kind&^deleted)
		}
		c := change{bucket: buckets[kind&^deleted]}
		if c.key = piece(); err == nil && len(c.key) == 0 {
			return nil, errors.New("a change without a key")
		}
		if kind&deleted == 0 && err == nil {
			c.value = piece()
		}
		list = append(list, c)
	}
	return list, err
}

// journal is the open journal of a handle.
type journal struct {
	file  *os.File
	bound binding
	over  *overlay
}

// read takes in the frames from the end of the overlay on, and says where they
// end. What was acknowledged must be there: to is the end of that, or 0 when
// nobody knows.
func (j *journal) read(to int64) error {
	info, err := j.file.Stat()
	if err != nil {
		return err
	}
	size := min(info.Size(), 1<<31)
	r := window{file: j.file, size: size}
	for {
		at := j.over.end
		head, err := r.bytes(at, frameSize)
		if err != nil {
			return err
		}
		need := frameLength(j.bound, head)
		if need == 0 || at+need > size {
			break
		}
		frame, err := r.bytes(at, need)
		if err != nil {
			return err
		}
		payload, seq, ok := parseFrame(j.bound, at, frame)
		if !ok || seq != j.over.seq+1 {
			break
		}
		list, err := parseChanges(payload)
		if err != nil {
			return fmt.Errorf("journal frame %d: %w", seq, err)
		}
		j.over.add(list, at+aligned(need), seq)
	}
	return j.checkEnd(to, size)
}

// window reads a file in pieces that grow. What it gives stays as it is.
type window struct {
	file io.ReaderAt
	size int64
	buf  []byte
	from int64 // where buf lies
}

// bytes gives so many bytes, or fewer at the end of the file.
func (w *window) bytes(at, n int64) ([]byte, error) {
	if n = min(n, w.size-at); n <= 0 {
		return nil, nil
	}
	if at+n > w.from+int64(len(w.buf)) {
		more := min(max(n, min(4*int64(len(w.buf)), 256<<10)), w.size-at)
		w.buf, w.from = make([]byte, more), at
		if _, err := w.file.ReadAt(w.buf, at); err != nil {
			return nil, err
		}
	}
	return w.buf[at-w.from : at-w.from+n : at-w.from+n], nil
}

// checkEnd tells a journal that a crash has torn, at its end, from one that lost
// what was acknowledged.
func (j *journal) checkEnd(to, size int64) error {
	if j.over.end < to {
		return fmt.Errorf("the journal ends at %d, and what was acknowledged at %d", j.over.end, to)
	}
	if to > 0 && j.over.end == to {
		return nil
	}
	rest := make([]byte, max(size-j.over.end, 0))
	if _, err := j.file.ReadAt(rest, j.over.end); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for at := 0; at < len(rest); at += frameAlign {
		if _, seq, ok := parseFrame(j.bound, j.over.end+int64(at), rest[at:]); ok && seq > j.over.seq {
			return fmt.Errorf("frame %d of the journal is damaged, and frame %d after it is whole", j.over.seq+1, seq)
		}
	}
	return nil
}

// append writes a frame and makes it durable. A frame of which not everything
// was written is none.
func (j *journal) append(list []change) (end int64, wrote bool, err error) {
	at := j.over.end
	frame := encodeFrame(j.bound, at, j.over.seq+1, list)
	if err := j.reserve(at + int64(len(frame))); err != nil {
		return 0, false, err
	}
	if _, err := j.file.WriteAt(frame, at); err != nil {
		return 0, false, err
	}
	return at + int64(len(frame)), true, syncData(j.file)
}

// reserve makes the journal as long as it must be, with zeros.
func (j *journal) reserve(end int64) error {
	info, err := j.file.Stat()
	if err != nil || info.Size() >= end {
		return err
	}
	size := info.Size()
	more := max(end-size, min(size, journalStep))
	_, err = j.file.WriteAt(make([]byte, more), size)
	return err
}

// rewrite writes again what is there from a place on, and makes it durable: after
// a failed sync the system may hold it for written.
func (j *journal) rewrite(from int64) error {
	b := make([]byte, j.over.end-from)
	if _, err := j.file.ReadAt(b, from); err != nil && !errors.Is(err, io.EOF) { // zeros at the end may be missing
		return err
	}
	if _, err := j.file.WriteAt(b, from); err != nil {
		return err
	}
	return syncData(j.file)
}

// openJournal opens the journal of a handle and reads what is new in it. What was
// read before is kept: a journal only grows until it is folded.
func (s *store) openJournal(h *handle, flags int) (err error) {
	j := &h.journal
	if j.file, err = os.OpenFile(journalPath(s.path), flags|noFollow, 0); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return errors.New("its journal is not there")
		}
		return err
	}
	info, err := j.file.Stat()
	if err != nil {
		return err
	}
	if err := checkSafe(journalPath(s.path), info, os.Geteuid()); err != nil {
		return err
	}
	head := make([]byte, headerSize)
	if _, err := j.file.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if err := checkHeader(head, j.bound.salt); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	s.loading.Lock()
	defer s.loading.Unlock()
	s.mu.Lock()
	j.over = s.over
	if j.over == nil || j.over.gen != j.bound.gen || s.journal == nil || !os.SameFile(info, s.journal) {
		j.over = newOverlay(j.bound.gen, j.bound.seq)
	}
	s.over, s.journal = nil, info
	s.mu.Unlock()
	to, err := h.acknowledged()
	if err == nil {
		err = j.read(to)
	}
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	s.mu.Lock()
	s.over = j.over
	s.mu.Unlock()
	return nil
}

// acknowledged is the end of what was acknowledged of the journal; 0 when nobody
// knows.
func (h *handle) acknowledged() (int64, error) {
	if h.side == nil {
		return 0, nil
	}
	a, ok, err := readAnchor(h.side.gate)
	switch bound := h.journal.bound; {
	case err != nil || !ok || a.salt != bound.salt || a.gen < bound.gen:
		return 0, err
	case a.gen > bound.gen:
		return 0, fmt.Errorf("the file is older than what was acknowledged: its journal is %d, and was %d", bound.gen, a.gen)
	}
	return a.end, nil
}

// settleTail makes durable what the last writer left that was not acknowledged:
// its sync may have failed, or nobody knows of it.
func (h *handle) settleTail() error {
	to, err := h.acknowledged()
	j := &h.journal
	if err != nil || to == j.over.end {
		return err
	}
	if to = max(to, journalStart); to < j.over.end {
		if err := j.rewrite(to); err != nil {
			return err
		}
	}
	h.acknowledge()
	return nil
}

// acknowledge writes the anchor. Trouble with it costs a check, not a promise.
func (h *handle) acknowledge() {
	j := &h.journal
	a := anchor{salt: j.bound.salt, gen: j.bound.gen, end: j.over.end, seq: j.over.seq}
	_, _ = h.side.gate.WriteAt(a.encode(), 0)
}
