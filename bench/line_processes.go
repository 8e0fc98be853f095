package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/content"
)

// The processes that share a store.
const (
	writers = 4
	readers = 2
)

// worker is a child that works until it is told to stop.
type worker struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// processes measures several processes that write to one store while others read.
func (b *bench) processes(ctx context.Context) error {
	store := filepath.Join(b.dir, "processes")
	if err := seed(ctx, store); err != nil {
		return err
	}
	var workers []*worker
	for i := range writers + readers {
		args := []string{"write", store, fmt.Sprint(i)}
		if i >= writers {
			args = []string{"look", store}
		}
		w, err := startWorker(ctx, args...)
		if err != nil {
			return errors.Join(err, stopAll(workers))
		}
		workers = append(workers, w)
	}
	for _, w := range workers {
		if _, err := io.WriteString(w.in, "go\n"); err != nil {
			return errors.Join(err, stopAll(workers))
		}
	}
	select {
	case <-time.After(b.lasting):
	case <-ctx.Done():
		return errors.Join(ctx.Err(), stopAll(workers))
	}
	found, err := results(workers)
	if err != nil {
		return err
	}
	b.fairness(found)
	return nil
}

// seed makes the store and what its readers read.
func seed(ctx context.Context, store string) error {
	repo, err := tract.Open(ctx, store, tract.OpenOptions{Create: true})
	if err != nil {
		return err
	}
	for n := range 100 {
		if _, err = repo.Branch("main").Append(ctx, []content.Block{block(n, message(historySeed, n))}, tract.AppendOptions{}); err != nil {
			break
		}
	}
	return errors.Join(err, repo.Close())
}

func startWorker(ctx context.Context, args ...string) (*worker, error) {
	c, err := newChild(ctx, args...)
	if err != nil {
		return nil, err
	}
	w := &worker{cmd: c}
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if w.in, err = c.StdinPipe(); err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	w.out = bufio.NewReader(out)
	if _, err := w.out.ReadString('\n'); err != nil {
		return nil, errors.Join(fmt.Errorf("child %q: %w", args, err), stopAll([]*worker{w}))
	}
	return w, nil
}

// results ends all workers at once and gives what they found.
func results(workers []*worker) (all []findings, err error) {
	for _, w := range workers {
		err = errors.Join(err, w.in.Close())
	}
	for _, w := range workers {
		var f findings
		err = errors.Join(err, json.NewDecoder(w.out).Decode(&f))
		all = append(all, f)
	}
	for _, w := range workers {
		err = errors.Join(err, w.cmd.Wait())
	}
	return all, err
}

func stopAll(workers []*worker) error {
	_, err := results(workers)
	return err
}

// fairness reports what the writers had of the store.
func (b *bench) fairness(found []findings) {
	var waits []time.Duration
	var commits []int
	failed, reads := 0, 0
	for i, f := range found {
		failed, reads = failed+f.Failed, reads+f.Reads
		if i < writers {
			waits, commits = append(waits, f.Waits...), append(commits, len(f.Waits))
		}
	}
	name := fmt.Sprintf("%d processes write, %d read: ", writers, readers)
	all := times("", waits)
	b.tell(name+"failures", atMost(0, 0), one("", "", float64(failed)))
	b.tell(name+"fairness, fewest to most commits", atLeast(0.8, 0.95), one("", "", float64(slices.Min(commits))/float64(slices.Max(commits))))
	b.tell(name+"wait, p99", atMost(20, 10), one("", "ms", all.at(0.99)))
	b.tell(name+"wait, longest", goal{}, one("", "ms", all.at(1)))
	b.tell(name+"commits in all", goal{}, one("", "/s", float64(len(waits))/b.lasting.Seconds()))
	b.tell(name+"logs of 20 in all", goal{}, one("", "/s", float64(reads)/b.lasting.Seconds()))
}
