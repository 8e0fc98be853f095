package faulttest

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"unsafe"
)

// Run runs commands, one after the other, and notes what they do to the files below a
// folder, with one fault or, when that is nil, none. The exit code is that of the last.
// What they say is in the trace, whatever their Stdout and Stderr are.
func Run(root string, fault *Fault, commands ...*exec.Cmd) (*Trace, error) {
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		return nil, fmt.Errorf("trace a command: %w", err)
	}
	t := &tracer{root: root, fault: fault, trace: &Trace{Names: map[string]int{}}, files: map[inode]int{}}
	if err := t.takeIn(); err != nil {
		return nil, fmt.Errorf("trace a command: %w", err)
	}
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // whom ptrace lets do this is a thread, which ends with it
		stayOnProcessor()
		var err error
		for _, cmd := range commands {
			t.threads, t.filtered = map[int]*thread{}, false
			t.trace.Starts = append(t.trace.Starts, len(t.trace.Steps))
			err = cmp.Or(err, t.run(cmd))
		}
		result <- err
	}()
	if err := <-result; err != nil {
		return nil, fmt.Errorf("trace a command: %w", err)
	}
	return t.trace, nil
}

// Of ptrace and wait4, what package syscall has no name for.
const (
	exitKill    = 0x100000   // PTRACE_O_EXITKILL
	ofThread    = 0x20000000 // __WNOTHREAD: only children of this thread
	allChildren = 0x40000000 // __WALL
	traceFilter = 0x80       // PTRACE_O_TRACESECCOMP
	filterEvent = 7          // PTRACE_EVENT_SECCOMP
	callStop    = syscall.SIGTRAP | 0x80
)

// stayOnProcessor keeps the calling thread, and the commands that it starts, on the processor where
// it is. Follower and followed wait for each other at each call, and waking a
// thread of another processor costs more than the rest of a stop: a run takes half as long.
func stayOnProcessor() {
	const getcpu, setAffinity = 309, 203
	var n uint32
	var set [128]uint8 // of processors, as bits
	_, _, errno := syscall.RawSyscall(getcpu, uintptr(unsafe.Pointer(&n)), 0, 0)
	if at := int(n / 8); errno == 0 && at < len(set) {
		set[at] = 1 << (n % 8)
		_, _, _ = syscall.RawSyscall(setAffinity, 0, uintptr(len(set)), uintptr(unsafe.Pointer(&set))) // without it Run is slower
	}
}

type inode struct{ dev, ino uint64 }

// tracer follows one command.
type tracer struct {
	root     string
	fault    *Fault
	trace    *Trace
	pid      int
	threads  map[int]*thread
	filtered bool // the command has called FilterCalls
	files    map[inode]int
	next     int // number of the next attempt
}

// thread is one thread of the command.
type thread struct {
	inside    bool  // of a system call
	call      *call // which it is, if it is of interest
	filtering bool  // it is the call of FilterCalls
}

// takeIn notes what is in the folder before.
func (t *tracer) takeIn() error {
	return filepath.WalkDir(t.root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := t.name(path)
		if d.IsDir() {
			t.trace.Dirs = append(t.trace.Dirs, name)
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		n, err := t.fileAt(path)
		t.trace.Names[name], t.trace.Files[n] = n, append([]byte{}, b...)
		return err
	})
}

// name is a path below the folder; empty when it is not below it.
func (t *tracer) name(path string) string {
	if path == t.root {
		return "."
	}
	name, below := strings.CutPrefix(path, t.root+"/")
	if !below {
		return ""
	}
	return name
}

// fileAt gives the number of the file that has a name now.
func (t *tracer) fileAt(path string) (int, error) {
	at, err := identify(path)
	if n, ok := t.files[at]; ok || err != nil {
		return n, err
	}
	return t.fresh(path)
}

// fresh gives a new number to the file that has a name now, though it may be where a
// file was that is gone.
func (t *tracer) fresh(path string) (int, error) {
	at, err := identify(path)
	if err != nil {
		return 0, err
	}
	n := len(t.trace.Files)
	t.files[at], t.trace.Files = n, append(t.trace.Files, nil)
	return n, nil
}

func identify(path string) (inode, error) {
	var st syscall.Stat_t
	err := syscall.Stat(path, &st)
	return inode{st.Dev, st.Ino}, err
}

// run starts the command and follows it to its end.
func (t *tracer) run(cmd *exec.Cmd) error {
	// The command is a process group, so that wait takes its threads and no other child that
	// this thread has started for another test.
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true, Setpgid: true}
	cmd.Env = append(cmd.Environ(), filterEnv+"=1")
	if err := cmd.Start(); err != nil {
		if errors.Is(err, syscall.EPERM) {
			err = errors.Join(err, errors.ErrUnsupported)
		}
		return err
	}
	t.pid = cmd.Process.Pid
	defer func() { _ = cmd.Process.Release() }() // it is waited for below
	var status syscall.WaitStatus
	if _, err := wait(t.pid, &status); err != nil {
		return err
	}
	err := syscall.PtraceSetOptions(t.pid, syscall.PTRACE_O_TRACESYSGOOD|syscall.PTRACE_O_TRACECLONE|exitKill|traceFilter)
	if err == nil {
		err = syscall.PtraceSyscall(t.pid, 0)
	}
	if err != nil {
		_ = cmd.Process.Kill()
		return err
	}
	for {
		id, err := wait(-t.pid, &status)
		if err != nil {
			return err
		}
		switch ended := status.Exited() || status.Signaled(); {
		case ended && id == t.pid:
			t.trace.Code = status.ExitStatus()
			return nil
		case ended:
			delete(t.threads, id)
			continue
		}
		if err := t.stopped(id, status); err != nil && !errors.Is(err, syscall.ESRCH) { // it was killed meanwhile
			_ = cmd.Process.Kill()
			return err
		}
	}
}

func wait(id int, status *syscall.WaitStatus) (int, error) {
	for {
		id, err := syscall.Wait4(id, status, ofThread|allChildren, nil)
		if !errors.Is(err, syscall.EINTR) {
			return id, err
		}
	}
}

// stopped looks why a thread has stopped and lets it go on.
func (t *tracer) stopped(id int, status syscall.WaitStatus) error {
	at := t.threads[id]
	fresh := at == nil
	if fresh {
		at = &thread{}
		t.threads[id] = at
	}
	pass := 0
	switch signal := status.StopSignal(); {
	case signal == callStop:
		at.inside = !at.inside
		switch {
		case at.inside && t.filtered: // the stop of the filter follows
		case at.inside:
			if err := t.enter(id, at); err != nil {
				return err
			}
		case at.call != nil || at.filtering:
			if err := t.leave(id, at); err != nil {
				return err
			}
		}
	case signal == syscall.SIGTRAP && status.TrapCause() == filterEvent:
		at.inside = true
		if err := t.enter(id, at); err != nil {
			return err
		}
	case signal == syscall.SIGTRAP && status.TrapCause() > 0:
	case signal == syscall.SIGSTOP && fresh:
	default:
		pass = int(signal)
	}
	if t.filtered && at.call == nil {
		at.inside = false
		return syscall.PtraceCont(id, pass)
	}
	return syscall.PtraceSyscall(id, pass)
}

// enter looks at the system call that a thread is about to make, and lets it fail
// when that is to be.
func (t *tracer) enter(id int, at *thread) error {
	var regs syscall.PtraceRegs
	if err := syscall.PtraceGetRegs(id, &regs); err != nil {
		return err
	}
	at.filtering = regs.Orig_rax == sysSeccomp
	c, err := t.decode(id, &regs)
	at.call = c
	if err != nil || c == nil || c.kind == Say {
		return err
	}
	n := t.next
	c.attempt = n
	t.next++
	if !t.fault.strikes(n) {
		return nil
	}
	t.trace.Struck = true
	switch {
	case t.fault.Errno == 0:
		return syscall.Kill(t.pid, syscall.SIGKILL)
	case t.fault.Short && n == t.fault.At && c.kind == Write && c.count > sector:
		regs.Rdx = uint64((c.count/2 + sector - 1) / sector * sector) // what is left of it comes as another call
		return syscall.PtraceSetRegs(id, &regs)
	}
	c.failed = true
	regs.Orig_rax = ^uint64(0) // no call at all
	return syscall.PtraceSetRegs(id, &regs)
}

// leave notes what a system call has done.
func (t *tracer) leave(id int, at *thread) error {
	c := at.call
	at.call = nil
	var regs syscall.PtraceRegs
	if err := syscall.PtraceGetRegs(id, &regs); err != nil {
		return err
	}
	if at.filtering {
		t.filtered = regs.Rax == 0
		return nil
	}
	if c.failed {
		regs.Rax = uint64(-int64(t.fault.Errno))
		if err := syscall.PtraceSetRegs(id, &regs); err != nil {
			return err
		}
	}
	return t.note(id, c, int64(regs.Rax))
}
