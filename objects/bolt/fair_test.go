package bolt

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tract-vcs/tract/objects"
)

// served is how a process fared that writes, or reads, as often as it can.
type served struct {
	Times int
	P99   time.Duration
	Most  time.Duration
}

// roleServed writes to a branch, or reads it, until standard input ends: PATH REF
// write|read.
func roleServed(args []string) error {
	ctx := context.Background()
	s, err := objects.Open(ctx, args[0], objects.Options{})
	if err != nil {
		return err
	}
	var over atomic.Bool
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		over.Store(true)
	}()
	var waits []time.Duration
	for !over.Load() {
		begun := time.Now()
		if args[2] == "write" {
			err = increment(ctx, s, args[1], "")
		} else {
			_, err = countDown(ctx, s, args[1])
			time.Sleep(time.Millisecond) // it looks now and then, as programs do
		}
		if err != nil {
			return err
		}
		waits = append(waits, time.Since(begun))
	}
	slices.Sort(waits)
	out := served{Times: len(waits)}
	if len(waits) > 0 {
		out.P99, out.Most = waits[len(waits)*99/100], waits[len(waits)-1]
	}
	if err := json.NewEncoder(os.Stdout).Encode(out); err != nil {
		return err
	}
	return s.Close()
}

// TestWritersAreServedInTurn has four processes write as often as they can beside two
// that read. Nobody fails and nobody is left out.
func TestWritersAreServedInTurn(t *testing.T) {
	s, path := fresh(t)
	for i := range 4 {
		if err := increment(t.Context(), s, fmt.Sprint("refs/heads/", i), ""); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	over, end, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	var all []*exec.Cmd
	var outs []io.Reader
	for i := range 6 {
		what := "write"
		if i >= 4 {
			what = "read"
		}
		cmd := child(t, "served", path, fmt.Sprint("refs/heads/", i%4), what)
		cmd.Stdin = over
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		all, outs = append(all, cmd), append(outs, out)
	}
	_ = over.Close()
	time.Sleep(time.Duration(rounds(1, 2, 30)) * time.Second) // this long, whatever becomes of it
	_ = end.Close()
	least, most, p99, longest := 1<<40, 0, time.Duration(0), time.Duration(0)
	for i, cmd := range all {
		var got served
		if err := json.NewDecoder(outs[i]).Decode(&got); err != nil {
			t.Errorf("process %d: %v", i, err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("process %d: %v", i, err)
		}
		t.Logf("process %d: %d times, p99 %v, longest %v", i, got.Times, got.P99, got.Most)
		if i < 4 {
			least, most = min(least, got.Times), max(most, got.Times)
			p99, longest = max(p99, got.P99), max(longest, got.Most)
		}
	}
	t.Logf("writers: least to most %.2f, p99 %v, longest %v", float64(least)/float64(most), p99, longest)
	if least == 0 {
		t.Error("a writer was never served")
	}
}
