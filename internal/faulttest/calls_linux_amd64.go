package faulttest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// call is a system call that changes files, as it is made.
type call struct {
	kind     Kind
	fd       int
	path, to string // absolute
	at       int64  // of a write; -1: where the file is
	buffer   uintptr
	count    int
	size     int64
	before   int
	failed   bool
	attempt  int // see Step
}

// atCWD is a folder that is none: paths are below where the command is.
const atCWD = -100

// decode gives the call that a thread is about to make, if it changes a file of the
// folder or says something.
func (t *tracer) decode(id int, regs *syscall.PtraceRegs) (*call, error) {
	a := [...]uint64{regs.Rdi, regs.Rsi, regs.Rdx, regs.R10}
	fd := int(int32(a[0]))
	switch regs.Orig_rax {
	case syscall.SYS_WRITE, syscall.SYS_PWRITE64:
		c := &call{kind: Write, fd: fd, buffer: uintptr(a[1]), count: int(a[2]), at: -1}
		if regs.Orig_rax == syscall.SYS_PWRITE64 {
			c.at = int64(a[3])
		} else if fd == 1 || fd == 2 {
			c.kind = Say
			return c, nil
		}
		return t.below(id, c)
	case syscall.SYS_FTRUNCATE:
		return t.below(id, &call{kind: Truncate, fd: fd, size: int64(a[1])})
	case syscall.SYS_FSYNC, syscall.SYS_FDATASYNC:
		return t.below(id, &call{kind: Sync, fd: fd, before: len(t.trace.Steps)})
	case syscall.SYS_OPENAT:
		return t.opening(id, a[0], a[1], int(a[2]))
	case syscall.SYS_MKDIRAT:
		return t.naming(id, MakeDir, a[0], a[1], 0, 0)
	case syscall.SYS_UNLINKAT:
		return t.naming(id, Remove, a[0], a[1], 0, 0)
	case syscall.SYS_RENAMEAT, sysRenameat2:
		return t.naming(id, Rename, a[0], a[1], a[2], a[3])
	case syscall.SYS_LINKAT:
		return t.naming(id, Link, a[0], a[1], a[2], a[3])
	case syscall.SYS_WRITEV, syscall.SYS_PWRITEV, syscall.SYS_FALLOCATE, syscall.SYS_SENDFILE, sysCopyFileRange:
		if regs.Orig_rax == sysCopyFileRange {
			fd = int(int32(a[2]))
		}
		c, err := t.below(id, &call{fd: fd})
		if c != nil {
			err = fmt.Errorf("system call %d is not known here, and changes %s", regs.Orig_rax, c.path)
		}
		return nil, err
	}
	return nil, nil
}

const (
	sysRenameat2     = 316
	sysCopyFileRange = 326
)

// below gives a call if its file is in the folder.
func (t *tracer) below(id int, c *call) (*call, error) {
	path, err := os.Readlink(fdPath(id, c.fd))
	if err != nil {
		return nil, nil //nolint:nilerr // a number that is no file: the call fails
	}
	if c.path = path; t.name(path) == "" {
		return nil, nil
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() && c.kind == Sync {
		c.kind = SyncDir
	}
	return c, nil
}

func fdPath(id, fd int) string { return fmt.Sprintf("/proc/%d/fd/%d", id, fd) }

// opening gives an openat that makes a file, or opens one for writing.
func (t *tracer) opening(id int, dir, name uint64, flags int) (*call, error) {
	if flags&opensForChange == 0 {
		return nil, nil
	}
	c, err := t.naming(id, Open, dir, name, 0, 0)
	if err != nil || c == nil {
		return nil, err
	}
	info, err := os.Lstat(c.path)
	switch {
	case err != nil && flags&syscall.O_CREAT == 0:
		return nil, nil // it is not there: the call fails
	case err != nil:
		c.kind = Create
	case flags&syscall.O_TRUNC != 0 && info.Size() > 0:
		c.kind = Truncate
	}
	return c, nil
}

// naming gives a call that is about names, if they are in the folder.
func (t *tracer) naming(id int, kind Kind, dir, name, toDir, to uint64) (*call, error) {
	c := &call{kind: kind, fd: -1}
	var err error
	if c.path, err = t.pathAt(id, dir, name); err == nil && to != 0 {
		c.to, err = t.pathAt(id, toDir, to)
	}
	if err != nil || t.name(c.path) == "" && t.name(c.to) == "" {
		return nil, err
	}
	return c, nil
}

// pathAt reads a path from the memory of the command.
func (t *tracer) pathAt(id int, dir, at uint64) (string, error) {
	b, err := t.memory(id, uintptr(at), 4096, false)
	if err != nil {
		return "", err
	}
	head, _, ended := bytes.Cut(b, []byte{0})
	if !ended {
		return "", fmt.Errorf("a path of more than %d bytes", len(b))
	}
	path := string(head)
	if filepath.IsAbs(path) {
		return filepath.Clean(path), nil
	}
	from := fmt.Sprintf("/proc/%d/cwd", id)
	if fd := int(int32(dir)); fd != atCWD {
		from = fdPath(id, fd)
	}
	base, err := os.Readlink(from)
	return filepath.Join(base, path), err
}

// memory reads from the memory of the command; fewer bytes at its end, unless all
// are wanted.
func (t *tracer) memory(id int, at uintptr, n int, all bool) ([]byte, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/mem", id))
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	b := make([]byte, n)
	got, err := f.ReadAt(b, int64(at))
	if got > 0 && !all {
		err = nil
	}
	return b[:got], err
}

// note adds what a call has done, which gave a result.
func (t *tracer) note(id int, c *call, result int64) error {
	failed := c.failed || result < 0
	s := Step{Kind: c.kind, Failed: failed, Before: c.before, Size: c.size, Name: t.name(c.path), File: -1, Attempt: c.attempt}
	if failed && c.kind != Sync && c.kind != SyncDir {
		return nil
	}
	var err error
	switch c.kind {
	case Say:
		s.Name = strconv.Itoa(c.fd)
		s.Data, err = t.memory(id, c.buffer, int(result), true)
	case Write:
		if s.Data, err = t.memory(id, c.buffer, int(result), true); err == nil {
			s.At, err = t.wroteAt(id, c, result)
		}
	case Rename, Link:
		s.From, s.Name = s.Name, t.name(c.to)
		if info, e := os.Lstat(c.to); e == nil && info.IsDir() {
			break
		}
		s.File, err = t.fileAt(c.to)
	case Create:
		s.File, err = t.fresh(c.path)
	case Open:
		s.File, err = t.fileAt(c.path)
	case Truncate:
		if c.fd < 0 {
			s.File, err = t.fileAt(c.path)
		}
	default:
	}
	if err == nil && c.fd >= 0 && (c.kind == Write || c.kind == Truncate || c.kind == Sync) {
		s.File, err = t.fileAt(fdPath(id, c.fd))
	}
	t.trace.Steps = append(t.trace.Steps, s)
	return err
}

// wroteAt finds where a write went that says nothing of it.
func (t *tracer) wroteAt(id int, c *call, n int64) (int64, error) {
	if c.at >= 0 {
		return c.at, nil
	}
	info, err := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%d", id, c.fd))
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(string(info), "\n")
	pos, err := strconv.ParseInt(strings.TrimSpace(strings.TrimPrefix(first, "pos:")), 10, 64)
	return pos - n, err
}
