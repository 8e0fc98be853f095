package safefile

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// Write replaces the file at path, or makes it, with mode 0600. The file has its old or
// its new content whenever the process ends or the power fails, and the new content is
// durable when Write returns. ready may be nil; it is called when the new content is on
// disk and not yet in its place: an error of it is returned, and nothing is changed.
func Write(path string, b []byte, ready func() error) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, filepath.Base(path)+"-*.tmp") // 0600
	if err != nil {
		return err
	}
	err = f.Chmod(0o600) // the umask may have cleared even the bits of the owner
	if err == nil {
		_, err = f.Write(b)
	}
	if err == nil {
		err = f.Sync()
	}
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err == nil && ready != nil {
		err = ready()
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return err
	}
	return SyncFolder(dir)
}

// SyncFolder makes the names in a folder durable, where the system can do that.
func SyncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	err = d.Sync()
	if runtime.GOOS == "windows" || errors.Is(err, syscall.EINVAL) { // they cannot sync a folder
		err = nil
	}
	return errors.Join(err, d.Close())
}
