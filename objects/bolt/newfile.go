package bolt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.etcd.io/bbolt"

	"github.com/tract-vcs/tract/safefile"
)

// The new file of a compaction, from its making until it has another name or is taken
// away.

// begin makes the new file and opens it. In the moment in which nobody has it locked
// another gc may take it for one that was left (see removeLeft): then it makes one more.
func (c *compaction) begin(path string, version uint64) (err error) {
	for range patience {
		if c.path, err = build(dirOf(path), filepath.Base(path)+newSuffix+"*", binding{gen: 1}, version); err != nil {
			return err
		}
		if err = c.open(); err == nil {
			err = c.still()
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
		if tx.Bucket([]byte(metaBucket)) == nil {
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

// removeLeft takes away the files of those who were interrupted. One that somebody
// is writing is locked.
func removeLeft(path string) {
	entries, _ := os.ReadDir(dirOf(path))
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), filepath.Base(path)+newSuffix) || strings.HasPrefix(e.Name(), filepath.Base(path)+newSuffix+"journal-") {
			continue
		}
		name := filepath.Join(dirOf(path), e.Name())
		if f, err := (safefile.Policy{}).Open(name, os.O_RDWR, 0); err == nil {
			if free, err := lockFile(f, true, false); free && err == nil {
				_ = os.Remove(name)
			}
			_ = f.Close()
		}
	}
}
