package bolt

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"

	"github.com/tract-vcs/tract/objects"
)

// roleServed writes to a branch, or reads it, until standard input ends: PATH REF
// write|read. It prints a line for each time that it was served.
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
	out := json.NewEncoder(os.Stdout)
	for n := 1; !over.Load(); n++ {
		if args[2] == "write" {
			err = increment(ctx, s, args[1], "")
		} else {
			_, err = countDown(ctx, s, args[1])
		}
		if err == nil {
			err = out.Encode(n)
		}
		if err != nil {
			return err
		}
	}
	return s.Close()
}

// TestWritersAreServedInTurn has four processes write as often as they can beside two that
// read, until each of them was served so many times. Nobody fails, which one that is kept
// out for ten seconds does, and nobody is left out.
func TestWritersAreServedInTurn(t *testing.T) {
	times := rounds(10, 20, 1000)
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
	served := make(chan bool)
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
		all = append(all, cmd)
		go func() {
			in, n := json.NewDecoder(out), 0
			for n < times && in.Decode(&n) == nil {
			}
			served <- n == times
			_, _ = io.Copy(io.Discard, io.MultiReader(in.Buffered(), out))
			served <- true
		}()
	}
	_ = over.Close()
	for range all {
		if !<-served {
			t.Error("a process ended before it was served as often as the others")
		}
	}
	_ = end.Close()
	for i, cmd := range all {
		<-served
		if err := cmd.Wait(); err != nil {
			t.Errorf("process %d: %v", i, err)
		}
	}
}
