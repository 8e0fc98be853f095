package bolt

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/tract-vcs/tract/internal/filelock"
	"github.com/tract-vcs/tract/safefile"
)

// sideLock is the lock beside a store. Of its two files the gate holds nothing but
// an anchor, and the turn nothing at all: whoever
// wants in takes the turn, then, keeping it, waits for the gate, and lets the
// next one have the turn. So nobody overtakes: a writer that waits for readers
// to leave keeps new readers out, and the other way round. bbolt's own lock,
// which looks every 50 ms, finds nobody in its way.
type sideLock struct {
	gate     *os.File
	turn     *os.File // only to see whether somebody has it; nil: not opened yet
	turnPath string
	policy   safefile.Policy
}

func turnPath(db string) string { return db + "-turn" }
func gatePath(db string) string { return db + "-lock" }

// lock waits for the lock beside the store until ctx is done. One goroutine at a
// time asks for the exclusive one, and one for the other.
func (s *store) lock(ctx context.Context, exclusive bool) (*sideLock, error) {
	turn, err := s.takeTurn(ctx, exclusive)
	if err != nil {
		return nil, err
	}
	defer func() { _ = turn.Close() }()
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
	return &sideLock{gate: gate, turnPath: turnPath(s.path), policy: s.policy}, nil
}

// claim is a wait for the turn. The system has no way to end such a wait, so one
// that is given up goes on until the next who asks takes it over: a store never
// has more than one of a kind, however many give up.
type claim struct {
	done    chan struct{} // closed when there is a turn or an error
	turn    *os.File
	err     error
	givenUp bool // the mutex of the store guards it
}

func (s *store) takeTurn(ctx context.Context, exclusive bool) (*os.File, error) {
	c := s.claim(exclusive)
	select {
	case <-c.done:
		return c.turn, c.err
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-c.done: // at the same moment
		_ = c.turn.Close()
	default:
		c.givenUp = true
	}
	return nil, ctx.Err()
}

// claim is the wait of that kind that goes on, or a new one.
func (s *store) claim(exclusive bool) *claim {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.claims[exclusive]; c != nil {
		c.givenUp = false
		return c
	}
	c := &claim{done: make(chan struct{})}
	s.claims[exclusive] = c
	go func() {
		turn, err := openLock(s.policy, turnPath(s.path), os.O_RDONLY)
		if err == nil {
			_, err = filelock.Lock(turn, true, true)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.claims, exclusive)
		if c.givenUp || err != nil {
			_ = turn.Close()
		}
		c.turn, c.err = turn, err
		close(c.done)
	}()
	return c
}

// wanted tells whether somebody waits for the lock.
func (l *sideLock) wanted() bool {
	if l.turn == nil {
		turn, err := openLock(l.policy, l.turnPath, os.O_RDONLY)
		if err != nil {
			return true
		}
		l.turn = turn
	}
	free, err := filelock.Lock(l.turn, true, false)
	if free && err == nil {
		err = filelock.Unlock(l.turn)
	}
	return !free || err != nil
}

func (l *sideLock) release() {
	if l == nil {
		return
	}
	_ = l.gate.Close()
	if l.turn != nil {
		_ = l.turn.Close()
	}
}

// openLock opens a lock file, and makes it when it is not there.
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
		return f, f.Chmod(0o600) // the umask may have taken even the owner's bits
	}
}

// pollLock takes the lock of f. Hardly anybody else does so at the same time: of
// the gate only who has the turn, of the store file itself only who meets a
// program that knows nothing of the lock beside it.
func pollLock(ctx context.Context, f *os.File, exclusive bool) error {
	for wait := minPoll; ; wait = min(2*wait, maxPoll) {
		ok, err := filelock.Lock(f, exclusive, false)
		if ok || err != nil {
			return err
		}
		if err := rest(ctx, wait); err != nil {
			return err
		}
	}
}

// A lock that is not free is looked at again after a time between these.
const (
	minPoll = 100 * time.Microsecond
	maxPoll = 2 * time.Millisecond
)

func rest(ctx context.Context, wait time.Duration) error {
	select {
	case <-time.After(wait):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
