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

// crowd is how many goroutines write at once.
const crowd = 64

// generates measures the commits of one answer, in one transaction, against one
// commit.
func (b *bench) generates(ctx context.Context) (err error) {
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
	took, err := inTurns(ctx, b.rounds, b.lasting, saying("three", user, thought, answer), saying("one", user))
	if err != nil {
		return err
	}
	b.hold("three commits of one turn", atMost(1.25, 1.1), times("", took[0]), times("one commit", took[1]))
	return nil
}

// crowds measures many goroutines that commit at once, against as many that append
// to one file and share its fdatasync.
func (b *bench) crowds(ctx context.Context) (err error) {
	ready() // before the clock runs
	f, err := os.Create(filepath.Join(b.dir, "group.log"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	raw := &groupFile{file: f}
	repo, err := tract.Open(ctx, filepath.Join(b.dir, "crowd"), tract.OpenOptions{Create: true})
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
			_, err := branches[writer%of].Append(ctx, []content.Block{block(n, fresh(n))}, tract.AppendOptions{})
			return err
		}
	}
	ways := []func(context.Context, int, int) error{
		func(_ context.Context, writer, n int) error { return raw.append(record(n, fresh(n))) },
		committing("each", crowd),
		committing("one", 1),
	}
	figures := []figure{{name: "raw append with the same grouping", unit: "/s"}, {unit: "/s"}, {unit: "/s"}}
	// No message is written twice: what is there already is compared, not written.
	var next atomic.Int64
	for round := -1; round < b.rounds; round++ { // as inTurns does
		for i, way := range ways {
			rate, err := atOnce(ctx, b.lasting/3, func(ctx context.Context, writer int) error {
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
	b.hold(fmt.Sprintf("commits of %d goroutines, a branch each", crowd), atLeast(0.5, 1.3), figures[1], figures[0])
	b.hold(fmt.Sprintf("commits of %d goroutines, one branch", crowd), atLeast(0.3, 0.6), figures[2], figures[0])
	return nil
}

// fresh is a message that no other n has. To make one up takes longer than a raw
// append does, and would be all that is measured.
func fresh(n int) string { return strconv.Itoa(n) + ready()[n%len(ready())] }

// ready is made when it is first asked for: a child that measures something else must
// not have it in its memory.
var ready = sync.OnceValue(func() []string {
	all := make([]string, 4096)
	for n := range all {
		all[n] = message(writerSeed, -n)
	}
	return all
})

// atOnce lets a crowd work for a while and gives how many pieces of work were done
// a second.
func atOnce(ctx context.Context, lasting time.Duration, work func(ctx context.Context, writer int) error) (rate float64, err error) {
	var wg sync.WaitGroup
	var done atomic.Int64
	var failed sync.Map
	begun := time.Now()
	for w := range crowd {
		wg.Go(func() {
			for n := 0; n == 0 || time.Since(begun) < lasting; n++ {
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

// groupFile appends records of many goroutines to a file: what comes while the
// disk is busy is written and synced together.
type groupFile struct {
	file *os.File
	disk sync.Mutex
	mu   sync.Mutex
	next *group
}

// group is the records that will be written together.
type group struct {
	records []byte
	done    chan struct{}
	err     error
}

// append returns when the record is durable. The first of a group waits for the
// disk and writes for all of it.
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
	g.next = nil // who comes now waits for the next turn of the disk
	g.mu.Unlock()
	if _, mine.err = g.file.Write(mine.records); mine.err == nil {
		mine.err = syncData(g.file)
	}
	g.disk.Unlock()
	close(mine.done)
	return mine.err
}
