package bolt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/page"
)

// explainPath adds the operation and the path to an error of the system, and keeps its number
// for errors.Is.
func explainPath(op, path string, err error) error {
	if pe := (*fs.PathError)(nil); errors.As(err, &pe) && pe.Path == path {
		err = pe.Err
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s store %s: %w", op, path, objects.ErrNotFound)
	case errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%s store %s: %w: %w", op, path, err, objects.ErrReadOnly)
	}
	return fmt.Errorf("%s store %s: %w", op, path, err)
}

// explain classifies an error of reading or writing the files: an error of package objects stays
// as it is, an error of the system gets operation and path, and anything else is damage.
func (s *store) explain(op string, err error) error {
	if err == nil || isObjectsError(err) {
		return err
	}
	var number syscall.Errno
	switch {
	case errors.Is(err, page.ErrNoBucket):
		return fmt.Errorf("%s store %s: a bbolt file, but no tract store (%w): %w", op, s.path, err, objects.ErrFormat)
	case errors.As(err, &number) || errors.Is(err, os.ErrPermission) || errors.Is(err, os.ErrClosed):
		return explainPath(op, s.path, err)
	case errors.Is(err, io.EOF):
		err = errors.New("the file is cut off")
	}
	return &objects.CorruptError{Cause: fmt.Errorf("%s: %w", s.path, err)}
}

// isObjectsError reports whether an error is of a kind that package objects defines, or a cancellation.
func isObjectsError(err error) bool {
	for _, kind := range []error{
		objects.ErrNotFound, objects.ErrCorrupt, objects.ErrClosed, objects.ErrBusy, objects.ErrReadOnly,
		objects.ErrFormat, objects.ErrUnsafe, objects.ErrLimit, context.Canceled, context.DeadlineExceeded,
	} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return errors.As(err, new(*objects.ConflictError))
}

// flattened are the errors of the system that bbolt returns as text only.
var flattened = []syscall.Errno{
	syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG, syscall.EIO, syscall.EROFS, syscall.EACCES, syscall.EPERM, syscall.ENOMEM,
}

// restoreErrno restores the number of an error of the system from its text.
func restoreErrno(err error) error {
	if err == nil || errors.As(err, new(syscall.Errno)) {
		return err
	}
	for _, number := range flattened {
		if before, ok := strings.CutSuffix(err.Error(), number.Error()); ok {
			return fmt.Errorf("%s%w", before, number)
		}
	}
	return err
}

// protect calls bbolt. A panic, and a fault in its map of the file, become an error.
func protect(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("a page is damaged: %v", r)
		}
	}()
	return restoreErrno(f())
}
