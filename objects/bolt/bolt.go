// Package bolt keeps a store in one bbolt file and a journal beside it. Importing it
// makes bare paths, and "bolt:PATH", known to objects.Open; nobody calls it directly.
//
//	import _ "github.com/tract-vcs/tract/objects/bolt"
//
//	store, err := objects.Open(ctx, ".tract", objects.Options{Create: true})
//
// A path that is a directory, or is nothing yet and does not end in ".db", holds
// the file tract.db. The journal tract.db-journal holds what is not in it yet; of
// the two lock files one is empty and the other holds an anchor, the place in the
// journal up to which was acknowledged. A store is these files together.
//
// What is promised beyond package objects:
//
//   - A group of writers costs one write and one sync. Batches that come while
//     another is written go together in the next group; nobody waits for company.
//     The functions of updates of different refs run at once.
//   - Any number of processes. No file stays open when nothing is to do: calls
//     open it, work and close it, and those of one process at one time share what
//     one of them opened. A writer keeps it for a few milliseconds, unless another
//     process asks for it; whoever asks gets it after the group that is written.
//     A store opened for reading only keeps it for two milliseconds, or until a look
//     ends and another process has asked.
//     Waiting ends with the context, or after Options.Wait (10 s) and is then
//     objects.ErrBusy.
//   - Objects lie in the order of their history: walking it reads no content, and
//     compiling it reads what is wanted.
//   - A damaged file is an objects.CorruptError, never a crash or a hang, and is
//     not changed. Reading checks every page and record on its way, and folding the
//     journal into the file checks the pages it changes before bbolt sees them. An
//     object is hashed when it is read, or was when the checksum was made under
//     which it is read with many others. What was acknowledged and is gone from the
//     end of the journal is damage, not the trace of a crash.
//   - Creation can be interrupted anywhere: a file has its name only when whole.
//   - All files are 0600 in a directory of 0700, whatever the umask, and one that
//     others can write, or that belongs to somebody else, is objects.ErrUnsafe, for
//     root too, unless objects.Options.Files accepts it. So is a symbolic link, a named
//     pipe or a device in the place of a file.
//   - Reading needs no right to write anything.
//   - What is erased is in no file afterwards: only the packs that have it are rewritten,
//     and the pages that are free by then and the journal are overwritten. If that is
//     interrupted, nothing is erased, or the next write erases all of it.
//
// Not promised:
//
//   - Anything on network file systems and in folders that a program synchronizes,
//     where locks and renames are not what they seem.
//   - That every damage shows at once. A key that has changed is one that is not
//     there. A list of free pages that has changed, and could still be one, lets
//     bbolt write over a page in use; what was there is then found to be damaged.
//     Damage of a page that only folding needs shows when the journal is folded.
//   - That a disk forgets what was erased: many write elsewhere than over it.
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
)

// store is a database file and what this process is doing with it.
type store struct {
	path     string
	wait     time.Duration
	readOnly bool
	policy   safefile.Policy
	limit    int64 // bytes of the journal after which a checkpoint is made
	mapMost  int64 // bytes of a file that bbolt can map
	bodies   bodyCache

	loading sync.Mutex // held while frames of the journal are read; taken before mu

	mu      sync.Mutex    // guards everything below
	changed chan struct{} // closed, and replaced, when any of these changes
	moved   chan struct{} // closed, and replaced, when this process moves a ref
	closed  bool

	shared  *handle                 // the handle that readers may join; nil: there is none
	open    int                     // open handles
	opening bool                    // a reader opens a handle to share
	wanted  bool                    // the lease goroutine waits for the store: no reader opens it
	tickets map[bool]*ticketRequest // for the exclusive lock, and for the shared one

	writer  *writer       // through which everybody writes; nil: there is none
	request *leaseRequest // for the next writer; nil: nobody waits for one
	leasing bool          // the lease goroutine runs
	tidied  bool          // leftovers were removed; only the lease goroutine uses it

	file   os.FileInfo // of the file that was opened last
	before uint64      // how many files had the name before it
	files  uint64      // how many were opened

	mem      *memtable.Table  // of the journal, as the last handle left it; nil: to be read again
	position journal.Position // up to which mem has the journal
	journal  os.FileInfo      // of the journal that was opened last
}

func open(ctx context.Context, rest string, o objects.Options) (objects.Store, error) {
	path, err := locate(rest)
	if err != nil {
		return nil, err
	}
	s := &store{
		path: path, wait: cmp.Or(o.Wait, defaultWait), readOnly: o.ReadOnly || o.Damaged, policy: o.Files, limit: journalLimit, mapMost: mapLimit(strconv.IntSize),
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
		return objects.Trust(s, s.erasures), nil
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
	// What is in a pack whose checksum is right was hashed when the checksum was made, what
	// comes from the journal when it came, and all else is hashed when it is read.
	return objects.Trust(s, s.erasures), nil
}

// locate finds the file that a path means.
func locate(path string) (string, error) {
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

// Close is objects.Store.
func (s *store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return objects.ErrClosed
	}
	s.closed = true
	idle := s.shared
	s.signalMoved()
	s.signal()
	if s.writer != nil {
		s.writer.wake()
	}
	s.mu.Unlock()
	if idle != nil {
		s.closeIdle(idle)
	}
	return s.await(context.Background(), func() bool { return s.open == 0 && !s.opening && !s.leasing })
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
