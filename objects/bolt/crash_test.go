package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tract-vcs/tract/internal/faulttest"
	"github.com/tract-vcs/tract/objects"
)

// roleCrash does of everything that writes, and says what is acknowledged: PATH
// [long]. A line is a ref and its number, or "copy" and the number of the main branch in the
// copy, or "gone" and a ref, or "phase" and what begins.
func roleCrash(args []string) error {
	ctx := context.Background()
	w := &crashWork{ctx: ctx}
	w.open(args[0])
	in, ok := objects.As[*store](w.store)
	if !ok {
		return w.err
	}
	in.checkpointLength = 3 << 10 // checkpoints are frequent
	for i := range 9 {
		w.next("refs/heads/main", i*211)
	}
	var group sync.WaitGroup
	for i := range 3 {
		group.Go(func() {
			for k := range 3 {
				w.next(fmt.Sprint("refs/heads/", i), k*97)
			}
		})
	}
	group.Wait()
	w.next("refs/heads/main", largeSize+100)
	w.leave("refs/tags/gone")
	fmt.Println("phase purge")
	w.purge("<purged beside gc>")
	fmt.Println("phase gc")
	w.sweep()
	fmt.Println("phase purge")
	w.purge("<purged after gc>")
	fmt.Println("phase backup")
	w.backup(filepath.Join(filepath.Dir(args[0]), "copy"))
	fmt.Println("phase commit")
	w.next("refs/heads/main", 10)
	if len(args) > 1 {
		in.checkpointLength = journalLimit
		w.next("refs/heads/main", maxFrameSize+1000) // into the file at once
		for range 5 {
			w.next("refs/heads/main", 120<<10)
		}
	}
	w.check(w.store.Close())
	if w.open(args[0]); w.store == nil {
		return w.err
	}
	for i := range 3 {
		w.next("refs/heads/main", i)
	}
	w.check(w.store.Close())
	return w.err
}

// crashWork is what roleCrash does. After an error it does again what failed, as a
// caller would.
type crashWork struct {
	ctx   context.Context
	store objects.Store
	mu    sync.Mutex
	err   error
}

func (w *crashWork) check(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = errors.Join(w.err, err)
}

// tries does something until it works, a few times.
func (w *crashWork) tries(f func() error) bool {
	err := f()
	for try := 0; err != nil && try < 4; try++ {
		fmt.Fprintln(os.Stderr, "again:", err)
		err = f()
	}
	w.check(err)
	return err == nil
}

func (w *crashWork) open(path string) {
	w.store = nil
	w.tries(func() error {
		s, err := objects.Open(w.ctx, path, objects.Options{Create: true})
		if err == nil {
			w.store = s
		}
		return err
	})
}

// next puts the next number on a branch, with so many bytes beside it. When it is done
// again it is the same batch.
func (w *crashWork) next(ref string, size int) {
	var n uint64
	var batch objects.Batch
	if w.tries(func() error {
		if len(batch.Put) > 0 {
			return w.store.Apply(w.ctx, batch)
		}
		return w.store.Update(w.ctx, ref, func(tip objects.ID) (objects.Batch, error) {
			b, err := next(w.ctx, w.store, ref, ref, tip)
			if err == nil {
				n = binary.BigEndian.Uint64(b.Put[0].Data)
				b.Put = append(b.Put, object(fmt.Sprint(ref, n, strings.Repeat("~", size))))
				batch = b
			}
			return b, err
		})
	}) {
		fmt.Printf("%s %d\n", ref, n)
	}
}

// leave makes a ref and takes it away, so that something is unreachable but for the log.
func (w *crashWork) leave(ref string) {
	o := object(ref)
	for _, b := range []objects.Batch{
		{Put: []objects.Object{o, object("stray")}, Refs: []objects.RefUpdate{{Name: ref, New: o.ID}}},
		{Refs: []objects.RefUpdate{{Name: ref, Old: o.ID}}},
	} {
		w.tries(func() error { return w.store.Apply(w.ctx, b) })
	}
	fmt.Println("gone", ref)
}

// purge puts words that take several pages and purges them, with others beside them in the pack
// and in the journal.
func (w *crashWork) purge(words string) {
	o, beside := object(strings.Repeat(words, 1000)), object("beside "+words[1:])
	w.tries(func() error { return w.store.Apply(w.ctx, objects.Batch{Put: []objects.Object{o, beside}}) })
	w.tries(func() error {
		_, err := objects.Purge(w.ctx, w.store, []objects.Tombstone{{ID: o.ID, Why: "test"}}, nil)
		return err
	})
	fmt.Println("gone", words)
}

func (w *crashWork) sweep() {
	c, ok := objects.As[objects.Maintainer](w.store)
	if !ok {
		w.check(errors.New("the engine cannot be cleaned"))
		return
	}
	w.tries(func() error {
		_, err := c.Sweep(w.ctx, objects.Sweep{Before: time.Now().Add(time.Hour)})
		return err
	})
}

// backup copies the store into a folder beside it.
func (w *crashWork) backup(dir string) {
	c, ok := objects.As[objects.Maintainer](w.store)
	if !ok {
		w.check(errors.New("the engine cannot be copied"))
		return
	}
	w.tries(func() error { return makeDir(dir) })
	n := 0
	w.tries(func() (err error) {
		if n, err = countDown(w.ctx, w.store, "refs/heads/main"); err == nil {
			err = c.Copy(w.ctx, dir, nil)
		}
		return err
	})
	fmt.Println("copy", n)
}

// roleAgain goes on with a store after roleCrash: PATH.
func roleAgain(args []string) error {
	w := &crashWork{ctx: context.Background()}
	if w.open(args[0]); w.store == nil {
		return w.err
	}
	w.next("refs/heads/main", 10)
	w.next("refs/heads/main", 100)
	w.check(w.store.Close())
	return w.err
}

// memory is a folder that costs no sync, where there is one.
func memory(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "tract") //nolint:usetesting // not where tests have theirs
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// traced runs roleCrash with a fault, or none, and roles that go on after it.
func traced(t testing.TB, fault *faulttest.Fault, long bool, more ...string) (trace *faulttest.Trace, root string) {
	t.Helper()
	root = filepath.Join(memory(t), "root")
	if err := os.Mkdir(root, 0o700); err != nil {
		t.Fatal(err)
	}
	args := []string{filepath.Join(root, "s")}
	if long {
		args = append(args, "long")
	}
	commands := []*exec.Cmd{child(t, "crash", args...)}
	for _, role := range more {
		commands = append(commands, child(t, role, args[0]))
	}
	for _, cmd := range commands {
		cmd.Env, cmd.Stderr = append(cmd.Env, "GOMAXPROCS=1"), nil
	}
	trace, err := faulttest.Run(root, fault, commands...)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return trace, root
}

// traceRole runs a role on a store with a fault, or none.
func traceRole(t testing.TB, path string, fault *faulttest.Fault, role string) *faulttest.Trace {
	t.Helper()
	trace, err := faulttest.Run(filepath.Dir(path), fault, child(t, role, path))
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

// acknowledged is the number of every branch, and which refs are gone, as was said.
func acknowledged(t testing.TB, trace *faulttest.Trace, steps int) (numbers map[string]int, gone []string) {
	t.Helper()
	numbers = map[string]int{}
	for _, s := range trace.Steps[:steps] {
		if s.Kind != faulttest.Say || s.Name != "1" {
			continue
		}
		ref, n, _ := strings.Cut(strings.TrimSpace(string(s.Data)), " ")
		if ref == "phase" {
			continue
		}
		if ref == "gone" {
			gone = append(gone, n)
			continue
		}
		number, err := strconv.Atoi(n)
		if err != nil {
			t.Fatal(err)
		}
		numbers[ref] = max(number, numbers[ref])
	}
	return numbers, gone
}

// inNoFile wants that words which were purged are in no file of a store.
func inNoFile(path, words string) error {
	if strings.HasPrefix(words, "refs/") {
		return nil
	}
	files, err := filepath.Glob(filepath.Join(path, "*"))
	if err != nil {
		return err
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if at := bytes.Index(b, []byte(words)); at >= 0 {
			return fmt.Errorf("%q was purged and is in %s at %d", words, filepath.Base(name), at)
		}
	}
	return nil
}

// survives opens what a crash has left, and says what is wrong with it.
func survives(ctx context.Context, dir string, numbers map[string]int, gone []string) error {
	path := filepath.Join(dir, "s")
	for _, words := range gone {
		if err := inNoFile(path, words); err != nil {
			return err
		}
	}
	s, err := objects.Open(ctx, path, objects.Options{Create: true})
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	for ref, n := range numbers {
		if ref == "copy" {
			if err := isCopy(ctx, filepath.Join(dir, ref), n); err != nil {
				return fmt.Errorf("the copy: %w", err)
			}
			continue
		}
		if got, err := countDown(ctx, s, ref); err != nil || got < n {
			return fmt.Errorf("%s: %d was acknowledged, and %d is there: %w", ref, n, got, err)
		}
	}
	for _, ref := range gone {
		if !strings.HasPrefix(ref, "refs/") {
			continue
		}
		if at, err := objects.ReadRef(ctx, s, ref); err != nil || !at.Target.IsZero() {
			return fmt.Errorf("%s is back: %w", ref, err)
		}
	}
	before, err := countDown(ctx, s, "refs/heads/main")
	if err != nil {
		return err
	}
	if err := increment(ctx, s, "refs/heads/main", "next"); err != nil {
		return fmt.Errorf("the next commit: %w", err)
	}
	if after, err := countDown(ctx, s, "refs/heads/main"); err != nil || after != before+1 {
		return fmt.Errorf("%d numbers, and after one more %d: %w", before, after, err)
	}
	return isSound(ctx, s)
}

// isCopy opens a copy of a store, and says what is wrong with it.
func isCopy(ctx context.Context, path string, n int) error {
	s, err := objects.Open(ctx, path, objects.Options{})
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	if got, err := countDown(ctx, s, "refs/heads/main"); err != nil || got != n {
		return fmt.Errorf("%d was copied, and %d is there: %w", n, got, err)
	}
	return isSound(ctx, s)
}

// isSound returns the first damage that fsck reports, as an error.
func isSound(ctx context.Context, s objects.Store) error {
	in, ok := objects.As[objects.Maintainer](s)
	if !ok {
		return errors.New("the engine cannot be audited")
	}
	return in.Audit(ctx, objects.Audit{Begin: func(int) error { return nil }, Damage: func(d objects.Damage) error {
		if d.Harmless {
			return nil
		}
		return fmt.Errorf("fsck: %s: %s", d.Where, d.What)
	}})
}

// countDown walks a branch, which must count down to 1.
func countDown(ctx context.Context, s objects.Store, ref string) (int, error) {
	tip, err := objects.ReadRef(ctx, s, ref)
	if err != nil || tip.Target.IsZero() {
		return 0, err
	}
	n := 0
	for o, err := range s.Chain(ctx, tip.Target, objects.ChainOptions{}) {
		if err != nil {
			return 0, err
		}
		if at := int(binary.BigEndian.Uint64(o.Data)); n == 0 {
			n = at
		} else if n--; at != n {
			return 0, fmt.Errorf("number %d where %d must be", at, n)
		}
	}
	if n != 1 {
		return 0, fmt.Errorf("it ends at %d", n)
	}
	if o, err := objects.Read(ctx, s, tip.Target); err != nil || int(binary.BigEndian.Uint64(o.Data)) != int(tip.Version) {
		return 0, fmt.Errorf("moved %d times: %w", tip.Version, err)
	}
	return int(tip.Version), nil
}
