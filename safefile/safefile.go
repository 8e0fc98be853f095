// Package safefile opens files in folders that another user may have made, such as
// a folder that was cloned or unpacked. It never follows a symbolic link in the place
// of a file, never waits for the other end of a named pipe, and refuses files that
// another user owns or can write.
//
// For most uses: [Policy.Read] a small file, [Policy.Open] any other, and
// [Policy.Check] a folder before anything in it is opened. The zero Policy is the
// strictest. Where files have no owner by number (Windows), owners and modes are not
// checked.
package safefile

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// The kinds of errors. A file that is not regular is not safe either.
var (
	ErrUnsafe     = errors.New("not safe to use")
	ErrNotRegular = fmt.Errorf("%w: want a regular file", ErrUnsafe)
)

// Policy is which files are accepted. The zero Policy accepts those that the user of this
// process owns and no other user can write.
type Policy struct {
	Any   bool   // accept files of any owner and mode
	Owner int    // accept files of this user too; 0: of no other user
	Root  string // the folder that the files are in, for errors; may be empty
}

// Error reports why a file or a folder is not safe to use.
type Error struct {
	Path   string
	Folder string // the folder to trust: the root of the policy, or the one that holds the file
	Why    string
}

// Error names the file.
func (e *Error) Error() string { return fmt.Sprintf("open %s: %s: %v", e.Path, e.Why, ErrUnsafe) }

// Unwrap makes it an ErrUnsafe.
func (e *Error) Unwrap() error { return ErrUnsafe }

// Check returns an *[Error] for a file or a folder that the policy does not accept. A
// symbolic link, as os.Lstat describes it, has an owner and no mode.
func (p Policy) Check(path string, info fs.FileInfo) error {
	return p.check(path, info, os.Geteuid())
}

func (p Policy) check(path string, info fs.FileInfo, user int) error {
	uid, known := Owner(info)
	if p.Any || !known {
		return nil
	}
	e := &Error{Path: path, Folder: cmp.Or(p.Root, path)}
	if p.Root == "" && !info.IsDir() {
		e.Folder = filepath.Dir(path)
	}
	switch {
	case uid != user && (p.Owner == 0 || uid != p.Owner):
		e.Why = fmt.Sprintf("it belongs to user %d", uid)
	case info.Mode().Perm()&0o022 != 0 && info.Mode()&fs.ModeSymlink == 0:
		e.Why = fmt.Sprintf("others can write it (mode %04o)", info.Mode().Perm())
	default:
		return nil
	}
	return e
}

// Open opens a regular file that the policy accepts. flag and perm are those of
// os.OpenFile. The error is an [ErrNotRegular] for anything else in the place of the
// file, a symbolic link included.
func (p Policy) Open(path string, flag int, perm fs.FileMode) (*os.File, error) {
	f, err := open(path, flag, perm)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = notRegular(path, info.Mode())
	}
	if err == nil {
		err = p.Check(path, info)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// Read returns at most limit bytes of a file that Open would open.
func (p Policy) Read(path string, limit int64) ([]byte, error) {
	f, err := p.Open(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, limit))
}

// notRegular returns the error for what is in the place of a file.
func notRegular(path string, mode fs.FileMode) error {
	what := "a device"
	switch {
	case mode&fs.ModeSymlink != 0:
		what = "a symbolic link"
	case mode.IsDir():
		what = "a folder"
	case mode&fs.ModeNamedPipe != 0:
		what = "a named pipe"
	case mode&fs.ModeSocket != 0:
		what = "a socket"
	}
	return fmt.Errorf("open %s: it is %s: %w", path, what, ErrNotRegular)
}
