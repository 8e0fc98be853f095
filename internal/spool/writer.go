package spool

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// One goroutine, the writer, changes the files of a spool, so that no caller waits for the disk. It
// executes tasks in the order in which they were queued.

// runWriter executes the tasks in the queue until the spool is closed. It is the writer goroutine.
func (s *Spool) runWriter() {
	defer close(s.writerDone)
	for {
		s.mu.Lock()
		for len(s.queue) == 0 && !s.closed {
			s.queueChanged.Wait()
		}
		if s.o.Yield != nil && !s.closed && s.queuedBytes < s.o.Memory/4 {
			s.mu.Unlock()
			s.o.Yield()
			s.mu.Lock()
		}
		list := s.queue
		s.queue = nil
		s.mu.Unlock()
		if len(list) == 0 {
			return
		}
		bytes := 0
		for _, t := range list {
			t.run()
			bytes += t.bytes
		}
		for _, f := range s.unwritten { // each file is written once for all its tasks
			s.writePending(f, nil)
		}
		s.unwritten = nil
		s.mu.Lock()
		s.queuedBytes -= int64(bytes)
		s.mu.Unlock()
	}
}

// addFrame adds a frame to the pending bytes of a file. It writes large frames.
func (s *Spool) addFrame(f *File, frame Frame) {
	if f.lost.Load() {
		return
	}
	if f.clean != nil {
		frame = f.clean(frame)
	}
	if len(frame.Data) > maxPending {
		f.pending = appendFrameHead(f.pending, frame)
		if s.writePending(f, frame.Data); f.lost.Load() {
			return
		}
	} else {
		if len(f.pending) == 0 {
			s.unwritten = append(s.unwritten, f)
		}
		f.pending = appendFrame(f.pending, frame)
	}
	f.ends = append(f.ends, f.size+int64(len(f.pending)))
}

// maxPending is the largest frame, in bytes, that is copied in order to be written together with others.
const maxPending = 64 << 10

// writePending writes the pending bytes of a file, if there are any, and more.
func (s *Spool) writePending(f *File, more []byte) {
	data := f.pending
	f.pending = nil
	if len(data) == 0 {
		return
	}
	if !s.appendToFile(f, data, more) {
		f.lost.Store(true)
		s.removeFile(f)
	}
}

// appendToFile appends data and more to a file. It reports whether the file has them; not, for example, if
// Options.Disk is reached.
func (s *Spool) appendToFile(f *File, data, more []byte) bool {
	if !s.removeCommittedUntilFits(int64(len(data) + len(more))) {
		return false
	}
	file, err := f.open(os.O_WRONLY | os.O_APPEND)
	if err != nil {
		return false
	}
	for _, part := range [][]byte{data, more} {
		n, bad := file.Write(part)
		s.size += int64(n)
		f.size += int64(n)
		err = errors.Join(err, bad)
	}
	return errors.Join(err, file.Close()) == nil
}

// open opens the file, and creates it if it does not exist yet. It is closed after each use, since
// thousands of exchanges may wait for a store.
func (f *File) open(flags int) (*os.File, error) {
	if !f.created {
		flags |= os.O_CREATE | os.O_EXCL
	}
	file, err := os.OpenFile(f.path, flags, 0o600)
	f.created = f.created || err == nil
	return file, err
}

// removeCommittedUntilFits removes the oldest committed exchanges until a number of bytes can be written. It
// reports whether they can.
func (s *Spool) removeCommittedUntilFits(bytes int64) (fits bool) {
	for len(s.done) > 0 && s.size+bytes > s.o.Disk {
		if err := overwriteAndRemove(s.done[0].path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false
		}
		s.size -= s.done[0].size
		s.done = s.done[1:]
	}
	return s.size+bytes <= s.o.Disk
}

// removeFile overwrites and removes the live file of an exchange.
func (s *Spool) removeFile(f *File) {
	if f.created {
		_ = overwriteAndRemove(f.path) // there is nothing else to try
		s.size -= f.size
	}
	f.created, f.size, f.ends = false, 0, nil
}

// finish finishes a file; see [File.Finish]. A file that cannot be finished is removed: its exchange is
// committed, and must not be committed again.
func (s *Spool) finish(f *File, label string, kept int, frames []Frame) {
	if now := Cleared(s.folder); now != s.lastCleared {
		s.mu.Lock()
		s.lastCleared, s.clearedBefore = now, s.lastNumber
		s.mu.Unlock()
	}
	path := filepath.Join(s.folder, "done", filepath.Base(f.path)+"-"+filepath.Base(s.liveFolder)[5:]+"-"+label)
	size, replaced := s.replaceFrames(f, kept, frames)
	f.pending = nil
	if !replaced || os.Rename(f.path, path) != nil {
		s.removeFile(f)
		return
	}
	s.size -= f.size
	if Cleared(s.folder) != s.lastCleared { // meanwhile
		_ = overwriteAndRemove(path) // as Clear does
		return
	}
	s.done = append(s.done, finishedFile{path, size})
	s.size += size
}

// replaceFrames replaces the frames of a file after the kept ones. It returns the new size of the file;
// ok is false if the file is not to be kept, or cannot be.
func (s *Spool) replaceFrames(f *File, kept int, frames []Frame) (size int64, ok bool) {
	if len(frames) == 0 || kept > len(f.ends) || f.number <= s.clearedBefore {
		return 0, false
	}
	var data []byte
	for _, frame := range frames {
		data = appendFrame(data, frame)
	}
	begin := int64(0) // of data in the file
	if kept > 0 {
		begin = f.ends[kept-1]
	}
	if unwritten := begin - f.size; unwritten > 0 {
		begin, data = f.size, append(slices.Clone(f.pending[:unwritten]), data...)
	}
	size = begin + int64(len(data))
	if !s.removeCommittedUntilFits(size - f.size) {
		return 0, false
	}
	file, err := f.open(os.O_RDWR)
	if err != nil {
		return 0, false
	}
	return size, errors.Join(replaceContent(file, begin, data), file.Close()) == nil
}

// replaceContent replaces the content of a file from begin on with data, and overwrites what was
// there. It does so in an order in which a process that is killed meanwhile leaves a part of the new
// content, and never old bytes after new ones.
func replaceContent(f *os.File, begin int64, data []byte) error {
	info, err := f.Stat()
	if err == nil {
		err = writeZeros(f, begin, info.Size())
	}
	if err == nil {
		err = f.Truncate(begin)
	}
	if err == nil {
		_, err = f.WriteAt(data, begin)
	}
	return err
}

// writeZeros overwrites a part of a file with zeros.
func writeZeros(f *os.File, begin, end int64) (err error) {
	zeros := make([]byte, max(0, min(64<<10, end-begin)))
	for ; err == nil && begin < end; begin += int64(len(zeros)) {
		_, err = f.WriteAt(zeros[:min(int64(len(zeros)), end-begin)], begin)
	}
	return err
}

// overwriteAndRemove overwrites a file with zeros and removes it.
func overwriteAndRemove(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() { // for example a link to another user's file
		return os.Remove(path)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(writeZeros(f, 0, info.Size()), f.Close(), os.Remove(path))
}
