package maintain

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/internal/filelock"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/safefile"
)

// A backup or a recovery is written to a folder with a temporary name, NAME.new-*, which is
// renamed to NAME when it is complete. Meanwhile a lock file in it is locked, which distinguishes
// a folder in use from the folder of a killed process.
const (
	newFolder  = ".new-"
	unfinished = "unfinished.lock"
)

// createFolderAtomically calls f with a temporary folder, and renames it to path when f succeeds.
// It first removes temporary folders for the same path that killed processes have left.
func createFolderAtomically(path string, fill func(dir string) error) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%s: %w", path, objects.ErrExists)
	}
	for _, dir := range abandonedFolders(filepath.Dir(path), filepath.Base(path)) {
		_ = os.RemoveAll(dir)
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), filepath.Base(path)+newFolder+"*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // does nothing once the folder has its name
	lock, err := os.OpenFile(filepath.Join(dir, unfinished), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = filelock.Lock(lock, true, true)
	if err == nil {
		err = fill(dir)
	}
	_ = lock.Close() // a folder with an open file cannot be renamed everywhere
	if err != nil {
		return err
	}
	if err := os.Rename(dir, path); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(path, unfinished)); err != nil {
		return err
	}
	return safefile.SyncFolder(filepath.Dir(path))
}

// abandonedFolders returns the temporary folders in parent that no running process writes: those for a
// folder of the given name, or all of them if name is empty.
func abandonedFolders(parent, name string) (dirs []string) {
	entries, _ := os.ReadDir(parent)
	for _, e := range entries {
		base, _, found := strings.Cut(e.Name(), newFolder)
		if !e.IsDir() || !found || name != "" && base != name {
			continue
		}
		dir := filepath.Join(parent, e.Name())
		lock, err := os.OpenFile(filepath.Join(dir, unfinished), os.O_RDWR, 0)
		if err != nil {
			continue
		}
		if free, err := filelock.Lock(lock, true, false); free && err == nil {
			dirs = append(dirs, dir)
		}
		_ = lock.Close()
	}
	return dirs
}

// Leftovers returns the files and folders that killed processes have left near the store: files
// of a gc or purge, which the next write removes, and temporary folders of a backup or recovery
// next to the store's folder, which the next backup or recovery to the same name removes.
func Leftovers(ctx context.Context, repo *tract.Repo) (names []string, err error) {
	if in, ok := objects.As[objects.Maintainer](repo.Store()); ok {
		if names, err = in.Leftovers(ctx); err != nil {
			return nil, err
		}
		path, _, err := in.Size(ctx)
		if errors.Is(err, errors.ErrUnsupported) {
			return names, nil // the store has no files
		}
		if err != nil {
			return nil, err
		}
		names = append(names, abandonedFolders(filepath.Dir(filepath.Dir(path)), "")...)
	}
	slices.Sort(names)
	return names, nil
}
