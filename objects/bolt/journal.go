package bolt

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/tract-vcs/tract/objects/bolt/internal/page"
)

// journal is the open journal of a handle.
type journal struct {
	file  *os.File
	size  int64 // of the file
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
		_, seq, ok := parseFrame(j.bound, at, frame)
		if !ok || seq != j.over.seq+1 {
			break
		}
		f, err := parseChanges(frame)
		if err != nil {
			return fmt.Errorf("journal frame %d: %w", seq, err)
		}
		j.over.add(&f, at+aligned(need), seq, false)
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

// bytes gives so many bytes, or fewer at the end of the file. Who may not lock the store
// may see that come nearer: a writer cuts the file when none of its frames counts.
func (w *window) bytes(at, n int64) ([]byte, error) {
	if n = min(n, w.size-at); n <= 0 {
		return nil, nil
	}
	if at+n > w.from+int64(len(w.buf)) {
		more := min(max(n, min(4*int64(len(w.buf)), 256<<10)), w.size-at)
		w.buf, w.from = make([]byte, more), at
		have, err := w.file.ReadAt(w.buf, at)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		w.buf = w.buf[:have]
	}
	from, to := at-w.from, min(at-w.from+n, int64(len(w.buf)))
	return w.buf[from:to:to], nil
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

// zeros is what a journal holds before it is written.
var zeros [journalStep]byte

// append writes a frame and makes it durable. A frame of which not everything
// was written is none.
func (j *journal) append(f *frame) (end int64, wrote bool, err error) {
	at := j.over.end
	b := f.seal(j.bound, at, j.over.seq+1)
	end = at + int64(len(b))
	if err := j.reserve(end); err != nil {
		return 0, false, err
	}
	if _, err := j.file.WriteAt(b, at); err != nil {
		return 0, false, err
	}
	return end, true, syncData(j.file)
}

// reserve makes the journal as long as it must be, with zeros.
func (j *journal) reserve(end int64) error {
	if j.size >= end {
		return nil
	}
	more := max(end-j.size, min(j.size, journalStep))
	for ; more > 0; more -= int64(len(zeros)) {
		n, err := j.file.WriteAt(zeros[:min(more, int64(len(zeros)))], j.size)
		if j.size += int64(n); err != nil {
			return err
		}
	}
	return nil
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
	if j.file, err = s.policy.Open(journalPath(s.path), flags, 0); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return errors.New("its journal is not there")
		}
		return err
	}
	info, err := j.file.Stat()
	if err != nil {
		return err
	}
	j.size = info.Size()
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
	if j.over == nil || !j.over.of(j.bound) || s.journal == nil || !os.SameFile(info, s.journal) {
		j.over = newOverlay(j.bound)
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
	a, ok, _ := readAnchor(h.side.gate)
	switch bound := h.journal.bound; {
	case !ok || a.salt != bound.salt || a.gen < bound.gen:
		return 0, nil
	case a.gen > bound.gen:
		return 0, fmt.Errorf("the file is older than what was acknowledged: its journal is of generation %d, and was of %d", bound.gen, a.gen)
	}
	return a.end, nil
}

// settleTail makes durable what the last writer left that was not acknowledged.
func (h *handle) settleTail() error {
	to, err := h.acknowledged()
	j := &h.journal
	if err != nil || to == j.over.end {
		return err
	}
	if to == 0 { // the last writer may have been stopped after a checkpoint
		if err := h.settleFile(); err != nil {
			return err
		}
	}
	if to = max(to, journalStart); to < j.over.end {
		if err := j.rewrite(to); err != nil {
			return err
		}
	}
	h.acknowledge()
	return nil
}

// settleFile makes the file durable, and its name. The last writer may have been
// stopped after it had folded the journal or given the file its name, or a sync may
// have failed there: what the journal held must not be written over before that.
func (h *handle) settleFile() error {
	at := int64(h.now.meta.Tx%2)*int64(h.now.meta.PageSize) + page.HeaderSize
	b := make([]byte, page.MetaSize)
	if _, err := h.file.ReadAt(b, at); err != nil {
		return err
	}
	if _, err := h.file.WriteAt(b, at); err != nil { // after a failed sync the system may hold it for written
		return err
	}
	return errors.Join(h.file.Sync(), syncDir(dirOf(h.file.Name())))
}

// acknowledge writes the anchor. Trouble with it costs a check, not a promise.
func (h *handle) acknowledge() {
	j := &h.journal
	a := anchor{salt: j.bound.salt, gen: j.bound.gen, end: j.over.end, seq: j.over.seq}
	_, _ = h.side.gate.WriteAt(a.encode(), 0)
}
