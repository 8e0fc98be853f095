package bolt

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/tract-vcs/tract/internal/filelock"
	"github.com/tract-vcs/tract/objects/bolt/internal/journal"
	"github.com/tract-vcs/tract/safefile"
)

// forEachLeftover calls f with each file that an interrupted creation, gc or purge has left
// beside a store. A file that is still being written is locked by its writer, and is none.
func forEachLeftover(path string, f func(file *os.File)) {
	entries, _ := os.ReadDir(filepath.Dir(path))
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), filepath.Base(path)+newSuffix) {
			continue
		}
		file, err := safefile.Policy{}.Open(filepath.Join(filepath.Dir(path), e.Name()), os.O_RDWR, 0)
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
	forEachLeftover(path, func(file *os.File) {
		name := file.Name()
		if !renamesOpen {
			_ = file.Close()
		}
		if os.Remove(name) == nil && wipe && renamesOpen {
			overwriteUnlinked(file)
		}
	})
}

// Leftovers is objects.Maintainer.
func (s *store) Leftovers(context.Context) (names []string, err error) {
	forEachLeftover(s.path, func(file *os.File) { names = append(names, file.Name()) })
	return names, nil
}

// overwriteUnlinked writes zeros over a file that has lost its last name. A file with another name
// is a copy that somebody wanted, and one that is locked is in use: both stay.
func overwriteUnlinked(f *os.File) {
	info, err := f.Stat()
	if err != nil || !isUnlinked(info) {
		return
	}
	if free, err := filelock.Lock(f, true, false); !free || err != nil {
		return
	}
	_ = journal.Zero(f, 0, info.Size())
}
