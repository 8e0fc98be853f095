package bolt

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/tract-vcs/tract/internal/filelock"
	"github.com/tract-vcs/tract/safefile"
)

// ticketLock is the lock beside a store, which works like a ticket lock with one ticket.
// It has two files: whoever wants the lock takes the ticket (tract.db-turn), waits with it
// for the gate (tract.db-lock, which also holds the anchor of the journal), and gives the
// ticket to the next. So nobody overtakes: a writer that waits for readers to leave keeps
// new readers out, and the other way round. The system serves those who wait for the ticket
// in their order; bbolt's own lock, which polls every 50 ms, always finds the file free.
type ticketLock struct {
	gate       *os.File
	ticket     *os.File // only to see whether somebody has it; nil: not opened yet
	ticketPath string
	policy     safefile.Policy
}

func ticketPath(database string) string { return database + "-turn" }
func gatePath(database string) string   { return database + "-lock" }

// lock waits for the ticket lock until ctx is done. At most one goroutine at a time asks
// for the exclusive lock, and one for the shared lock.
func (s *store) lock(ctx context.Context, exclusive bool) (*ticketLock, error) {
	ticket, err := s.takeTicket(ctx, exclusive)
	if err != nil {
		return nil, err
	}
	defer func() { _ = ticket.Close() }()
	flags := os.O_RDONLY
	if exclusive {
		flags = os.O_RDWR // for the anchor
	}
	gate, err := openLock(s.policy, gatePath(s.path), flags)
	if errors.Is(err, fs.ErrPermission) {
		gate, err = openLock(s.policy, gatePath(s.path), os.O_RDONLY)
	}
	if err != nil {
		return nil, err
	}
	if err := pollLock(ctx, gate, exclusive); err != nil {
		_ = gate.Close()
		return nil, err
	}
	return &ticketLock{gate: gate, ticketPath: ticketPath(s.path), policy: s.policy}, nil
}

func (s *store) lockExclusive(ctx context.Context) (*ticketLock, error) { return s.lock(ctx, true) }

// lockShared takes the ticket lock for reading. If that needs a permission that is missing, it
// returns nil, and the lock of the file itself must do.
func (s *store) lockShared(ctx context.Context) (*ticketLock, error) {
	held, err := s.lock(ctx, false)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return nil, nil //nolint:nilnil // see above
	}
	return held, err
}

// ticketRequest is a wait for the ticket. The system cannot end such a wait, so one that
// is abandoned goes on until the next call takes it over: a store never has more than one
// of a kind, however many calls give up.
type ticketRequest struct {
	done      chan struct{} // closed when there is a ticket or an error
	ticket    *os.File
	err       error
	abandoned bool // guarded by the mutex of the store
}

func (s *store) takeTicket(ctx context.Context, exclusive bool) (*os.File, error) {
	r := s.requestTicket(exclusive)
	select {
	case <-r.done:
		return r.ticket, r.err
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-r.done: // at the same moment
		_ = r.ticket.Close()
	default:
		r.abandoned = true
	}
	return nil, ctx.Err()
}

// requestTicket returns the wait of that kind that is under way, or a new one.
func (s *store) requestTicket(exclusive bool) *ticketRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.tickets[exclusive]; r != nil {
		r.abandoned = false
		return r
	}
	r := &ticketRequest{done: make(chan struct{})}
	s.tickets[exclusive] = r
	go func() {
		ticket, err := openLock(s.policy, ticketPath(s.path), os.O_RDONLY)
		if err == nil {
			_, err = filelock.Lock(ticket, true, true)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.tickets, exclusive)
		if r.abandoned || err != nil {
			_ = ticket.Close()
		}
		r.ticket, r.err = ticket, err
		close(r.done)
	}()
	return r
}

// contended reports whether somebody waits for the lock.
func (l *ticketLock) contended() bool {
	if l.ticket == nil {
		ticket, err := openLock(l.policy, l.ticketPath, os.O_RDONLY)
		if err != nil {
			return true
		}
		l.ticket = ticket
	}
	free, err := filelock.Lock(l.ticket, true, false)
	if free && err == nil {
		err = filelock.Unlock(l.ticket)
	}
	return !free || err != nil
}

func (l *ticketLock) release() {
	if l == nil {
		return
	}
	_ = l.gate.Close()
	if l.ticket != nil {
		_ = l.ticket.Close()
	}
}

// openLock opens a lock file, and creates it if it does not exist.
func openLock(policy safefile.Policy, path string, flags int) (*os.File, error) {
	for {
		f, err := policy.Open(path, flags, 0)
		if !errors.Is(err, fs.ErrNotExist) {
			return f, err
		}
		f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) {
			continue // another process was faster
		}
		if err != nil {
			return nil, err
		}
		return f, f.Chmod(0o600) // the umask may have cleared even the bits of the owner
	}
}

// A lock that is not free is tried again after a time between these.
const (
	minPoll = 100 * time.Microsecond
	maxPoll = 2 * time.Millisecond
)

// pollLock takes the lock of f. It rarely has to wait for another poller: only the owner
// of the ticket polls the gate, and only a program that does not know the ticket lock holds
// the lock of the database file.
func pollLock(ctx context.Context, f *os.File, exclusive bool) error {
	for wait := minPoll; ; wait = min(2*wait, maxPoll) {
		ok, err := filelock.Lock(f, exclusive, false)
		if ok || err != nil {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
