package bolt

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/tract-vcs/tract/objects"
)

// next is a batch that puts the next number on a branch.
func next(ctx context.Context, s objects.Store, ref, who string, tip objects.ID) (objects.Batch, error) {
	var parents []objects.ID
	n := uint64(0)
	if !tip.IsZero() {
		o, err := objects.Read(ctx, s, tip)
		if err != nil {
			return objects.Batch{}, err
		}
		n, parents = binary.BigEndian.Uint64(o.Data), []objects.ID{tip}
	}
	o := objects.New(objects.KindCommit, parents, []objects.ID{objects.Hash([]byte(who))}, binary.BigEndian.AppendUint64(nil, n+1))
	return objects.Batch{Put: []objects.Object{o}, Refs: []objects.RefUpdate{{Name: ref, Old: tip, New: o.ID}}}, nil
}

func increment(ctx context.Context, s objects.Store, ref, who string) error {
	return s.Update(ctx, ref, func(tip objects.ID) (objects.Batch, error) { return next(ctx, s, ref, who, tip) })
}

// roleWrite increments a branch: PATH REF TIMES.
func roleWrite(args []string) error {
	ctx := context.Background()
	s, err := objects.Open(ctx, args[0], objects.Options{Create: true, Wait: 30 * time.Second})
	if err != nil {
		return err
	}
	times, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	var longest time.Duration
	for range times {
		start := time.Now()
		if err := increment(ctx, s, args[1], fmt.Sprint(os.Getpid())); err != nil {
			return err
		}
		longest = max(longest, time.Since(start))
		ref, err := objects.ReadRef(ctx, s, args[1])
		if err != nil {
			return err
		}
		if _, err := objects.Read(ctx, s, ref.Target); err != nil {
			return err
		}
	}
	fmt.Println("longest wait", longest)
	return s.Close()
}

func TestProcessesWriteAndReadAtOnce(t *testing.T) {
	const processes, each = 4, 60
	s, path := fresh(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	out := make([]string, processes)
	var wg sync.WaitGroup
	for i := range processes {
		wg.Go(func() {
			b, err := child(t, "write", path, "refs/heads/main", fmt.Sprint(each)).Output()
			if out[i] = string(b); err != nil {
				t.Errorf("process %d: %v", i, err)
			}
		})
	}
	wg.Go(func() { // this process does both
		for range each {
			if err := increment(ctx, s, "refs/heads/main", "parent"); err != nil {
				t.Error(err)
			}
			ref, err := objects.ReadRef(ctx, s, "refs/heads/main")
			if err != nil {
				t.Error(err)
			}
			for _, err := range s.Chain(ctx, ref.Target, objects.ChainOptions{Limit: 20}) {
				if err != nil {
					t.Error(err)
				}
			}
		}
	})
	wg.Wait()
	t.Logf("%q", out)
	wantNumbers(t, s, "refs/heads/main", (processes+1)*each)
	wantSound(t, path)
}

// wantNumbers checks that a branch counts down from n to 1 and was moved n times.
func wantNumbers(t *testing.T, s objects.Store, ref string, n int) {
	t.Helper()
	tip, err := objects.ReadRef(t.Context(), s, ref)
	if err != nil {
		t.Fatal(err)
	}
	want := n
	for o, err := range s.Chain(t.Context(), tip.Target, objects.ChainOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if got := binary.BigEndian.Uint64(o.Data); got != uint64(want) {
			t.Fatalf("number %d where %d must be", got, want)
		}
		want--
	}
	if want != 0 {
		t.Fatalf("%s ends %d numbers early", ref, want)
	}
	if entries, err := s.Log(t.Context(), ref, 0, 0); err != nil || len(entries) != n {
		t.Fatalf("%d log entries, %v; want %d", len(entries), err, n)
	}
}

// roleCreate creates a store together with others: PATH NAME, from when standard
// input ends.
func roleCreate(args []string) error {
	if _, err := io.ReadAll(os.Stdin); err != nil {
		return err
	}
	ctx := context.Background()
	s, err := objects.Open(ctx, args[0], objects.Options{Create: true})
	if err != nil {
		return err
	}
	return errors.Join(s.Apply(ctx, batch("refs/heads/"+args[1], args[1])), s.Close())
}

func TestProcessesCreateAtOnce(t *testing.T) {
	const processes, rounds = 5, 4
	for round := range rounds {
		dir := filepath.Join(t.TempDir(), "a", "b") // the directories are made too
		start, gun, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		var all []*exec.Cmd
		for i := range processes {
			cmd := child(t, "create", dir, fmt.Sprint(i))
			cmd.Stdin = start
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			all = append(all, cmd)
		}
		_ = start.Close()
		_ = gun.Close()
		for i, cmd := range all {
			if err := cmd.Wait(); err != nil {
				t.Errorf("round %d, process %d: %v", round, i, err)
			}
		}
		s := mustOpen(t, dir, objects.Options{})
		if refs, err := s.Refs(t.Context(), objects.RefQuery{}); err != nil || len(refs) != processes {
			t.Errorf("round %d: %d of %d processes wrote into the store that stayed, %v", round, len(refs), processes, err)
		}
		if left := names(t, dir); len(left) != 4 {
			t.Errorf("round %d: creation left %v", round, left)
		}
	}
}

func TestCreationThatWasInterrupted(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, fileName+".new-123"), []byte("half a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, dir, objects.Options{Create: true})
	apply(t, s, "refs/heads/main", "x")
	if left := names(t, dir); len(left) != 4 {
		t.Errorf("the directory holds %v", left)
	}
}

// roleKill increments a branch and says each number that is acknowledged: PATH. It
// makes frequent checkpoints.
func roleKill(args []string) error {
	ctx := context.Background()
	fmt.Println("begun")
	s, err := objects.Open(ctx, args[0], objects.Options{Create: true})
	if err != nil {
		return err
	}
	if in, ok := objects.As[*store](s); ok {
		in.checkpointLength = 4 << 10
	}
	for {
		var n uint64
		err := s.Update(ctx, "refs/heads/main", func(tip objects.ID) (objects.Batch, error) {
			b, err := next(ctx, s, "refs/heads/main", "", tip)
			if err == nil {
				n = binary.BigEndian.Uint64(b.Put[0].Data)
			}
			return b, err
		})
		if err != nil {
			return err
		}
		fmt.Println(n)
	}
}

// TestKill9 kills a writer again and again; what it had acknowledged is there,
// and the next one goes on from it.
func TestKill9(t *testing.T) {
	kills := rounds(8, 30, 300)
	path := filepath.Join(t.TempDir(), "s")
	acknowledged := 0
	for kill := range kills {
		cmd := child(t, "kill", path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		said := 1 + kill*7%40 // lines that it may say
		if kill%5 == 0 {      // now and then it is killed while it opens or creates the store
			said = 0
		}
		for lines.Scan() && lines.Text() != "begun" {
		}
		for ; said > 0 && lines.Scan(); said-- {
			acknowledged = mustNumber(t, lines.Text())
		}
		_ = cmd.Process.Kill()
		for lines.Scan() {
			acknowledged = mustNumber(t, lines.Text())
		}
		_ = cmd.Wait()
		s, err := objects.Open(t.Context(), path, objects.Options{})
		if errors.Is(err, objects.ErrNotFound) && acknowledged == 0 {
			continue
		}
		if err != nil {
			t.Fatalf("kill %d: %v", kill, err)
		}
		ref, err := objects.ReadRef(t.Context(), s, "refs/heads/main")
		if err != nil {
			t.Fatalf("kill %d: %v", kill, err)
		}
		if int(ref.Version) < acknowledged || int(ref.Version) > acknowledged+1 {
			t.Fatalf("kill %d: number %d was acknowledged, the branch is at %d", kill, acknowledged, ref.Version)
		}
		acknowledged = int(ref.Version)
		wantNumbers(t, s, "refs/heads/main", acknowledged)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d numbers over %d kills", acknowledged, kills)
	wantSound(t, filepath.Join(path, fileName))
}

func mustNumber(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestWatchYieldsMovesOfOtherProcesses(t *testing.T) {
	s, path := fresh(t)
	w, ok := objects.As[objects.Watcher](s)
	if !ok {
		t.Fatal("no Watcher")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	writer := make(chan error, 1)
	go func() { writer <- child(t, "write", path, "refs/heads/main", "5").Run() }()
	for ref, err := range w.Watch(ctx, "refs/heads/main") {
		if err != nil {
			t.Fatalf("the fifth move of another process was never seen: %v", err)
		}
		if ref.Version == 5 {
			break
		}
	}
	if err := <-writer; err != nil {
		t.Error(err)
	}
}
