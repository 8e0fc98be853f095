package bolt

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/index"
	"github.com/tract-vcs/tract/objects/bolt/internal/journal"
	"github.com/tract-vcs/tract/safefile"
)

// newSuffix follows the name of the store in the name of a file that will replace it.
const newSuffix = ".new-"

// newJournal follows the name of the store in the name of a file that will be its journal.
const newJournal = newSuffix + "journal-"

// create creates the store unless it exists. The file is completed under another name first,
// and never replaces a file.
func (s *store) create(ctx context.Context) error {
	dir := filepath.Dir(s.path)
	if err := makeDir(dir); err != nil {
		return explainPath("create", s.path, err)
	}
	waiting, cancel := context.WithTimeout(ctx, s.wait)
	defer cancel()
	lock, err := s.lock(waiting, true)
	if err != nil {
		return s.waitError(ctx, "create", err)
	}
	defer lock.release()
	if _, err := os.Lstat(s.path); err == nil {
		return nil // another process was faster
	}
	removeLeftovers(s.path, false)
	return explainPath("create", s.path, s.createFiles(dir))
}

// createFiles builds an empty journal and an empty file in a folder, and gives them their names. A
// file that another process created first stays.
func (s *store) createFiles(dir string) error {
	bound := journal.Binding{Generation: 1}
	_, _ = rand.Read(bound.Salt[:])
	if err := s.createJournal(dir, bound.Salt); err != nil {
		return err
	}
	path, err := createEmptyFile(dir, filepath.Base(s.path)+newSuffix+"*", bound)
	if path != "" {
		defer func() { _ = os.Remove(path) }()
	}
	if err != nil {
		_ = os.Remove(journalPath(s.path))
		return err
	}
	err = os.Link(path, s.path)
	switch {
	case err == nil, errors.Is(err, fs.ErrExist):
	default: // a file system without links; nobody else creates now
		if err := os.Rename(path, s.path); err != nil {
			return err
		}
	}
	return safefile.SyncFolder(dir)
}

// createJournal creates the journal before its database file, so that a file always has a
// journal. A journal of an interrupted creation is empty; any other has lost its store, and is not
// overwritten.
func (s *store) createJournal(dir string, salt [journal.SaltSize]byte) error {
	name := journalPath(s.path)
	old, err := s.policy.Open(name, os.O_RDONLY, 0)
	switch {
	case errors.Is(err, objects.ErrUnsafe):
		return err
	case err == nil:
		has := journal.HasFrames(old)
		_ = old.Close()
		if has {
			return fmt.Errorf("journal %s has unapplied commits but the store file is missing: %w: restore the file, or move the journal away", name, objects.ErrCorrupt)
		}
	}
	f, err := os.CreateTemp(dir, filepath.Base(s.path)+newJournal+"*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // after the rename it does nothing
	_, err = f.Write(journal.NewFile(salt))
	if err := errors.Join(err, f.Chmod(0o600), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return err
	}
	return safefile.SyncFolder(dir) // after a power failure there is no file without a journal
}

// createEmptyFile creates a durable file with an empty store.
func createEmptyFile(dir, pattern string, bound journal.Binding) (path string, err error) {
	f, err := os.CreateTemp(dir, pattern)
	if err != nil {
		return "", err
	}
	path = f.Name()
	if err := errors.Join(f.Chmod(0o600), f.Close()); err != nil {
		return path, err
	}
	return path, protect(func() error {
		db, err := bbolt.Open(path, 0o600, &bbolt.Options{FreelistType: bbolt.FreelistArrayType, NoStatistics: true})
		if err != nil {
			return err
		}
		err = db.Update(func(tx *bbolt.Tx) error {
			for _, name := range buckets {
				if _, err := tx.CreateBucket([]byte(name)); err != nil {
					return err
				}
			}
			meta := tx.Bucket([]byte(buckets[metaBucket]))
			return errors.Join(meta.Put(formatKey, encodeFormat(formatVersion)), meta.Put(journalKey, encodeBinding(bound)), meta.Put(runsKey, encodeRuns(index.Runs{})))
		})
		return errors.Join(err, db.Sync(), db.Close())
	})
}

// makeDir creates a directory and its missing parents, each durable before the next. A directory
// that exists may have been created by a process that was killed before it was durable.
func makeDir(path string) error {
	above := filepath.Dir(path)
	err := os.Mkdir(path, 0o700)
	switch {
	case errors.Is(err, fs.ErrNotExist) && above != path:
		if err := makeDir(above); err != nil {
			return err
		}
		err = os.Mkdir(path, 0o700)
	case err == nil:
		if err := syncParent(above); err != nil {
			return err
		}
	}
	if errors.Is(err, fs.ErrExist) {
		if info, e := os.Stat(path); e == nil && info.IsDir() {
			return syncParent(path)
		}
	}
	if err != nil {
		return err
	}
	if err := os.Chmod(path, 0o700); err != nil { // the umask may have cleared even the bits of the owner
		return err
	}
	return safefile.SyncFolder(above)
}

// syncParent makes the name of an existing directory durable, if this user may have created
// it.
func syncParent(path string) error {
	err := safefile.SyncFolder(filepath.Dir(path))
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
