package journal

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
)

// FirstSize is the length of a new journal, in bytes.
const FirstSize = 64 << 10

// growStep is the most that a journal grows by at once.
const growStep = 256 << 10

// Position is how far a journal has been read or written.
type Position struct {
	Binding
	End      int64  // of the last frame
	Sequence uint64 // of the last frame
}

// StartOf returns the position before the first frame of a generation.
func StartOf(b Binding) Position { return Position{Binding: b, End: Start, Sequence: b.Sequence} }

// Length returns how many bytes the frames take that count.
func (p Position) Length() int64 { return p.End - Start }

// Log is an open journal. Position is where the next frame is written.
type Log struct {
	Position
	File *os.File
	size int64
}

// HasFrames reports whether a journal holds a frame, be it of an old generation.
func HasFrames(f io.ReaderAt) bool {
	var first [len(Magic)]byte
	_, _ = f.ReadAt(first[:], Start)
	return string(first[:]) == Magic
}

// Open checks the header of a journal file and returns it at the start of its frames.
func Open(f *os.File, b Binding) (*Log, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	head := make([]byte, HeaderSize)
	if _, err := f.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if err := CheckHeader(head, b.Salt); err != nil {
		return nil, err
	}
	return &Log{Position: StartOf(b), File: f, size: info.Size()}, nil
}

// Replay reads the frames from the position on and passes their changes to add.
// acknowledged is the end of the frames that must be there; 0 if that is unknown.
func (l *Log) Replay(acknowledged int64, buckets int, add func([]Change)) (err error) {
	info, err := l.File.Stat()
	if err != nil {
		return err
	}
	size := min(info.Size(), 1<<31)
	if l.Position, err = Replay(l.File, size, l.Position, buckets, add); err != nil {
		return err
	}
	return l.CheckTail(l.File, size, acknowledged)
}

// Replay reads the frames of a journal of size bytes from a position on, and passes their changes
// to add. It returns the end of the last valid frame. Either the generation or the sequence number
// would be enough to end the journal before the frames that a checkpoint has moved; both are compared.
// Without a lock the file may be shorter than it was: a writer truncates it when no frame counts.
func Replay(f io.ReaderAt, size int64, p Position, buckets int, add func([]Change)) (Position, error) {
	r := bufio.NewReader(io.NewSectionReader(f, p.End, size-p.End))
	for {
		head, err := r.Peek(FrameHeader)
		need := frameLength(p.Binding, head)
		if err != nil && !errors.Is(err, io.EOF) {
			return p, err
		}
		if need == 0 || p.End+need > size {
			return p, nil
		}
		frame := make([]byte, aligned(need)) // the memtable keeps it
		n, err := io.ReadFull(r, frame)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) { // padding may be missing
			return p, err
		}
		payload, sequence, ok := parseFrame(p.Binding, p.End, frame[:n])
		if !ok || sequence != p.Sequence+1 {
			return p, nil
		}
		list, err := ParseChanges(payload, buckets)
		if err != nil {
			return p, fmt.Errorf("frame %d: %w", sequence, err)
		}
		add(list)
		p.End, p.Sequence = p.End+aligned(need), sequence
	}
}

// CheckTail distinguishes a journal whose last frame a crash has torn from one that lost acknowledged frames,
// which is an error. acknowledged is 0 if nobody knows: then a valid later frame shows that an earlier one was damaged.
func (p Position) CheckTail(f io.ReaderAt, size, acknowledged int64) error {
	if p.End < acknowledged {
		return fmt.Errorf("it ends at %d, and %d were acknowledged", p.End, acknowledged)
	}
	if acknowledged > 0 && p.End == acknowledged {
		return nil
	}
	rest := make([]byte, max(size-p.End, 0))
	if _, err := f.ReadAt(rest, p.End); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for at := 0; at < len(rest); at += Alignment {
		if _, sequence, ok := parseFrame(p.Binding, p.End+int64(at), rest[at:]); ok && sequence > p.Sequence {
			return fmt.Errorf("frame %d is damaged, and frame %d after it is valid", p.Sequence+1, sequence)
		}
	}
	return nil
}

// IsTorn reports whether a frame begins at p that is not complete.
func (p Position) IsTorn(f io.ReaderAt) bool {
	var head [FrameHeader]byte
	_, err := f.ReadAt(head[:], p.End)
	return err == nil && frameLength(p.Binding, head[:]) > 0
}

// zeros is what a journal holds before it is written.
var zeros [growStep]byte

// Append writes a frame and makes it durable. wrote reports, together with an error, that
// the frame may be durable. A frame of which a part was written is not valid.
func (l *Log) Append(f *Frame) (wrote bool, err error) {
	b := f.encode(l.Binding, l.End, l.Sequence+1)
	end := l.End + int64(len(b))
	if err := l.reserve(end); err != nil {
		return false, err
	}
	if _, err := l.File.WriteAt(b, l.End); err != nil {
		return false, err
	}
	if err := SyncData(l.File); err != nil {
		return true, err
	}
	l.End, l.Sequence = end, l.Sequence+1
	return true, nil
}

// reserve extends the file with zeros.
func (l *Log) reserve(end int64) error {
	if l.size >= end {
		return nil
	}
	more := max(end-l.size, min(l.size, growStep))
	for ; more > 0; more -= int64(len(zeros)) {
		n, err := l.File.WriteAt(zeros[:min(more, int64(len(zeros)))], l.size)
		if l.size += int64(n); err != nil {
			return err
		}
	}
	return nil
}

// WriteAgain writes the bytes from an offset up to the position again and makes them durable:
// after a failed sync the system may consider them written.
func (l *Log) WriteAgain(from int64) error {
	b := make([]byte, l.End-from)
	if _, err := l.File.ReadAt(b, from); err != nil && !errors.Is(err, io.EOF) { // padding may be missing
		return err
	}
	if _, err := l.File.WriteAt(b, from); err != nil {
		return err
	}
	return SyncData(l.File)
}

// Discard truncates the file to its header, if no frame of it counts.
func (l *Log) Discard() {
	if l.End == Start && l.File.Truncate(int64(HeaderSize)) == nil {
		l.size = int64(HeaderSize)
	}
}

// Wipe overwrites the frames, none of which may count any more, and makes that durable.
func (l *Log) Wipe() error {
	info, err := l.File.Stat()
	if err != nil {
		return err
	}
	if err := Zero(l.File, Start, info.Size()); err != nil || info.Size() <= FirstSize {
		return err
	}
	l.size = FirstSize
	return errors.Join(l.File.Truncate(FirstSize), l.File.Sync())
}

// Zero overwrites a part of a file with zeros, and makes that durable.
func Zero(f *os.File, from, to int64) error {
	for at := from; at < to; at += int64(len(zeros)) {
		if _, err := f.WriteAt(zeros[:min(int64(len(zeros)), to-at)], at); err != nil {
			return err
		}
	}
	return SyncData(f)
}
