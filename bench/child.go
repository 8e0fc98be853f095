package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/content"
)

// A child is this program in a process of its own. It measures what a new process needs, and
// how processes that share a store affect one another.

// childArg is the first argument of a child process.
const childArg = "child"

func isChild(args []string) bool { return len(args) > 0 && args[0] == childArg }

// childResult is the last line that a child prints, as JSON.
type childResult struct {
	Took   time.Duration   // of the work, without the start of the process
	Bytes  int64           // of text that it read
	Peak   int64           // memory in bytes; 0: unknown
	Waits  []time.Duration // of each commit
	Failed int             // commits or reads that returned an error
	Reads  int
}

// child runs the work that the arguments name: what to do, then a path.
func child(args []string, in io.Reader, out io.Writer) error {
	if len(args) < 2 {
		return fmt.Errorf("child %q: want a task and a path", args)
	}
	var f childResult
	var err error
	ctx := context.Background()
	switch path := args[1]; args[0] {
	case "compile":
		f, err = childCompiles(ctx, path)
	case "read":
		f, err = childReads(path)
	case "write":
		f, err = childWrites(ctx, path, args[2:], in, out)
	case "read-log":
		f, err = childReadsLog(ctx, path, in, out)
	default:
		err = fmt.Errorf("child %q: want compile, read, write or read-log", args[0])
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(f)
}

func childCompiles(ctx context.Context, store string) (f childResult, err error) {
	start := time.Now()
	repo, err := tract.Open(ctx, store, tract.OpenOptions{ReadOnly: true})
	if err != nil {
		return f, err
	}
	p, err := repo.Compile(ctx, "main", tract.CompileOptions{})
	if err != nil {
		return f, errors.Join(err, repo.Close())
	}
	f.Took, f.Peak = time.Since(start), peak()
	for _, m := range p.Messages {
		for _, b := range m.Blocks {
			if t, ok := b.(content.Text); ok {
				f.Bytes += int64(len(t.Text))
			}
		}
	}
	return f, repo.Close()
}

func childReads(path string) (f childResult, err error) {
	start := time.Now()
	b, err := os.ReadFile(path)
	f.Took, f.Peak, f.Bytes = time.Since(start), peak(), int64(len(b))
	return f, err
}

// childWrites commits to a branch of its own until the end of its input.
func childWrites(ctx context.Context, store string, args []string, in io.Reader, out io.Writer) (f childResult, err error) {
	writer, err := strconv.ParseUint(args[0], 10, 32)
	if err != nil {
		return f, err
	}
	repo, err := tract.Open(ctx, store, tract.OpenOptions{})
	if err != nil {
		return f, err
	}
	branch := repo.Branch(fmt.Sprint("w", writer))
	err = workUntilInputEnds(in, out, func(n int) {
		said := block(n, message(writerSeed+writer, n))
		start := time.Now()
		if _, err := branch.Append(ctx, []content.Block{said}, tract.AppendOptions{}); err != nil {
			f.Failed++
		}
		f.Waits = append(f.Waits, time.Since(start))
	})
	return f, errors.Join(err, repo.Close())
}

// childReadsLog reads the newest commits until the end of its input.
func childReadsLog(ctx context.Context, store string, in io.Reader, out io.Writer) (f childResult, err error) {
	repo, err := tract.Open(ctx, store, tract.OpenOptions{ReadOnly: true})
	if err != nil {
		return f, err
	}
	err = workUntilInputEnds(in, out, func(int) {
		for _, err := range repo.Log(ctx, "main", tract.LogOptions{Limit: 20}) {
			if err != nil {
				f.Failed++
			}
		}
		f.Reads++
	})
	return f, errors.Join(err, repo.Close())
}

// workUntilInputEnds prints "ready", waits for a line, and then works until its input ends,
// but at least once: on a busy machine the input may end before the process runs.
func workUntilInputEnds(in io.Reader, out io.Writer, work func(n int)) error {
	fmt.Fprintln(out, "ready")
	r := bufio.NewReader(in)
	if _, err := r.ReadString('\n'); err != nil {
		return fmt.Errorf("wait for the start: %w", err)
	}
	ended := make(chan struct{})
	go func() { _, _ = io.Copy(io.Discard, r); close(ended) }() // an error ends the input too
	for n := 0; ; n++ {
		work(n)
		select {
		case <-ended:
			return nil
		default:
		}
	}
}

// childCommand returns the command that starts a child.
func childCommand(ctx context.Context, args ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := exec.CommandContext(ctx, self, append([]string{childArg}, args...)...)
	c.Stderr = os.Stderr
	return c, nil
}

// runChild runs a child to its end.
func runChild(ctx context.Context, args ...string) (f childResult, err error) {
	c, err := childCommand(ctx, args...)
	if err != nil {
		return f, err
	}
	out, err := c.Output()
	if err != nil {
		return f, fmt.Errorf("child %q: %w", args, err)
	}
	return f, json.Unmarshal(out, &f)
}
