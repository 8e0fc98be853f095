package bolt

import (
	"errors"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A goroutine that waits for the disk in a system call keeps its processor: the runtime
// takes that from it only after a while, which mostly is longer than the disk takes. With
// two of them that is half of the machine, while others would plan the next group. So a
// large crowd has the system wait: the sync is handed over (io_submit), and the
// goroutine is parked until an event tells that it is done.

// request is a struct iocb.
type request struct {
	number uint64
	_      uint64
	opcode uint16
	_      int16
	file   uint32
	_      [4]uint64 // where and how much: a sync is of it all
	flags  uint32
	event  uint32
}

// answer is a struct io_event.
type answer struct {
	number, request uint64
	result, second  int64
}

const (
	opFdatasync = 3 // IOCB_CMD_FDSYNC
	tellsEvent  = 1 // IOCB_FLAG_RESFD
)

// errNoAside says that the system does not sync aside: nothing has been begun.
var errNoAside = errors.New("no sync aside")

// aside is what one sync at a time needs. The system reads and writes it.
type aside struct {
	mu      sync.Mutex
	context uintptr
	event   int
	done    *os.File // the event
	request request
	list    [1]*request
	answer  answer
}

// asides is made when the first crowd comes, and kept: to make it takes longer than to
// use it. nil: the system has none.
var asides = sync.OnceValue(func() *aside {
	a := new(aside)
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil
	}
	a.event, a.done = fd, os.NewFile(uintptr(fd), "eventfd")
	if _, _, errno := unix.Syscall(unix.SYS_IO_SETUP, 1, uintptr(unsafe.Pointer(&a.context)), 0); errno != 0 {
		_ = a.done.Close()
		return nil
	}
	return a
})

// syncAside is syncData, but leaves the processor to others meanwhile if it can.
func syncAside(f *os.File) error {
	a := asides()
	if a == nil || !a.mu.TryLock() { // it is of another store
		return syncData(f)
	}
	defer a.mu.Unlock()
	err := a.sync(f)
	if errors.Is(err, errNoAside) {
		return syncData(f)
	}
	return os.NewSyscallError("fdatasync", err)
}

func (a *aside) sync(f *os.File) error {
	a.request = request{number: a.request.number + 1, opcode: opFdatasync, file: uint32(f.Fd()), flags: tellsEvent, event: uint32(a.event)}
	a.list[0] = &a.request
	if n, _, _ := unix.Syscall(unix.SYS_IO_SUBMIT, a.context, 1, uintptr(unsafe.Pointer(&a.list))); n != 1 {
		return errNoAside
	}
	_, _ = a.done.Read(make([]byte, 8)) // if it goes wrong, the next call waits for it
	for {
		n, _, errno := unix.Syscall6(unix.SYS_IO_GETEVENTS, a.context, 1, 1, uintptr(unsafe.Pointer(&a.answer)), 0, 0)
		switch {
		case errno == unix.EINTR || errno == 0 && (n == 0 || a.answer.number != a.request.number): // not of this one
		case errno != 0:
			return errno
		case a.answer.result < 0:
			return unix.Errno(-a.answer.result)
		default:
			return nil
		}
	}
}
