package bolt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.etcd.io/bbolt"

	"github.com/tract-vcs/tract/internal/filelock"
	"github.com/tract-vcs/tract/objects/bolt/internal/journal"
	"github.com/tract-vcs/tract/safefile"
)

// The new file of a compaction, from its making until it has another name or is taken
// away.

// begin makes the new file and opens it. In the moment in which nobody has it locked
// another process may remove it as a leftover: then it makes one more.
func (c *compaction) begin(path string, version uint64) (err error) {
	for range patience {
		if c.path, err = build(dirOf(path), filepath.Base(path)+newSuffix+"*", journal.Binding{Generation: 1}, version); err != nil {
			return err
		}
		if err = c.open(); err == nil {
			err = c.still()
		} else if !exists(c.path) {
			err = fs.ErrNotExist
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		c.discard()
	}
	return err
}

// still tells whether the file that is open is the one that was made, and has its name.
func (c *compaction) still() error {
	if _, err := os.Stat(c.path); err != nil {
		return err
	}
	return c.db.View(func(tx *bbolt.Tx) error {
		if tx.Bucket([]byte(buckets[metaBucket])) == nil {
			return fmt.Errorf("open %s: what was made: %w", c.path, fs.ErrNotExist)
		}
		return nil
	})
}

func (c *compaction) open() error {
	return protect(func() (err error) {
		c.db, err = bbolt.Open(c.path, 0o600, &bbolt.Options{
			Timeout: time.Second, FreelistType: bbolt.FreelistArrayType, NoStatistics: true, NoSync: true, NoFreelistSync: false,
		})
		if err == nil {
			c.db.AllocSize = 0
		}
		return err
	})
}

// discard takes the file away unless it has another name by now.
func (c *compaction) discard() {
	if c == nil || c.path == "" {
		return
	}
	if c.db != nil {
		_ = protect(c.db.Close)
		c.db = nil
	}
	_ = os.Remove(c.path)
}

// leftovers calls f with each file that an interrupted creation, gc or purge has left
// beside a store. A file that is still being written is locked by its writer, and is none.
func leftovers(path string, f func(file *os.File)) {
	entries, _ := os.ReadDir(dirOf(path))
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), filepath.Base(path)+newSuffix) {
			continue
		}
		file, err := safefile.Policy{}.Open(filepath.Join(dirOf(path), e.Name()), os.O_RDWR, 0)
		if err != nil {
			continue
		}
		if free, err := filelock.Lock(file, true, false); free && err == nil {
			f(file)
		}
		_ = file.Close()
	}
}

// removeLeftovers removes the leftovers beside a store, and overwrites what they held if
// wipe is set. The caller has the exclusive lock of the store: without it a file that is
// complete, unlocked and about to get its name would be taken for one.
func removeLeftovers(path string, wipe bool) {
	leftovers(path, func(file *os.File) {
		name := file.Name()
		if !renamesOpen {
			_ = file.Close()
		}
		if os.Remove(name) == nil && wipe && renamesOpen {
			overwrite(file)
		}
	})
}

// tidy removes leftovers before a compaction needs their room.
func (s *store) tidy(ctx context.Context, op string, wipe bool) error {
	if err := s.find(); err != nil {
		return s.explain(op, err)
	}
	waiting, cancel := context.WithTimeout(ctx, s.wait)
	defer cancel()
	side, err := s.twin().lock(waiting, true)
	if err != nil {
		return s.waited(ctx, op, err)
	}
	removeLeftovers(s.path, wipe)
	side.release()
	return nil
}

// Leftovers is objects.Maintainer.
func (s *store) Leftovers(context.Context) (names []string, err error) {
	leftovers(s.path, func(file *os.File) { names = append(names, file.Name()) })
	return names, nil
}
