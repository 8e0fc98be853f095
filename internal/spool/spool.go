// Package spool keeps recorded exchanges in files until they are committed, and for some time
// after that: what a process could not commit before it ended is there for the next one.
//
// A folder has a folder live-ID for each process, with a lock that the process holds, and a
// folder done with what was committed. A file is one exchange, a sequence of frames in the
// order in which they came. Files are written by one goroutine in the background: no method
// but [Open], [Spool.Recover] and [Spool.Close] waits for the disk. Files are not synced: they
// survive the end of the process, not a power failure.
package spool

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tract-vcs/tract/internal/filelock"
)

// Options bound a spool.
type Options struct {
	Memory int64 // most bytes that wait to be written; 0: 64 MiB
	Disk   int64 // most bytes of files; 0: 1 GiB
}

// Frame is one part of an exchange.
type Frame struct {
	Kind byte
	Data []byte
}

// Spool is a folder of exchanges. Any number of goroutines may use it.
type Spool struct {
	o      Options
	folder string // of all processes
	live   string // of this process
	lock   *os.File

	dropped atomic.Int64

	mu      sync.Mutex
	more    sync.Cond
	queue   []operation
	waiting int64 // bytes in the queue
	closed  bool
	ended   chan struct{}
	next    int

	// Of the writer alone:
	size int64            // bytes of all files
	done []finished       // committed, oldest first
	kept map[string]int64 // sizes of the live files, by path

	cleared string // [Cleared] as it was last seen
	begun   int    // files that were begun before that: they are not kept
}

type finished struct {
	path string
	size int64
}

// operation is work for the writer.
type operation struct {
	file   *File
	frame  Frame
	then   func()
	finish func() []Frame // nil: write the frame
	label  string         // of the finished file
}

// File is one exchange in the spool. A nil File keeps nothing.
type File struct {
	s      *Spool
	path   string
	number int
	clean  func(Frame) Frame
	lost   atomic.Bool // it could not be kept

	// Of the writer:
	f       *os.File
	pending []byte   // to be written
	then    []func() // to be called after that
}

// Open opens the spool in a folder, which is made when it is missing.
func Open(folder string, o Options) (*Spool, error) {
	if o.Memory == 0 {
		o.Memory = 64 << 20
	}
	if o.Disk == 0 {
		o.Disk = 1 << 30
	}
	id := make([]byte, 8)
	if _, err := rand.Read(id); err != nil {
		return nil, fmt.Errorf("open spool: %w", err)
	}
	s := &Spool{o: o, folder: folder, live: filepath.Join(folder, "live-"+hex.EncodeToString(id)), ended: make(chan struct{}), kept: map[string]int64{}, cleared: Cleared(folder)}
	s.more.L = &s.mu
	for _, dir := range []string{s.live, filepath.Join(folder, "done")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("open spool: %w", err)
		}
	}
	var err error
	if s.lock, err = lockFolder(s.live); err != nil {
		return nil, fmt.Errorf("open spool: %w", err)
	}
	names, err := filepath.Glob(filepath.Join(folder, "done", "*"))
	if err != nil {
		return nil, fmt.Errorf("open spool: %w", err)
	}
	slices.Sort(names)
	for _, path := range names {
		if info, err := os.Stat(path); err == nil {
			s.done = append(s.done, finished{path, info.Size()})
			s.size += info.Size()
		}
	}
	go s.write()
	return s, nil
}

// lockFolder locks the folder of a process; nil when another process holds the lock.
func lockFolder(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if free, err := filelock.Lock(f, true, false); err != nil || !free {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Dropped returns the number of exchanges that could not be kept, because a bound was
// reached or the disk failed.
func (s *Spool) Dropped() int64 { return s.dropped.Load() }

// Begin begins a file. clean returns frames as they are written; it is called in the
// background, and may be nil. A nil Spool gives a nil File.
func (s *Spool) Begin(clean func(Frame) Frame) *File {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next++
	return &File{s: s, number: s.next, clean: clean, path: filepath.Join(s.live, fmt.Sprintf("%s-%08d", time.Now().UTC().Format("20060102T150405"), s.next))}
}

// Write adds a frame, whose data must not change any more. then may be nil; it is called when the frame is in
// the file, not when the exchange could not be kept.
func (f *File) Write(frame Frame, then func()) {
	if f == nil || f.lost.Load() {
		return
	}
	s := f.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.waiting+int64(len(frame.Data)) > s.o.Memory {
		f.lost.Store(true)
		s.dropped.Add(1)
		return
	}
	s.add(operation{file: f, frame: frame, then: then})
}

// Lost reports whether the exchange is not, or not whole, in the spool.
func (f *File) Lost() bool { return f == nil || f.lost.Load() }

// Finish replaces the file by one with other frames among the committed ones, which [Find]
// finds by its label; without frames it is removed. The old bytes are overwritten. frames is
// called in the background.
func (f *File) Finish(label string, frames func() []Frame) {
	if f == nil {
		return
	}
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	f.s.add(operation{file: f, finish: frames, label: label})
}

// add adds work for the writer. The lock is held.
func (s *Spool) add(o operation) {
	s.queue = append(s.queue, o)
	s.waiting += int64(len(o.frame.Data))
	s.more.Signal()
}

// write does the work of the queue until the spool is closed.
func (s *Spool) write() {
	defer close(s.ended)
	for {
		s.mu.Lock()
		for len(s.queue) == 0 && !s.closed {
			s.more.Wait()
		}
		list := s.queue
		s.queue = nil
		s.mu.Unlock()
		if len(list) == 0 {
			return
		}
		s.do(list)
	}
}

// do does a part of the queue: each file is written once, and one that is finished by now
// is not written at all.
func (s *Spool) do(list []operation) {
	var files []*File
	for _, o := range list {
		f := o.file
		switch {
		case o.finish != nil:
			f.pending, f.then = nil, nil
			if err := s.finish(f, o.label, o.finish()); err != nil && !f.lost.Swap(true) {
				s.dropped.Add(1)
			}
		case !f.lost.Load():
			frame := o.frame
			if f.clean != nil {
				frame = f.clean(frame)
			}
			if len(f.pending) == 0 {
				files = append(files, f)
			}
			f.pending = appendFrame(f.pending, frame)
			if o.then != nil {
				f.then = append(f.then, o.then)
			}
		}
	}
	for _, f := range files {
		if len(f.pending) > 0 {
			s.flush(f)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range list {
		s.waiting -= int64(len(o.frame.Data))
	}
}

// flush writes what is pending of a file.
func (s *Spool) flush(f *File) {
	data, then := f.pending, f.then
	f.pending, f.then = nil, nil
	if err := s.append(f, data); err != nil {
		f.lost.Store(true)
		s.dropped.Add(1)
		_ = s.remove(f) // the exchange is lost anyway
		return
	}
	for _, written := range then {
		written()
	}
}

// errFull says that the bound of the disk is reached.
var errFull = errors.New("the spool is full")

func (s *Spool) append(f *File, data []byte) error {
	if !s.room(int64(len(data))) {
		return errFull
	}
	if err := s.create(f); err != nil {
		return err
	}
	n, err := f.f.Write(data)
	s.size += int64(n)
	s.kept[f.path] += int64(n)
	return err
}

// room makes room for bytes: the oldest committed exchanges go.
func (s *Spool) room(bytes int64) bool {
	for len(s.done) > 0 && s.size+bytes > s.o.Disk {
		if err := overwrite(s.done[0].path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false
		}
		s.size -= s.done[0].size
		s.done = s.done[1:]
	}
	return s.size+bytes <= s.o.Disk
}

// remove removes the live file of an exchange.
func (s *Spool) remove(f *File) error {
	if f.f == nil {
		return nil
	}
	err := errors.Join(f.f.Close(), overwrite(f.path))
	f.f = nil
	s.size -= s.kept[f.path]
	delete(s.kept, f.path)
	return err
}

func (s *Spool) finish(f *File, label string, frames []Frame) error {
	var data []byte
	for _, frame := range frames {
		data = appendFrame(data, frame)
	}
	if now := Cleared(s.folder); now != s.cleared {
		s.mu.Lock()
		s.cleared, s.begun = now, s.next
		s.mu.Unlock()
	}
	if len(data) == 0 || f.number <= s.begun || !s.room(int64(len(data))-s.kept[f.path]) {
		return s.remove(f)
	}
	if err := s.create(f); err != nil {
		return err
	}
	if err := errors.Join(rewrite(f.f, data), f.f.Close()); err != nil {
		f.f = nil
		return errors.Join(err, overwrite(f.path))
	}
	f.f = nil
	path := filepath.Join(s.folder, "done", filepath.Base(f.path)+"-"+filepath.Base(s.live)[5:]+"-"+label)
	if err := os.Rename(f.path, path); err != nil {
		return err
	}
	s.done = append(s.done, finished{path, int64(len(data))})
	s.size += int64(len(data)) - s.kept[f.path]
	delete(s.kept, f.path)
	return nil
}

// create makes the file of an exchange that has none yet.
func (s *Spool) create(f *File) (err error) {
	if f.f == nil {
		f.f, err = os.OpenFile(f.path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	}
	return err
}

// rewrite replaces all bytes of a file.
func rewrite(f *os.File, data []byte) error {
	info, err := f.Stat()
	if err == nil {
		err = zero(f, int64(len(data)), info.Size())
	}
	if err == nil {
		_, err = f.WriteAt(data, 0)
	}
	return errors.Join(err, f.Truncate(int64(len(data))))
}

// zero writes zeros over a part of a file.
func zero(f *os.File, begin, end int64) (err error) {
	zeros := make([]byte, max(0, min(64<<10, end-begin)))
	for ; err == nil && begin < end; begin += int64(len(zeros)) {
		_, err = f.WriteAt(zeros[:min(int64(len(zeros)), end-begin)], begin)
	}
	return err
}

// overwrite writes zeros over a file and removes it.
func overwrite(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() { // such as a link to a file of somebody else
		return os.Remove(path)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(zero(f, 0, info.Size()), f.Close(), os.Remove(path))
}

// Read returns the frames of a file. What a process wrote last may be cut off.
func (f *File) Read() ([]Frame, error) {
	data, err := os.ReadFile(f.path)
	if err != nil {
		return nil, fmt.Errorf("read spool: %w", err)
	}
	return parseFrames(data), nil
}

// Recover takes over the exchanges of processes that ended before they committed them,
// oldest first, and gives each with its frames.
func (s *Spool) Recover(yield func(f *File, frames []Frame)) error {
	folders, err := filepath.Glob(filepath.Join(s.folder, "live-*"))
	for _, dir := range folders {
		if dir == s.live {
			continue
		}
		if lock, _ := lockFolder(dir); lock != nil { // its process does not run
			err = errors.Join(err, s.recover(dir, yield), lock.Close())
		}
	}
	if err != nil {
		return fmt.Errorf("recover spool: %w", err)
	}
	return nil
}

// recover takes over the exchanges of a folder, and removes it.
func (s *Spool) recover(dir string, yield func(f *File, frames []Frame)) error {
	names, err := filepath.Glob(filepath.Join(dir, "*-*"))
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, path := range names {
		f := s.Begin(nil)
		if err := os.Rename(path, f.path); err != nil {
			return err
		}
		if f.f, err = os.OpenFile(f.path, os.O_RDWR, 0); err != nil {
			return err
		}
		frames, err := f.Read()
		if err != nil {
			return err
		}
		yield(f, frames)
	}
	return os.RemoveAll(dir)
}

// Close waits until everything is written. What is not finished stays for [Spool.Recover].
func (s *Spool) Close() error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	again := s.closed
	s.closed = true
	s.more.Signal()
	s.mu.Unlock()
	<-s.ended
	if again {
		return nil
	}
	err := s.lock.Close()
	if left, _ := filepath.Glob(filepath.Join(s.live, "*-*")); len(left) == 0 {
		err = errors.Join(err, os.RemoveAll(s.live))
	}
	if err != nil {
		return fmt.Errorf("close spool: %w", err)
	}
	return nil
}

// Find returns the frames of the newest committed exchange of a folder with a label; none when
// it is not kept any more.
func Find(folder, label string) ([]Frame, error) {
	names, err := filepath.Glob(filepath.Join(folder, "done", "*-"+label))
	if err != nil || len(names) == 0 {
		return nil, err
	}
	data, err := os.ReadFile(slices.Max(names))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read spool: %w", err)
	}
	return parseFrames(data), nil
}

// cleared is the file whose time is that of the last [Clear].
const cleared = "cleared"

// Clear removes the committed exchanges of a folder, and overwrites their bytes: what was
// purged from the store must not stay here. A folder that does not exist is none.
func Clear(folder string) error {
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	names, err := filepath.Glob(filepath.Join(folder, "done", "*"))
	for _, path := range names {
		if bad := overwrite(path); bad != nil && !errors.Is(bad, fs.ErrNotExist) {
			err = errors.Join(err, bad)
		}
	}
	err = errors.Join(err, os.WriteFile(filepath.Join(folder, cleared), []byte(time.Now().Format(time.RFC3339Nano)), 0o600))
	if err != nil {
		return fmt.Errorf("clear spool: %w", err)
	}
	return nil
}

// Cleared returns a text that changes with each [Clear] of a folder; empty: there was none.
func Cleared(folder string) string {
	if folder == "" {
		return ""
	}
	text, _ := os.ReadFile(filepath.Join(folder, cleared)) // without one, nothing was cleared
	return string(text)
}

// appendFrame appends a frame: its kind, its length and its data.
func appendFrame(b []byte, frame Frame) []byte {
	b = append(b, frame.Kind)
	b = binary.AppendUvarint(b, uint64(len(frame.Data)))
	return append(b, frame.Data...)
}

// parseFrames returns the whole frames that data begins with.
func parseFrames(data []byte) (frames []Frame) {
	for len(data) > 0 {
		size, n := binary.Uvarint(data[1:])
		if n <= 0 || size > uint64(len(data)-1-n) {
			break
		}
		frames = append(frames, Frame{data[0], data[1+n : 1+n+int(size)]})
		data = data[1+n+int(size):]
	}
	return frames
}
