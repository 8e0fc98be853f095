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

// A child is this program again, in a process of its own: what a new process needs
// for a prompt, and what processes do to one another, cannot be seen from within
// one.

// childWord is the first argument of a child.
const childWord = "child"

func isChild(args []string) bool { return len(args) > 0 && args[0] == childWord }

// findings is what a child writes on its last line.
type findings struct {
	Took   time.Duration   // of one piece of work, without the start of the process
	Bytes  int64           // of words it got
	Peak   int64           // most memory at once, 0 where that is not known
	Waits  []time.Duration // of each commit
	Failed int             // commits that were refused
	Reads  int
}

// child does what the arguments say.
func child(args []string, in io.Reader, out io.Writer) error {
	if len(args) < 2 {
		return fmt.Errorf("child %q: want what to do and where", args)
	}
	var f findings
	var err error
	ctx := context.Background()
	switch path := args[1]; args[0] {
	case "compile":
		f, err = childCompiles(ctx, path)
	case "read":
		f, err = childReads(path)
	case "write":
		f, err = childWrites(ctx, path, args[2:], in, out)
	case "look":
		f, err = childLooks(ctx, path, in, out)
	default:
		err = fmt.Errorf("child %q: want compile, read, write or look", args[0])
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(f)
}

func childCompiles(ctx context.Context, store string) (f findings, err error) {
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

func childReads(path string) (f findings, err error) {
	start := time.Now()
	b, err := os.ReadFile(path)
	f.Took, f.Peak, f.Bytes = time.Since(start), peak(), int64(len(b))
	return f, err
}

// childWrites commits to a branch of its own from the word go until the end of
// its input.
func childWrites(ctx context.Context, store string, args []string, in io.Reader, out io.Writer) (f findings, err error) {
	writer, err := strconv.ParseUint(args[0], 10, 32)
	if err != nil {
		return f, err
	}
	repo, err := tract.Open(ctx, store, tract.OpenOptions{})
	if err != nil {
		return f, err
	}
	branch := repo.Branch(fmt.Sprint("w", writer))
	err = untilTold(in, out, func(n int) {
		said := block(n, message(writerSeed+writer, n))
		start := time.Now()
		if _, err := branch.Append(ctx, []content.Block{said}, tract.AppendOptions{}); err != nil {
			f.Failed++
		}
		f.Waits = append(f.Waits, time.Since(start))
	})
	return f, errors.Join(err, repo.Close())
}

// childLooks reads the newest commits again and again.
func childLooks(ctx context.Context, store string, in io.Reader, out io.Writer) (f findings, err error) {
	repo, err := tract.Open(ctx, store, tract.OpenOptions{ReadOnly: true})
	if err != nil {
		return f, err
	}
	err = untilTold(in, out, func(int) {
		for _, err := range repo.Log(ctx, "main", tract.LogOptions{Limit: 20}) {
			if err != nil {
				f.Failed++
			}
		}
		f.Reads++
	})
	return f, errors.Join(err, repo.Close())
}

// untilTold says that it is ready, waits for a line, and then works until its
// input ends, but at least once: on a busy machine the input may end before the
// process has had its first moment.
func untilTold(in io.Reader, out io.Writer, work func(n int)) error {
	fmt.Fprintln(out, "ready")
	r := bufio.NewReader(in)
	if _, err := r.ReadString('\n'); err != nil {
		return fmt.Errorf("wait for the start: %w", err)
	}
	ended := make(chan struct{})
	go func() { _, _ = io.Copy(io.Discard, r); close(ended) }() // an error is an end
	for n := 0; ; n++ {
		work(n)
		select {
		case <-ended:
			return nil
		default:
		}
	}
}

// newChild is a child that is ready to be started.
func newChild(ctx context.Context, args ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := exec.CommandContext(ctx, self, append([]string{childWord}, args...)...)
	c.Stderr = os.Stderr
	return c, nil
}

// ask runs a child to its end.
func ask(ctx context.Context, args ...string) (f findings, err error) {
	c, err := newChild(ctx, args...)
	if err != nil {
		return f, err
	}
	out, err := c.Output()
	if err != nil {
		return f, fmt.Errorf("child %q: %w", args, err)
	}
	return f, json.Unmarshal(out, &f)
}
