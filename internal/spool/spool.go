// Package spool keeps recorded exchanges in files until they are committed, and for some time
// after that. Exchanges that a process could not commit before it ended are recovered by the next
// process.
//
// For most uses: [Open] a spool, call [Spool.Recover] once, and for each exchange call
// [Spool.Begin], [File.Write] for each frame, and [File.Finish] after the commit.
//
// The folder of a spool has a folder live-ID for each process, with a lock that the process
// holds, and a folder done for committed exchanges. A file has one exchange: a sequence of frames
// in the order in which they were written. One goroutine writes all files in the background; only
// [Open], [Spool.Recover], [Spool.Close] and the functions that read wait for the disk. Files are
// not synced: they survive the end of the process, but not a power failure. When Options.Disk is
// reached, the oldest committed exchanges are removed.
package spool

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tract-vcs/tract/internal/filelock"
)

// Options limit the size of a spool.
type Options struct {
	Memory int64 // largest number of bytes that wait to be written
	Disk   int64 // largest number of bytes in all files; 0: 1 GiB

	// Yield is called before frames are written; it may wait for a moment in which the processor
	// and the disk are free. It is not called while much of Memory is used. nil: none.
	Yield func()
}

// Frame is one part of an exchange.
type Frame struct {
	Kind byte
	Data []byte
}

// Spool is a folder of exchanges. It is safe for concurrent use.
type Spool struct {
	o          Options
	folder     string // of all processes
	liveFolder string // of this process
	lock       *os.File

	mu           sync.Mutex
	queueChanged sync.Cond
	queue        []task
	queuedBytes  int64 // bytes in the queue
	closed       bool
	writerDone   chan struct{}
	lastNumber   int

	// Used only by the writer goroutine:
	size      int64          // bytes of all files
	done      []finishedFile // committed, oldest first
	unwritten []*File        // with pending bytes; a file may be twice in it

	lastCleared   string // last seen result of [Cleared]
	clearedBefore int    // number of the last file that was begun before that clearing; such files are not kept
}

type finishedFile struct {
	path string
	size int64
}

// task is work for the writer goroutine.
type task struct {
	bytes int // that are no longer in memory afterwards
	run   func()
}

// File is one exchange in the spool. The methods of a nil File do nothing.
type File struct {
	s      *Spool
	path   string
	number int
	clean  func(Frame) Frame
	lost   atomic.Bool // the exchange could not be kept

	// Used only by the writer goroutine:
	created bool    // the file exists
	size    int64   // bytes in the file
	ends    []int64 // where the frames end
	pending []byte  // bytes to write after the size bytes
}

// Open opens the spool in a folder, and creates the folder if it does not exist.
func Open(folder string, o Options) (*Spool, error) {
	o.Disk = cmp.Or(o.Disk, 1<<30)
	s := &Spool{o: o, folder: folder, liveFolder: filepath.Join(folder, "live-"+rand.Text()), writerDone: make(chan struct{}), lastCleared: Cleared(folder)}
	s.queueChanged.L = &s.mu
	for _, dir := range []string{s.liveFolder, filepath.Join(folder, "done")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("open spool: %w", err)
		}
	}
	var err error
	if s.lock, err = lockFolderIfFree(s.liveFolder); err != nil {
		return nil, fmt.Errorf("open spool: %w", err)
	}
	if s.lock == nil { // a process that recovers was faster, and removes the folder
		return Open(folder, o)
	}
	names, err := listPaths(filepath.Join(folder, "done"), "")
	if err != nil {
		return nil, fmt.Errorf("open spool: %w", err)
	}
	for _, path := range names {
		if info, err := os.Stat(path); err == nil {
			s.done = append(s.done, finishedFile{path, info.Size()})
			s.size += info.Size()
		}
	}
	go s.runWriter()
	return s, nil
}

// lockFolderIfFree locks the folder of a process and returns the lock file; nil if another process holds
// the lock.
func lockFolderIfFree(dir string) (lock *os.File, err error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if free, err := filelock.Lock(f, true, false); err != nil || !free {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Begin begins the file of an exchange. clean changes each frame before it is written, for example
// to mask secrets; it is called in the background, and may be nil. A nil Spool returns a nil File.
func (s *Spool) Begin(clean func(Frame) Frame) *File {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastNumber++
	return &File{s: s, number: s.lastNumber, clean: clean, path: filepath.Join(s.liveFolder, fmt.Sprintf("%s-%08d", time.Now().UTC().Format("20060102T150405"), s.lastNumber))}
}

// Write adds a frame, without waiting. The caller must not modify its data afterwards.
func (f *File) Write(frame Frame) {
	if f != nil && !f.lost.Load() && !f.s.enqueue(len(frame.Data), func() { f.s.addFrame(f, frame) }) {
		f.lost.Store(true)
	}
}

// Lost reports whether the spool does not have the whole exchange.
func (f *File) Lost() bool { return f == nil || f.lost.Load() }

// Finish replaces the content of the file after its first kept frames with other frames, and moves
// the file to the committed exchanges, under a name that ends in the label. If frames returns none,
// or the file does not have the kept frames, the file is removed. The old bytes are overwritten
// with zeros. frames is called in the background.
func (f *File) Finish(label string, kept int, frames func() []Frame) {
	if f != nil {
		f.s.enqueue(0, func() { f.s.finish(f, label, kept, frames()) })
	}
}

// enqueue adds a task for the writer goroutine, which holds a number of bytes until it has run. It
// reports whether it did: not after Close, nor if the bytes do not fit into Options.Memory.
func (s *Spool) enqueue(bytes int, run func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || bytes > 0 && s.queuedBytes+int64(bytes) > s.o.Memory {
		return false
	}
	s.queue = append(s.queue, task{bytes, run})
	s.queuedBytes += int64(bytes)
	s.queueChanged.Signal()
	return true
}

// Read returns the frames of a file, after all of them are written.
func (f *File) Read() ([]Frame, error) {
	written := make(chan struct{})
	open := f.s.enqueue(0, func() {
		f.s.writePending(f, nil)
		close(written)
	})
	if !open {
		written = f.s.writerDone
	}
	<-written
	data, err := os.ReadFile(f.path)
	if err != nil {
		return nil, fmt.Errorf("read spool: %w", err)
	}
	return parseFrames(data), nil
}

// Recover takes over the exchanges of processes that ended before they committed them. It calls
// yield for each exchange with its frames; within the folder of a process, the oldest comes first.
func (s *Spool) Recover(yield func(f *File, frames []Frame)) error {
	folders, err := listPaths(s.folder, "live-")
	for _, dir := range folders {
		if dir == s.liveFolder {
			continue
		}
		if lock, _ := lockFolderIfFree(dir); lock != nil { // its process does not run
			// The lock is closed before its folder is removed: Windows does not remove open files.
			bad := errors.Join(s.moveExchangesFrom(dir, yield), lock.Close())
			if bad == nil {
				bad = os.RemoveAll(dir)
			}
			err = errors.Join(err, bad)
		}
	}
	if err != nil {
		return fmt.Errorf("recover spool: %w", err)
	}
	return nil
}

// moveExchangesFrom moves the exchanges in the folder of an ended process, whose lock the caller
// holds, to this process, and yields them.
func (s *Spool) moveExchangesFrom(lockedFolder string, yield func(f *File, frames []Frame)) error {
	paths, err := listExchanges(lockedFolder)
	if err != nil {
		return err
	}
	for _, path := range paths {
		f := s.Begin(nil)
		if err := os.Rename(path, f.path); err != nil {
			return err
		}
		data, err := os.ReadFile(f.path)
		if err != nil {
			return err
		}
		s.enqueue(0, func() {
			f.created, f.size = true, int64(len(data))
			s.size += f.size
		})
		yield(f, parseFrames(data))
	}
	return nil
}

// Close waits until everything is written. Unfinished files stay for [Spool.Recover].
func (s *Spool) Close() error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	again := s.closed
	s.closed = true
	s.queueChanged.Signal()
	s.mu.Unlock()
	<-s.writerDone
	if again {
		return nil
	}
	err := s.lock.Close()
	if left, bad := listExchanges(s.liveFolder); bad == nil && len(left) == 0 {
		err = errors.Join(err, os.RemoveAll(s.liveFolder))
	}
	if err != nil {
		return fmt.Errorf("close spool: %w", err)
	}
	return nil
}

// listPaths returns the paths of the files in a folder whose names begin with a prefix, in the order
// of their names; none if the folder does not exist. (filepath.Glob would take characters of the
// folder's own path for a pattern.)
func listPaths(folder, prefix string) (paths []string, err error) {
	list, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, entry := range list {
		if strings.HasPrefix(entry.Name(), prefix) {
			paths = append(paths, filepath.Join(folder, entry.Name()))
		}
	}
	return paths, err
}

// listExchanges returns the paths of the exchanges in the folder of a process, the oldest first.
func listExchanges(dir string) ([]string, error) {
	paths, err := listPaths(dir, "")
	return slices.DeleteFunc(paths, func(path string) bool { return !strings.Contains(filepath.Base(path), "-") }), err
}

// clearedFile is the name of the file that contains the time of the last [Clear].
const clearedFile = "cleared"

// Clear overwrites and removes the committed exchanges in a folder, because content that was
// purged from the store must not stay here. It does nothing if the folder does not exist.
func Clear(folder string) error {
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	// The mark comes first: a process that finishes an exchange meanwhile sees it, and keeps nothing.
	marked := os.WriteFile(filepath.Join(folder, clearedFile), []byte(time.Now().Format(time.RFC3339Nano)), 0o600)
	names, err := listPaths(filepath.Join(folder, "done"), "")
	err = errors.Join(marked, err)
	for _, path := range names {
		if bad := overwriteAndRemove(path); bad != nil && !errors.Is(bad, fs.ErrNotExist) {
			err = errors.Join(err, bad)
		}
	}
	if err != nil {
		return fmt.Errorf("clear spool: %w", err)
	}
	return nil
}

// Cleared returns a text that changes with each [Clear] of a folder; empty if it was never
// cleared.
func Cleared(folder string) string {
	if folder == "" {
		return ""
	}
	text, _ := os.ReadFile(filepath.Join(folder, clearedFile)) // no file: never cleared
	return string(text)
}

// appendFrame appends a frame to b: its kind, the length of its data as an unsigned varint, and
// its data.
func appendFrame(b []byte, frame Frame) []byte {
	return append(appendFrameHead(b, frame), frame.Data...)
}

// appendFrameHead appends the part of a frame before its data.
func appendFrameHead(b []byte, frame Frame) []byte {
	return binary.AppendUvarint(append(b, frame.Kind), uint64(len(frame.Data)))
}

// parseFrames returns the complete frames at the beginning of data. No kind of frame is 0: zeros
// are what remains of overwritten frames.
func parseFrames(data []byte) (frames []Frame) {
	for len(data) > 0 && data[0] != 0 {
		size, n := binary.Uvarint(data[1:])
		if n <= 0 || size > uint64(len(data)-1-n) {
			break
		}
		frames = append(frames, Frame{data[0], data[1+n : 1+n+int(size)]})
		data = data[1+n+int(size):]
	}
	return frames
}
