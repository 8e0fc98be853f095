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
	"github.com/tract-vcs/tract/objects/bolt/internal/journal"
)

// newSuffix follows the name of a store in that of a file which is to be it.
const newSuffix = ".new-"

// newJournal follows it in that of a file which is to be its journal.
const newJournal = newSuffix + "journal-"

// create makes the store unless it is there. The file is built whole under
// another name, and then takes its own, which nothing ever has to give up for it.
func (s *store) create(ctx context.Context) error {
	dir := filepath.Dir(s.path)
	if err := makeDir(dir); err != nil {
		return explainPath("create", s.path, err)
	}
	waiting, cancel := context.WithTimeout(ctx, s.wait)
	defer cancel()
	side, err := s.lock(waiting, true)
	if err != nil {
		return s.waited(ctx, "create", err)
	}
	defer side.release()
	if _, err := os.Lstat(s.path); err == nil {
		return nil // another process was faster
	}
	removeLeftovers(s.path, false)
	return explainPath("create", s.path, s.publish(dir))
}

// publish builds the file and gives it its name.
func (s *store) publish(dir string) error {
	bound := journal.Binding{Generation: 1}
	_, _ = rand.Read(bound.Salt[:])
	if err := s.publishJournal(dir, bound.Salt); err != nil {
		return err
	}
	path, err := build(dir, filepath.Base(s.path)+newSuffix+"*", bound, formatFirst)
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
	return syncDir(dir)
}

// publishJournal makes the journal, before the file that it belongs to: who has
// one has the other. One that is left from a creation that was interrupted is
// empty; another has lost its store, and is not to be lost itself.
func (s *store) publishJournal(dir string, salt [journal.SaltSize]byte) error {
	name := journalPath(s.path)
	old, err := s.policy.Open(name, os.O_RDONLY, 0)
	switch {
	case errors.Is(err, objects.ErrUnsafe):
		return err
	case err == nil:
		has := journal.HasFrames(old)
		_ = old.Close()
		if has {
			return fmt.Errorf("%s holds commits, and their store is not there: %w: put it back, or the journal away", name, objects.ErrCorrupt)
		}
	}
	f, err := os.CreateTemp(dir, filepath.Base(s.path)+newJournal+"*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // when it has its name it does nothing
	_, err = f.Write(journal.NewFile(salt))
	if err := errors.Join(err, f.Chmod(0o600), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return err
	}
	return syncDir(dir) // no power failure leaves the file without it
}

// build makes an empty store of a version in a file of its own and makes it durable.
func build(dir, pattern string, bound journal.Binding, version uint64) (path string, err error) {
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
			return errors.Join(meta.Put(formatKey, encodeFormat(version)), meta.Put(journalKey, encodeBinding(bound)), meta.Put(runsKey, runs{}.encode()))
		})
		return errors.Join(err, db.Sync(), db.Close())
	})
}

// makeDir makes a directory and those above it that are not there, each durable
// before the next. Of those that are there the last may be of somebody who was stopped
// before that.
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
		if err := settleName(above); err != nil {
			return err
		}
	}
	if errors.Is(err, fs.ErrExist) {
		if info, e := os.Stat(path); e == nil && info.IsDir() {
			return settleName(path)
		}
	}
	if err != nil {
		return err
	}
	if err := os.Chmod(path, 0o700); err != nil { // the umask may have taken even the owner's bits
		return err
	}
	return syncDir(above)
}

// settleName makes the name of a directory durable that was there before, if it can
// have been made by this user.
func settleName(path string) error {
	err := syncDir(filepath.Dir(path))
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func dirOf(path string) string { return filepath.Dir(path) }
