//go:build !windows

package safefile

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// Owner returns the user that a file or a folder belongs to, where that is known.
func Owner(info fs.FileInfo) (uid int, known bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(st.Uid), true
}

// open opens what is at a path, but no symbolic link. O_NONBLOCK keeps it from waiting for the other end of a
// named pipe; it is taken back, because the runtime would poll the file otherwise.
func open(path string, flag int, perm fs.FileMode) (*os.File, error) {
	const safe = syscall.O_NOFOLLOW | syscall.O_NONBLOCK | syscall.O_CLOEXEC
	var fd int
	err := error(syscall.EINTR)
	for errors.Is(err, syscall.EINTR) {
		fd, err = syscall.Open(path, flag|safe, uint32(perm.Perm()))
	}
	if err != nil {
		if info, e := os.Lstat(path); e == nil && !info.Mode().IsRegular() {
			return nil, notRegular(path, info.Mode())
		}
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	if err := syscall.SetNonblock(fd, false); err != nil {
		_ = syscall.Close(fd)
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}
