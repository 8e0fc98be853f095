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

// The number of processes that share a store.
const (
	writers = 4
	readers = 2
)

// worker is a child that works until its input ends.
type worker struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// processes measures processes that write to one store while others read it.
func (b *bench) processes(ctx context.Context) error {
	store := filepath.Join(b.dir, "processes")
	if err := seed(ctx, store); err != nil {
		return err
	}
	var workers []*worker
	for i := range writers + readers {
		args := []string{"write", store, fmt.Sprint(i)}
		if i >= writers {
			args = []string{"read-log", store}
		}
		w, err := startWorker(ctx, args...)
		if err != nil {
			return errors.Join(err, stopWorkers(workers))
		}
		workers = append(workers, w)
	}
	for _, w := range workers {
		if _, err := io.WriteString(w.in, "go\n"); err != nil {
			return errors.Join(err, stopWorkers(workers))
		}
	}
	select {
	case <-time.After(b.duration):
	case <-ctx.Done():
		return errors.Join(ctx.Err(), stopWorkers(workers))
	}
	found, err := results(workers)
	if err != nil {
		return err
	}
	b.fairness(found)
	return nil
}

// seed creates the store with 100 commits for the readers.
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
	c, err := childCommand(ctx, args...)
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
		return nil, errors.Join(fmt.Errorf("child %q: %w", args, err), stopWorkers([]*worker{w}))
	}
	return w, nil
}

// results stops all workers and returns their results.
func results(workers []*worker) (all []childResult, err error) {
	for _, w := range workers {
		err = errors.Join(err, w.in.Close())
	}
	for _, w := range workers {
		var f childResult
		err = errors.Join(err, json.NewDecoder(w.out).Decode(&f))
		all = append(all, f)
	}
	for _, w := range workers {
		err = errors.Join(err, w.cmd.Wait())
	}
	return all, err
}

func stopWorkers(workers []*worker) error {
	_, err := results(workers)
	return err
}

// fairness records how the writers shared the store.
func (b *bench) fairness(found []childResult) {
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
	b.record(name+"failures", atMost(0), one("", "", float64(failed)))
	b.record(name+"fairness, fewest to most commits", atLeast(0.8), one("", "", float64(slices.Min(commits))/float64(slices.Max(commits))))
	b.record(name+"wait, p99", atMost(20), one("", "ms", all.at(0.99)))
	b.record(name+"wait, longest", noLimit, one("", "ms", all.at(1)))
	b.record(name+"commits in all", noLimit, one("", "/s", float64(len(waits))/b.duration.Seconds()))
	b.record(name+"logs of 20 in all", noLimit, one("", "/s", float64(reads)/b.duration.Seconds()))
}
