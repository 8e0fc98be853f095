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

// A backup or a recovery is built in a folder under a temporary name, NAME.new-*, which
// gets its name when it is complete. A lock file in it is locked meanwhile, so that the
// folder of a killed process can be told from one in use.
const (
	newFolder  = ".new-"
	unfinished = "unfinished.lock"
)

// inNewFolder calls f with a new folder, and gives the folder its name when f has
// succeeded. It removes what killed processes have left of folders of that name.
func inNewFolder(path string, f func(dir string) error) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%s: %w", path, objects.ErrExists)
	}
	for _, dir := range abandoned(filepath.Dir(path), filepath.Base(path)) {
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
		err = f(dir)
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

// abandoned returns the unfinished folders in a folder that no process writes any more:
// those that were to have a name, or all of them if it is empty.
func abandoned(parent, name string) (dirs []string) {
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

// Leftovers returns the files and folders that killed processes have left beside the
// store: of a gc or purge, which the next write removes, and of a backup or recovery
// into the folder that holds the store's, which the next one of the same name removes.
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
		names = append(names, abandoned(filepath.Dir(filepath.Dir(path)), "")...)
	}
	slices.Sort(names)
	return names, nil
}
