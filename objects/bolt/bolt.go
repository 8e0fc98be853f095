// Package bolt is the embedded storage engine: a store in a folder on a local disk. Importing it
// registers bare paths, and "bolt:PATH", with objects.Open; nobody calls it directly.
//
//	import _ "github.com/tract-vcs/tract/objects/bolt"
//
//	store, err := objects.Open(ctx, ".tract", objects.Options{Create: true})
//
// A path that is a directory, or does not exist and does not end in ".db", holds the file
// tract.db. A store is that file together with its write-ahead log tract.db-journal and two lock
// files.
//
// # How it works
//
// The engine is log-structured: immutable packs of compressed objects, with a write-ahead log in
// front of them, and one bbolt file as the container. Writes are group.go and lease.go, then
// checkpoint.go; reads are snapshot.go, lookup.go, walk.go and load.go; locks between processes are
// ticketlock.go and handle.go. The packages under internal are its parts. docs/design/engine.md
// has the write path, the read path, the states of journal and checkpoint after a kill at any
// step, the lock order and the invariants; docs/format.md has the bytes.
//
// # What it promises beyond package objects
//
//   - A group of writers costs one write and one sync. Nobody waits for company. The functions of
//     updates of different refs run at once.
//   - Any number of processes. Calls of one process share an open handle; a writer keeps it for a few
//     milliseconds unless another process waits, which gets it after the present group. A wait ends
//     with the context, or after Options.Wait (10 s) with objects.ErrBusy.
//   - Objects are stored in the order of their history: walking it reads no content, and compiling
//     it reads what is wanted.
//   - A damaged file is an objects.CorruptError, never a crash or a hang, and it is not changed.
//     Every page and record is checked on the way, and the pages that a checkpoint changes are
//     checked before bbolt sees them. An object is hashed when it is read, or was hashed before the
//     checksum was made under which it is read together with others. Acknowledged frames that are
//     missing at the end of the journal are damage, not the trace of a crash.
//   - Creation can be interrupted anywhere: a file gets its name when it is complete.
//   - All files have mode 0600 in a directory of mode 0700, whatever the umask. A file that others
//     can write, or that belongs to another user, is objects.ErrUnsafe, for root too, unless
//     objects.Options.Files accepts it; so is a symbolic link, a named pipe or a device.
//   - Reading needs no permission to write.
//   - What is purged is in no file afterwards; an interrupted purge has purged everything or nothing.
//
// # What it does not promise
//
//   - Anything on network file systems and in synchronized folders, where locks and renames are not
//     what they seem.
//   - That every damage shows at once. A changed freelist that is still plausible lets bbolt overwrite
//     a page in use, whose content is then found to be damaged. Damage of a page that only a
//     checkpoint needs shows when a checkpoint is made.
//   - That a disk forgets what was purged: many write elsewhere than over it.
//   - That all files put back together from an earlier time are noticed.
package bolt

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/journal"
	"github.com/tract-vcs/tract/objects/bolt/internal/memtable"
	"github.com/tract-vcs/tract/safefile"
)

func init() {
	objects.Register("", open)
	objects.Register("bolt", open)
}

const (
	fileName    = "tract.db"
	defaultWait = 10 * time.Second
	closeWait   = 100 * time.Millisecond
)

// store is a database file and what this process is doing with it.
type store struct {
	path             string
	wait             time.Duration
	readOnly         bool
	policy           safefile.Policy
	checkpointLength int64 // bytes of the journal after which a checkpoint is made
	maxMapSize       int64 // bytes of a file that bbolt can map
	bodies           bodyCache

	leaseIdle time.Duration // for which a writer keeps the lease after the last call

	loading sync.Mutex // held while frames of the journal are read; taken before mu

	mu      sync.Mutex    // guards everything below
	changed chan struct{} // closed, and replaced, when any of these changes
	moved   chan struct{} // closed, and replaced, when this process moves a ref
	closed  bool

	shared      *handle                 // the handle that readers may join; nil: there is none
	openHandles int                     // open handles
	opening     bool                    // a reader opens a handle to share
	writerWaits bool                    // the lease goroutine waits for the store: no reader opens it
	tickets     map[bool]*ticketRequest // for the exclusive lock, and for the shared one

	writer           *writer       // through which everybody writes; nil: there is none
	request          *leaseRequest // for the next writer; nil: nobody waits for one
	leasing          bool          // the lease goroutine runs
	wrote            bool          // a writer was granted
	leftoversRemoved bool          // only the lease goroutine uses it

	fileInfo    os.FileInfo // of the file that was opened last
	fileChanges uint64      // how often the file was replaced, or packs in it rewritten, as it keeps the count
	fileNumber  uint64      // how many were opened, and so the number of the last

	mem         *memtable.Table  // of the journal, as the last handle left it; nil: to be read again
	position    journal.Position // up to which mem has the journal
	journalInfo os.FileInfo      // of the journal that was opened last
}

func open(ctx context.Context, rest string, o objects.Options) (objects.Store, error) {
	path, err := databaseFile(rest)
	if err != nil {
		return nil, err
	}
	s := &store{
		path: path, wait: cmp.Or(o.Wait, defaultWait), readOnly: o.ReadOnly || o.Damaged, policy: o.Files, checkpointLength: journalLimit, leaseIdle: leaseIdle, maxMapSize: mapLimit(strconv.IntSize),
		changed: make(chan struct{}), tickets: map[bool]*ticketRequest{}, moved: make(chan struct{}),
	}
	if info, err := os.Stat(filepath.Dir(path)); err == nil {
		if err := s.policy.Check(filepath.Dir(path), info); err != nil {
			return nil, err
		}
	}
	if o.Damaged {
		if err := s.checkPath(); err != nil {
			return nil, s.explain("open", err)
		}
		return objects.Trust(s, s.purges), nil
	}
	if o.Create && !o.ReadOnly {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			if err := s.create(ctx); err != nil {
				return nil, err
			}
		}
	}
	if err := s.view(ctx, "open", func(*snapshot) error { return nil }); err != nil {
		return nil, err
	}
	// An object in a pack with a valid checksum was hashed before the checksum was made, one of the
	// journal when it was put, and any other is hashed when it is read.
	return objects.Trust(s, s.purges), nil
}

// databaseFile returns the database file of a path.
func databaseFile(path string) (string, error) {
	if path == "" {
		return "", errors.New(`open store "": want a path`)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", explainPath("open", path, err)
	}
	info, err := os.Stat(abs)
	switch {
	case err == nil && info.IsDir():
		return filepath.Join(abs, fileName), nil
	case err == nil || strings.HasSuffix(abs, ".db"):
		return abs, nil
	case errors.Is(err, fs.ErrNotExist):
		return filepath.Join(abs, fileName), nil
	}
	return "", explainPath("open", abs, err)
}

// Size is objects.Maintainer.
func (s *store) Size(context.Context) (path string, bytes int64, err error) {
	for _, name := range []string{s.path, journalPath(s.path)} {
		info, err := os.Stat(name)
		if err != nil {
			return s.path, 0, explainPath("measure", s.path, err)
		}
		bytes += info.Size()
	}
	return s.path, bytes, nil
}

// Close is objects.Store. What this process has left in the journal is checkpointed, or the
// journal truncated, if no other process keeps the store.
func (s *store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return objects.ErrClosed
	}
	s.closed = true
	s.signalMoved()
	s.signal()
	n := s.position.Length()
	untidy := s.wrote && s.writer == nil && !s.readOnly && (n <= 0 || n > journalClose)
	reader := s.shared
	s.mu.Unlock()
	if reader != nil {
		s.closeIdle(reader)
	}
	if untidy {
		waiting, cancel := context.WithTimeout(context.Background(), closeWait)
		defer cancel()
		if w, err := s.acquireWriter(waiting, true); err == nil {
			s.releaseWriter(w) // endLease does it
		}
	}
	return s.await(context.Background(), func() bool { return s.openHandles == 0 && !s.opening && !s.leasing })
}

// signal wakes up whoever awaits a change. mu is held.
func (s *store) signal() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// signalMoved wakes up whoever watches a ref. mu is held.
func (s *store) signalMoved() {
	close(s.moved)
	s.moved = make(chan struct{})
}

// await waits until a condition holds that is about what mu guards.
func (s *store) await(ctx context.Context, holds func() bool) error {
	for {
		s.mu.Lock()
		ok, changed := holds(), s.changed
		s.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
