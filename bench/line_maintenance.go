package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/content"
)

// maintenanceWriters is the number of goroutines that append while a store is maintained.
const maintenanceWriters = 16

// memorySizes are the histories whose maintenance has limits on memory: the peak at the
// second may be at most 1.3 times that at the first.
var memorySizes = [2]int{million, 3 * million}

// maintenance measures gc, fsck, backup and purge of whole stores while others append: the
// longest wait of an append, failed appends, and the peak memory of the command.
func (b *bench) maintenance(ctx context.Context) error {
	if !b.hasProgram("appends during maintenance") {
		return nil
	}
	peaks := map[string]float64{}
	for _, size := range b.sizes[max(0, len(b.sizes)-2):] {
		if size < million && size != b.sizes[len(b.sizes)-1] {
			continue
		}
		h, err := b.history(ctx, size)
		if err != nil {
			return err
		}
		for _, task := range []string{"gc", "fsck", "backup", "purge"} {
			peak, err := b.maintain(ctx, h, task)
			if err != nil {
				return fmt.Errorf("%s of %s commits: %w", task, count(size), err)
			}
			if smaller, measured := peaks[task]; measured && size == memorySizes[1] {
				b.compare(h.named("peak memory of "+task), atMost(1.3), one("", "MB", peak), one("the same of "+count(memorySizes[0]), "MB", smaller))
			}
			peaks[task] = peak
		}
	}
	return nil
}

// maintain runs one command on a copy of a store to which goroutines append.
func (b *bench) maintain(ctx context.Context, h *history, task string) (peak float64, err error) {
	c, err := h.copy(task)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(c.dir)) }()
	args := map[string][]string{
		"gc":     {"gc", "--prune", "--grace", "0"},
		"fsck":   {"fsck"},
		"backup": {"backup", c.dir + "-copy"},
		"purge":  {"purge", "--yes", fmt.Sprintf("main~%d", h.size/2)},
	}[task]
	defer func() { err = errors.Join(err, os.RemoveAll(c.dir+"-copy")) }()

	var usage commandUsage
	var failed error
	waits, err := appendMeanwhile(ctx, c, func(ctx context.Context) { usage, failed = b.runMeasured(ctx, c.dir, args...) })
	if err := errors.Join(failed, err); err != nil {
		return 0, err
	}
	limited := h.size >= million
	longest := times("", waits).at(1)
	b.record(h.named("longest append during "+task), atMost(1000).only(limited), one("", "ms", longest))
	b.record(h.named(task+" beside appends"), noLimit, one("", "ms", float64(usage.took.Milliseconds())))
	if usage.peak > 0 {
		b.record(h.named("peak memory of "+task), atMost(250).only(h.size == million && (task == "gc" || task == "fsck")), one("", "MB", usage.peak))
	}
	return usage.peak, nil
}

// appendMeanwhile appends from several goroutines, each to a branch of its own, while work
// runs, and returns the time of each append. A failed append is an error.
func appendMeanwhile(ctx context.Context, h *history, work func(context.Context)) (waits []time.Duration, err error) {
	repo, err := tract.Open(ctx, h.store(), tract.OpenOptions{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, repo.Close()) }()
	done := make(chan struct{})
	var mu sync.Mutex
	var failed error
	var wg sync.WaitGroup
	for w := range maintenanceWriters {
		wg.Go(func() {
			branch := repo.Branch(fmt.Sprint("writer", w))
			for n := 0; ; n++ {
				start := time.Now()
				_, err := branch.Append(ctx, []content.Block{block(n, message(writerSeed+uint64(w), n))}, tract.AppendOptions{})
				mu.Lock()
				waits = append(waits, time.Since(start))
				failed = errors.Join(failed, err)
				mu.Unlock()
				select {
				case <-done:
					return
				case <-time.After(5 * time.Millisecond): // appends of people and agents, not a full load
				}
			}
		})
	}
	work(ctx)
	close(done)
	wg.Wait()
	return waits, failed
}

// commandUsage is what a command needed.
type commandUsage struct {
	took     time.Duration
	peak     float64 // MB of memory; 0: unknown
	diskPeak int64   // most bytes of the store's folder while the command ran
}

// runMeasured runs tract on a store and watches its memory and the size of the store.
func (b *bench) runMeasured(ctx context.Context, dir string, args ...string) (u commandUsage, err error) {
	c := b.command(ctx, dir, args...)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	start := time.Now()
	if err := c.Start(); err != nil {
		return u, err
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	for {
		select {
		case err := <-ended:
			u.took = time.Since(start)
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				return u, fmt.Errorf("tract %s: %w: %.300s", strings.Join(args, " "), err, out.Bytes())
			}
			return u, err
		case <-time.After(10 * time.Millisecond):
			u.peak = max(u.peak, peakOf(c.Process.Pid))
			if size, err := folderSize(filepath.Join(dir, ".tract")); err == nil { // a file may vanish meanwhile
				u.diskPeak = max(u.diskPeak, size)
			}
		}
	}
}

// purges measures the removal of one message from a history of 100k: the time, and the disk
// that it needs for a while.
func (b *bench) purges(ctx context.Context) error {
	if !b.hasProgram("purge") {
		return nil
	}
	size := b.upTo(hundredThousand)
	base, err := b.history(ctx, size)
	if err != nil {
		return err
	}
	packed, err := base.afterGC(ctx)
	if err != nil {
		return err
	}
	var took []time.Duration
	var extra int64
	for range max(3, b.rounds/2) {
		h, err := packed.copy("purged")
		if err != nil {
			return err
		}
		before, err := folderSize(h.store())
		if err != nil {
			return err
		}
		u, err := b.runMeasured(ctx, h.dir, "purge", "--yes", fmt.Sprintf("main~%d", size/2))
		if err := errors.Join(err, os.RemoveAll(h.dir)); err != nil {
			return err
		}
		took = append(took, u.took)
		extra = max(extra, u.diskPeak-before)
	}
	limited := size == hundredThousand
	b.record(named("purge of one message", size), atMost(1000).only(limited), times("", took))
	b.record(named("purge of one message", size)+", disk needed meanwhile", atMost(16).only(limited), megabytes("", extra))
	return nil
}
