package bolt

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/tract-vcs/tract/objects"
)

// roleHold keeps a store locked for writing until standard input ends: PATH.
func roleHold(args []string) error {
	ctx := context.Background()
	s, err := objects.Open(ctx, args[0], objects.Options{})
	if err != nil {
		return err
	}
	return s.Update(ctx, "refs/heads/held", func(objects.ID) (objects.Batch, error) {
		fmt.Println("held")
		_, err := io.ReadAll(os.Stdin)
		return objects.Batch{}, err
	})
}

// busy starts a process that says a line when it has begun to do as its role
// says, and goes on until it is told to end, or killed.
func busy(t *testing.T, role string, args ...string) (end, kill func()) {
	t.Helper()
	cmd := child(t, role, args...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("the other process says %q, %v", line, err)
	}
	end = func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the other process: %v", err)
		}
	}
	return end, func() { _, _ = cmd.Process.Kill(), cmd.Wait() }
}

func TestWaitForTheLockEnds(t *testing.T) {
	s, path := fresh(t)
	apply(t, s, "refs/heads/main", "x")
	short := mustOpen(t, path, objects.Options{Wait: 80 * time.Millisecond})
	idle(t, s)
	release, _ := busy(t, "hold", path)
	for name, call := range map[string]func(ctx context.Context, s objects.Store) error{
		"apply": func(ctx context.Context, s objects.Store) error { return s.Apply(ctx, batch("refs/heads/b", "y")) },
		"read": func(ctx context.Context, s objects.Store) error {
			_, err := s.GetRefs(ctx, "refs/heads/main")
			return err
		},
		"open": func(ctx context.Context, s objects.Store) error {
			_, err := objects.Open(ctx, path, objects.Options{Wait: inner(t, s).wait})
			return err
		},
	} {
		err := call(t.Context(), short)
		if !errors.Is(err, objects.ErrBusy) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "80ms") {
			t.Errorf("%s of a store that is held: %v", name, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if err := call(ctx, s); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, objects.ErrBusy) {
			t.Errorf("%s with a context that ends: %v", name, err)
		}
		cancel()
	}
	before := runtime.NumGoroutine()
	for range 40 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		_, readErr := s.GetRefs(ctx, "refs/heads/main")
		cancel()
		ctx, cancel = context.WithTimeout(t.Context(), time.Millisecond)
		writeErr := s.Apply(ctx, batch("refs/heads/b", "y"))
		cancel()
		if readErr == nil || writeErr == nil {
			t.Fatal("the store is held, and was not")
		}
	}
	if after := runtime.NumGoroutine(); after > before+8 {
		t.Errorf("those who gave up have left %d goroutines", after-before)
	}
	release()
	apply(t, s, "refs/heads/b", "y") // nobody who gave up has kept the lock
	apply(t, short, "refs/heads/c", "y")
}

// TestTicketIsKeptUntilTheGateOpens has a writer wait for a reader to leave: meanwhile it
// keeps the ticket, so that no other reader overtakes it.
func TestTicketIsKeptUntilTheGateOpens(t *testing.T) {
	s, path := fresh(t)
	first, err := idle(t, s).lockAndOpen(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	writer := inner(t, mustOpen(t, path, objects.Options{}))
	late := inner(t, mustOpen(t, path, objects.Options{}))
	idle(t, s)
	granted := make(chan error, 1)
	go func() {
		h, err := writer.lockAndOpen(t.Context(), true)
		if err == nil {
			h.closeFiles()
			h.lock.release()
		}
		granted <- err
	}()
	patient, cancel := context.WithTimeout(t.Context(), 20*time.Second) // ends only if the ticket was given away too soon
	defer cancel()
	for !first.lock.contended() {
		select {
		case err := <-granted:
			t.Fatalf("a writer does not wait for a reader: %v", err)
		case <-patient.Done():
			t.Fatal("a writer waits at the gate, and has no ticket")
		case <-time.After(minPoll):
		}
	}
	for range 20 { // while it waits, always
		if !first.lock.contended() {
			t.Fatal("a writer waits at the gate, and has no ticket")
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		h, err := late.lockAndOpen(ctx, false)
		cancel()
		if err == nil {
			h.closeFiles()
			h.lock.release()
			t.Fatal("a reader overtakes a writer that waits")
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
	}
	first.closeFiles()
	first.lock.release()
	if err := <-granted; err != nil {
		t.Error(err)
	}
}

func TestKilledHolderLeavesNoLock(t *testing.T) {
	s, path := fresh(t)
	_, kill := busy(t, "hold", path)
	waiting := make(chan error, 2)
	go func() { waiting <- s.Apply(t.Context(), batch("refs/heads/main", "x")) }()
	go func() { _, err := s.GetRefs(t.Context(), "refs/heads/main"); waiting <- err }()
	kill()
	for range 2 {
		if err := <-waiting; err != nil {
			t.Errorf("who waited for a process that was killed: %v", err)
		}
	}
}

// roleFlood never stops to read or to write, with many goroutines, until standard
// input ends: PATH read|write.
func roleFlood(args []string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s, err := objects.Open(ctx, args[0], objects.Options{})
	if err != nil {
		return err
	}
	errs := make([]error, 64)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			ref := fmt.Sprint("refs/heads/flood", i)
			for ctx.Err() == nil && errs[i] == nil {
				if args[1] == "write" {
					errs[i] = increment(ctx, s, ref, "flood")
				} else {
					_, errs[i] = s.GetRefs(ctx, ref)
				}
			}
			if ctx.Err() != nil {
				errs[i] = nil
			}
		})
	}
	fmt.Println("begun")
	_, err = io.ReadAll(os.Stdin)
	cancel()
	wg.Wait()
	return errors.Join(append(errs, err, s.Close())...)
}

// TestEveryWaiterGetsTheStore reads and writes beside processes that never pause. A writer that has
// taken the ticket gets the store after at most two transactions of others: the one that is being
// written, and one that was built meanwhile.
func TestEveryWaiterGetsTheStore(t *testing.T) {
	for _, what := range []string{"read", "write"} {
		s, path := fresh(t)
		end, _ := busy(t, "flood", path, what)
		for i := range 25 {
			if n := transactionsBeforeGrant(t, idle(t, s)); n > 2 {
				t.Errorf("try %d beside a process that never stops to %s: %d transactions while a writer waited with the ticket", i, what, n)
			}
			if err := increment(t.Context(), s, "refs/heads/main", "parent"); err != nil {
				t.Errorf("write %d beside a process that never stops to %s: %v", i, what, err)
			}
			idle(t, s)
			if ref, err := objects.ReadRef(t.Context(), s, "refs/heads/main"); err != nil || ref.Version != uint64(i+1) {
				t.Errorf("read %d beside a process that never stops to %s: %+v, %v", i, what, ref, err)
			}
		}
		end()
		wantSound(t, path)
	}
}

// transactionsBeforeGrant takes the exclusive lock as a writer does, and returns how many
// transactions of other processes there were between the ticket and the gate.
func transactionsBeforeGrant(t *testing.T, s *store) uint64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), defaultWait)
	defer cancel()
	ticket, err := s.takeTicket(ctx, true)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ticket.Close() }()
	before := transactions(t, s.path)
	gate, err := openLock(s.policy, gatePath(s.path), os.O_RDWR)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = gate.Close() }()
	if err := pollLock(ctx, gate, true); err != nil {
		t.Fatal(err)
	}
	return transactions(t, s.path) - before
}

// TestProgramWithoutTheTicketLock has the file open with bbolt alone.
func TestProgramWithoutTheTicketLock(t *testing.T) {
	s, path := fresh(t)
	apply(t, s, "refs/heads/main", "x")
	short := mustOpen(t, path, objects.Options{Wait: 80 * time.Millisecond})
	idle(t, s)
	stranger, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if err := short.Apply(t.Context(), batch("refs/heads/b", "y")); !errors.Is(err, objects.ErrBusy) {
		t.Errorf("apply: %v", err)
	}
	if _, err := short.GetRefs(t.Context(), "refs/heads/main"); !errors.Is(err, objects.ErrBusy) {
		t.Errorf("read: %v", err)
	}
	late := make(chan error, 1)
	go func() { late <- s.Apply(t.Context(), batch("refs/heads/b", "y")) }()
	for i := range 20 { // what the waiting writer has seen of the file is old each time
		err := stranger.Update(func(tx *bbolt.Tx) error {
			o := object(fmt.Sprint("of a stranger ", i))
			t := objects.Tombstone{ID: o.ID, Kind: o.Kind}
			return tx.Bucket([]byte(buckets[objectsBucket])).Put(o.ID[:], encodeTombstone(t))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := stranger.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-late; err != nil {
		t.Errorf("apply, when the file was free: %v", err)
	}
	for i := range 20 {
		if _, err := objects.Read(t.Context(), s, object(fmt.Sprint("of a stranger ", i)).ID); !errors.Is(err, objects.ErrPurged) {
			t.Errorf("what the stranger has written: %v", err)
		}
	}
	idle(t, s)
	wantSound(t, path)
}

func TestReadingNeedsNoTicketLock(t *testing.T) {
	s, path := fresh(t)
	apply(t, s, "refs/heads/main", "x")
	idle(t, s)
	for _, name := range []string{ticketPath(path), gatePath(path)} {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	if ref, err := objects.ReadRef(t.Context(), s, "refs/heads/main"); err != nil || ref.Target.IsZero() {
		t.Errorf("%+v, %v", ref, err)
	}
	if left := names(t, filepath.Dir(path)); len(left) != 4 {
		t.Errorf("the lock files were not made again: %v", left)
	}
}
