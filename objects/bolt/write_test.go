package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/checksum"
	"github.com/tract-vcs/tract/objects/bolt/internal/journal"
	"github.com/tract-vcs/tract/objects/objectstest"
)

// transactions is how many groups were written, seen without a lock: the anchor
// has their number.
func transactions(t *testing.T, path string) uint64 {
	t.Helper()
	return anchorNumber(t, path, 2)
}

// anchorNumber returns a number of the anchor: 0 its generation, 1 the end of the last frame, 2 the
// sequence number of that. Without an anchor it is 0.
func anchorNumber(t testing.TB, path string, i int) uint64 {
	t.Helper()
	b := mustRead(t, gatePath(path))
	if len(bytes.Trim(b, "\x00")) == 0 {
		return 0
	}
	b = b[:min(len(b), journal.SaltSize+4*8)]
	if len(b) < journal.SaltSize+4*8 || binary.BigEndian.Uint64(b[len(b)-8:]) != checksum.Sum(b[:len(b)-8]) {
		t.Fatalf("the anchor is damaged: %x", b)
	}
	return binary.BigEndian.Uint64(b[journal.SaltSize+8*i:])
}

// gather makes n requests wait for the disk, and then serves them. It returns how many
// transactions they took. Those that are refused wait as well.
func gather(t *testing.T, s objects.Store, path string, n int, do func(i int)) uint64 {
	t.Helper()
	in := inner(t, s)
	var wg sync.WaitGroup
	before := transactions(t, path)
	err := s.Update(t.Context(), "refs/heads/held", func(objects.ID) (objects.Batch, error) {
		in.mu.Lock()
		w := in.writer
		in.mu.Unlock()
		w.commit.Lock()
		defer w.commit.Unlock()
		done := make(chan struct{}, n)
		for i := range n {
			wg.Go(func() { do(i); done <- struct{}{} })
		}
		for planned := 0; planned < n; time.Sleep(time.Millisecond) {
			w.refs.mu.Lock()
			in.mu.Lock()
			if len(w.refs.locks) == 1 { // that of this one
				planned = w.users - 1 + len(done)
			}
			in.mu.Unlock()
			w.refs.mu.Unlock()
		}
		return objects.Batch{}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	return transactions(t, path) - before
}

func TestWritersShareTransactions(t *testing.T) {
	s, path := fresh(t)
	const n = 500
	took := gather(t, s, path, n, func(i int) {
		if err := appendOne(t, s, "main", i); err != nil {
			t.Errorf("writer %d: %v", i, err)
		}
	})
	if took > 5+n/50 { // under the race detector a group may end early, by time
		t.Errorf("%d writers took %d transactions", n, took)
	}
	entries, err := s.Log(t.Context(), "refs/heads/main", 0, 0)
	if err != nil || len(entries) != n {
		t.Errorf("%d log entries, %v; want %d", len(entries), err, n)
	}
	t.Logf("%d writers took %d transactions", n, took)
}

func TestFailedBatchDoesNotAffectItsGroup(t *testing.T) {
	s, path := fresh(t)
	apply(t, s, "refs/heads/taken", "taken")
	bad := errors.New("refused")
	errs := make([]error, 60)
	gather(t, s, path, len(errs), func(i int) {
		switch i % 3 {
		case 0:
			errs[i] = s.Apply(t.Context(), batch(fmt.Sprint("refs/heads/", i), fmt.Sprint(i)))
		case 1: // a conflict, with an object that must not seem put
			errs[i] = s.Apply(t.Context(), batch("refs/heads/taken", fmt.Sprint(i)))
		default:
			errs[i] = s.Update(t.Context(), "refs/heads/taken", func(objects.ID) (objects.Batch, error) { return objects.Batch{}, bad })
		}
	})
	for i, err := range errs {
		_, conflict := err.(*objects.ConflictError) // as it is: not as the cause of another
		missing, e := s.Missing(t.Context(), []objects.ID{object(fmt.Sprint(i)).ID})
		switch {
		case e != nil:
			t.Fatal(e)
		case i%3 == 0 && (err != nil || len(missing) != 0):
			t.Errorf("a good request among bad ones: %v", err)
		case i%3 == 1 && (!conflict || len(missing) != 1):
			t.Errorf("a conflict among good requests: %v, its object missing: %t", err, len(missing) == 1)
		case i%3 == 2 && err != bad:
			t.Errorf("an update that gives up: %v", err)
		}
	}
}

func TestFunctionThatPanicsOrEndsItsGoroutine(t *testing.T) {
	s, _ := fresh(t)
	func() {
		defer func() {
			if r := recover(); r != "mine" {
				t.Errorf("recovered %v", r)
			}
		}()
		_ = s.Update(t.Context(), "refs/heads/main", func(objects.ID) (objects.Batch, error) { panic("mine") })
	}()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Update(t.Context(), "refs/heads/main", func(objects.ID) (objects.Batch, error) {
			runtime.Goexit()
			return objects.Batch{}, nil
		})
	}()
	<-done
	apply(t, s, "refs/heads/main", "after")
}

// TestNothingIsOpenBetweenCalls waits in loop bodies until the timer of an idle handle has closed it.
func TestNothingIsOpenBetweenCalls(t *testing.T) {
	s, path := fresh(t)
	tip := line(t, s, "main", 600)
	for range objectstest.ChainWithContent(t.Context(), s, tip) {
		wantClosed(t, s, path)
		break
	}
	n := 0
	for range s.Chain(t.Context(), tip, objects.ChainOptions{}) {
		if n++; n%97 == 0 {
			wantClosed(t, s, path)
		}
	}
	wantClosed(t, s, path)
}

// wantClosed checks that no file of this process is the store, once an idle handle was closed.
func wantClosed(t *testing.T, s objects.Store, path string) {
	t.Helper()
	idle(t, s)
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("only Linux lists the open files of a process there")
	}
	for _, fd := range fds {
		if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.HasPrefix(to, path) {
			t.Fatalf("%s is open while a loop body runs", to)
		}
	}
}

func TestReadersShareAHandle(t *testing.T) {
	s, _ := fresh(t)
	apply(t, s, "refs/heads/main", "x")
	in := idle(t, s)
	err := in.view(t.Context(), "read", func(*snapshot) error {
		for range 10 {
			if _, err := s.GetRefs(t.Context(), "refs/heads/main"); err != nil {
				return err
			}
		}
		in.mu.Lock()
		defer in.mu.Unlock()
		if in.openHandles > 2 { // one of them may have come after the burst
			t.Errorf("%d handles are open", in.openHandles)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestReadersDoNotStopAWriter(t *testing.T) {
	s, _ := fresh(t)
	apply(t, s, "refs/heads/main", "x")
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for ctx.Err() == nil {
				if _, err := s.GetRefs(ctx, "refs/heads/main"); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range 20 {
		apply(t, s, fmt.Sprint("refs/heads/", i), "x")
	}
	cancel()
	wg.Wait()
}

func TestOutcomeOfAFailedCheckpoint(t *testing.T) {
	s, path := fresh(t)
	apply(t, s, "refs/heads/main", "main")
	in := idle(t, s)
	trouble := fmt.Errorf("fdatasync: %w", syscall.EIO)
	for _, c := range []struct {
		name    string
		written bool
	}{{"before the meta page", false}, {"after the meta page", true}} {
		h, err := in.lockAndOpen(t.Context(), true)
		if err != nil {
			t.Fatal(err)
		}
		if c.written {
			if err := in.transact(h, []journal.Change{setKey(objectsBucket, []byte("k"), []byte("v"))}); err != nil {
				t.Fatal(err)
			}
		}
		_, err = in.transactionOutcome(h, trouble)
		if objects.IsUnknown(err) != c.written || !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), path) {
			t.Errorf("trouble %s: %v, unknown: %t", c.name, err, objects.IsUnknown(err))
		}
		h.closeFiles()
		h.lock.release()
	}
}

// planned is a group of one batch, as it would be written.
func planned(t *testing.T, s *store, h *handle, b objects.Batch) *group {
	t.Helper()
	w := newWriter(s, h)
	g, _, err := w.plan(b, "", objects.ID{})
	if err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open, w.committing = nil, g
	return g
}

// TestGroupIsSeenOnlyWhenDurable plans a group, and fails to write it: at no time do the readers of this
// process see it.
func TestGroupIsSeenOnlyWhenDurable(t *testing.T) {
	s, _ := fresh(t)
	apply(t, s, "refs/heads/main", "first")
	in := idle(t, s)
	h, err := in.lockAndOpen(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	defer h.lock.release()
	defer h.file.Close()
	g := planned(t, in, h, batch("refs/heads/second", "second"))
	seen := func() bool {
		r, err := h.snapshot().ref("refs/heads/second")
		return err != nil || !r.Target.IsZero()
	}
	if seen() {
		t.Error("it is seen when it is planned")
	}
	if err := h.journal.File.Close(); err != nil {
		t.Fatal(err)
	}
	if err := in.appendToJournal(h, g); err == nil || seen() {
		t.Errorf("written to a closed journal: %v; seen: %t", err, seen())
	}
}

// TestOutcomeOfAFailedCommit writes a frame that was not acknowledged. Repeating the batch commits it
// once. That the next writer makes the frame durable is shown by TestPowerFailureAfterAKill.
func TestOutcomeOfAFailedCommit(t *testing.T) {
	s, path := fresh(t)
	apply(t, s, "refs/heads/main", "first")
	in := idle(t, s)
	h, err := in.lockAndOpen(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.journal.Append(planned(t, in, h, batch("refs/heads/second", "second")).frame); err != nil { // and then nothing more
		t.Fatal(err)
	}
	h.closeFiles()
	h.lock.release()
	if ref, err := objects.ReadRef(t.Context(), s, "refs/heads/second"); err != nil || ref.Target != object("second").ID {
		t.Errorf("what is in the journal is at %s, %v", ref.Target.Short(), err)
	}
	if n := transactions(t, path); n != 1 {
		t.Errorf("%d groups were acknowledged", n)
	}
	apply(t, s, "refs/heads/second", "second")
	if n := transactions(t, path); n != 2 {
		t.Errorf("%d groups were acknowledged after it was repeated", n)
	}
	if entries, err := s.Log(t.Context(), "", 0, 0); err != nil || len(entries) != 2 {
		t.Errorf("log: %v, %v", entries, err)
	}
}

func TestFileThatIsReplacedUnderAWriter(t *testing.T) {
	s, path := fresh(t)
	apply(t, s, "refs/heads/main", "old")
	_, other := fresh(t)
	err := s.Update(t.Context(), "refs/heads/b", func(objects.ID) (objects.Batch, error) {
		if err := errors.Join(os.Rename(other, path), os.Rename(journalPath(other), journalPath(path))); err != nil {
			t.Fatal(err)
		}
		return batch("refs/heads/b", "lost"), nil
	})
	if !errors.Is(err, objects.ErrUnsafe) || objects.IsUnknown(err) {
		t.Errorf("a commit into a file that has no name any more: %v", err)
	}
	apply(t, s, "refs/heads/b", "found")
	if got, err := s.Refs(t.Context(), objects.RefQuery{}); err != nil || len(got) != 1 || got[0].Target != object("found").ID {
		t.Errorf("the new file holds %v, %v", got, err)
	}
}

// TestDatabaseOrJournalReplacedUnderAWriter replaces only the database file, and only the journal:
// each half of the check is needed, and neither loses an acknowledged commit.
func TestDatabaseOrJournalReplacedUnderAWriter(t *testing.T) {
	for name, fileOf := range map[string]func(path string) string{
		"the file":    func(path string) string { return path },
		"the journal": journalPath,
	} {
		s, path := fresh(t)
		apply(t, s, "refs/heads/main", "old")
		idle(t, s)
		b, err := os.ReadFile(fileOf(path))
		if err != nil {
			t.Fatal(err)
		}
		err = s.Update(t.Context(), "refs/heads/b", func(objects.ID) (objects.Batch, error) {
			other := fileOf(path) + "-other"
			if err := errors.Join(os.WriteFile(other, b, 0o600), os.Rename(other, fileOf(path))); err != nil {
				t.Fatal(err)
			}
			return batch("refs/heads/b", "lost"), nil
		})
		if !errors.Is(err, objects.ErrUnsafe) || objects.IsUnknown(err) {
			t.Errorf("%s was replaced by a copy, and a commit into the old one gives %v", name, err)
		}
		apply(t, s, "refs/heads/b", "found")
		if got, err := s.GetRefs(t.Context(), "refs/heads/b"); err != nil || len(got) != 1 || got[0].Target != object("found").ID {
			t.Errorf("%s was replaced: %v, %v", name, got, err)
		}
	}
}

// TestManyChangesOfEveryTree moves refs and puts objects at random until every
// tree has split, joined and shrunk often; the guard must not take any of that
// for damage, and what is left must be what a map says.
func TestManyChangesOfEveryTree(t *testing.T) {
	s, path := fresh(t)
	r := rand.New(rand.NewPCG(1, 2))
	want := map[string]objects.ID{}
	name := func() string { return fmt.Sprintf("refs/heads/%0*d", 1+r.IntN(40), r.IntN(3000)) }
	for round := range 60 {
		var b objects.Batch
		used := map[string]bool{}
		b.Note.Time = time.UnixMilli(r.Int64N(1 << 40))
		size := 1 + r.IntN(1+r.IntN(300))
		for range size {
			n := name()
			if round%10 > 6 { // times of deletion
				for n = range want {
					break
				}
			}
			if used[n] {
				continue
			}
			used[n] = true
			o := object(fmt.Sprint(round, n, strings.Repeat("x", r.IntN(1+r.IntN(6000)))))
			u := objects.RefUpdate{Name: n, Old: want[n], New: o.ID}
			if !u.Old.IsZero() && (round%10 > 6 || r.IntN(3) == 0) {
				u.New = objects.ID{}
			}
			b.Put, b.Refs = append(b.Put, o), append(b.Refs, u)
			if want[n] = u.New; u.New.IsZero() {
				delete(want, n)
			}
		}
		if err := s.Apply(t.Context(), b); err != nil {
			t.Fatalf("round %d, %d refs: %v", round, len(want), err)
		}
	}
	for _, newest := range []bool{false, true} {
		got, err := s.Refs(t.Context(), objects.RefQuery{Newest: newest})
		if err != nil || len(got) != len(want) {
			t.Fatalf("%d refs, %v; want %d", len(got), err, len(want))
		}
		for _, ref := range got {
			if want[ref.Name] != ref.Target {
				t.Errorf("%s is at %s, want %s", ref.Name, ref.Target.Short(), want[ref.Name].Short())
			}
		}
	}
	if _, err := s.Log(t.Context(), "", 0, 0); err != nil {
		t.Error(err)
	}
	wantSound(t, path)
}
