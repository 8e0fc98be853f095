//go:build !windows

package bolt

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// renamesOpen tells that a file that is open can lose its name to another.
const renamesOpen = true

// nameless tells whether a file has no name any more.
func nameless(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Nlink == 0
}

// syncDir makes the names in a directory durable.
func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) {
		err = nil // a file system that knows no such thing
	}
	return errors.Join(err, d.Close())
}
