package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/content"
)

// writerCount is the number of goroutines that write at once.
const writerCount = 64

// turnOfThree measures the three commits of one turn in one transaction against a single
// commit.
func (b *bench) turnOfThree(ctx context.Context) (err error) {
	repo, err := tract.Open(ctx, filepath.Join(b.dir, "generate"), tract.OpenOptions{Create: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, repo.Close()) }()
	n := 0
	saying := func(branch string, kinds ...func(string) content.Block) side {
		return func(ctx context.Context) (time.Duration, error) {
			blocks := make([]content.Block, len(kinds))
			for i, k := range kinds {
				n++
				blocks[i] = k(message(writerSeed, n))
			}
			start := time.Now()
			_, err := repo.Branch(branch).Append(ctx, blocks, tract.AppendOptions{})
			return time.Since(start), err
		}
	}
	user := func(s string) content.Block { return content.User(s) }
	thought := func(s string) content.Block { return content.Reasoning{Text: s, Format: content.FormatParsed} }
	answer := func(s string) content.Block { return content.Assistant(s) }
	took, err := alternate(ctx, b.rounds, b.duration, saying("three", user, thought, answer), saying("one", user))
	if err != nil {
		return err
	}
	b.compare("three commits of one turn", atMost(1.25), times("", took[0]), times("one commit", took[1]))
	return nil
}

// concurrentAppends measures goroutines that commit at once against as many that append to
// one file and share its fdatasync.
func (b *bench) concurrentAppends(ctx context.Context) (err error) {
	messagePool() // before the measurement
	f, err := os.Create(filepath.Join(b.dir, "group.log"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	raw := &groupFile{file: f}
	repo, err := tract.Open(ctx, filepath.Join(b.dir, "writerCount"), tract.OpenOptions{Create: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, repo.Close()) }()
	committing := func(name string, of int) func(context.Context, int, int) error {
		branches := make([]*tract.Branch, of)
		for i := range branches {
			branches[i] = repo.Branch(fmt.Sprint(name, i))
		}
		return func(ctx context.Context, writer, n int) error {
			_, err := branches[writer%of].Append(ctx, []content.Block{block(n, uniqueMessage(n))}, tract.AppendOptions{})
			return err
		}
	}
	ways := []func(context.Context, int, int) error{
		func(_ context.Context, writer, n int) error { return raw.append(jsonLine(n, uniqueMessage(n))) },
		committing("each", writerCount),
		committing("one", 1),
	}
	figures := []figure{{name: "raw append with the same grouping", unit: "/s"}, {unit: "/s"}, {unit: "/s"}}
	// No message is written twice: the store does not write content that it has.
	var next atomic.Int64
	for round := -1; round < b.rounds; round++ { // the first round does not count, as in alternate
		for i, way := range ways {
			rate, err := concurrently(ctx, b.duration/3, func(ctx context.Context, writer int) error {
				return way(ctx, writer, int(next.Add(1)))
			})
			if err != nil {
				return err
			}
			if round >= 0 {
				figures[i].samples = append(figures[i].samples, rate)
			}
		}
	}
	b.compare(fmt.Sprintf("commits of %d goroutines, a branch each", writerCount), atLeast(0.5), figures[1], figures[0])
	b.compare(fmt.Sprintf("commits of %d goroutines, one branch", writerCount), atLeast(0.3), figures[2], figures[0])
	return nil
}

// uniqueMessage returns a message that no other n has. It is made from a pool, since
// generating one takes longer than a raw append.
func uniqueMessage(n int) string { return strconv.Itoa(n) + messagePool()[n%len(messagePool())] }

// messagePool is made at the first call: a child that measures memory must not have it.
var messagePool = sync.OnceValue(func() []string {
	all := make([]string, 4096)
	for n := range all {
		all[n] = message(writerSeed, -n)
	}
	return all
})

// concurrently runs work in writerCount goroutines for a duration and returns the number of
// calls a second.
func concurrently(ctx context.Context, duration time.Duration, work func(ctx context.Context, writer int) error) (rate float64, err error) {
	var wg sync.WaitGroup
	var done atomic.Int64
	var failed sync.Map
	begun := time.Now()
	for w := range writerCount {
		wg.Go(func() {
			for n := 0; n == 0 || time.Since(begun) < duration; n++ {
				if err := work(ctx, w); err != nil {
					failed.Store(w, err)
					return
				}
				done.Add(1)
			}
		})
	}
	wg.Wait()
	elapsed := time.Since(begun)
	failed.Range(func(_, e any) bool { err = e.(error); return false })
	return float64(done.Load()) / elapsed.Seconds(), err
}

// groupFile appends the records of many goroutines to a file. Records that arrive during a
// write are written and synced together by the next one.
type groupFile struct {
	file *os.File
	disk sync.Mutex
	mu   sync.Mutex
	next *group
}

// group is the records of one write.
type group struct {
	records []byte
	done    chan struct{}
	err     error
}

// append returns when the record is durable. The first goroutine of a group writes for all
// of them.
func (g *groupFile) append(record []byte) error {
	g.mu.Lock()
	first := g.next == nil
	if first {
		g.next = &group{done: make(chan struct{})}
	}
	mine := g.next
	mine.records = append(mine.records, record...)
	g.mu.Unlock()
	if !first {
		<-mine.done
		return mine.err
	}
	g.disk.Lock()
	g.mu.Lock()
	g.next = nil // later records wait for the next write
	g.mu.Unlock()
	if _, mine.err = g.file.Write(mine.records); mine.err == nil {
		mine.err = syncData(g.file)
	}
	g.disk.Unlock()
	close(mine.done)
	return mine.err
}
