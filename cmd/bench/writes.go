package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects/bolt"
)

// crowd is how many goroutines write at once.
const crowd = 64

// words is a message as chats have them: about 600 bytes, no two alike.
func words(who string, n int) string {
	text := fmt.Sprintf("%s, message %d. ", who, n)
	for len(text) < 600 {
		text += fmt.Sprintf("Then step %d of %d went as the plan says. ", len(text), n)
	}
	return text
}

// writes measures durable commits, each a transaction of its own.
func (b *bench) writes(ctx context.Context) error {
	b.telling("durable commits, %v each", b.lasting)
	const line = "JSON line, fdatasync"
	took, elapsed, err := b.jsonLines()
	if err != nil {
		return err
	}
	b.report.add(line, median(took), "ms")
	b.report.add(line+", rate", float64(len(took))/elapsed.Seconds(), "/s")
	const bare = "bare bbolt put"
	if took, err = b.barePuts(); err != nil {
		return err
	}
	b.report.against(line, bare, median(took), "ms")

	for _, c := range []struct {
		name              string
		writers, branches int
	}{
		{"commit", 1, 1},
		{fmt.Sprintf("commit, %d goroutines, a branch each", crowd), crowd, crowd},
		{fmt.Sprintf("commit, %d goroutines, one branch", crowd), crowd, 1},
	} {
		repo, err := tract.Open(ctx, filepath.Join(b.dir, fmt.Sprintf("w%d-%d", c.writers, c.branches)), tract.Create())
		if err != nil {
			return err
		}
		took, elapsed, err := b.during(c.writers, func(writer, n int) error {
			branch := repo.Branch(fmt.Sprintf("b%d", writer%c.branches))
			_, err := branch.Append(ctx, []content.Block{content.User(words(fmt.Sprint(writer), n))})
			return err
		})
		if err != nil {
			return err
		}
		if err := repo.Close(); err != nil {
			return err
		}
		if c.writers == 1 {
			one := median(took)
			b.report.against(line, c.name, one, "ms")
			b.report.against(bare, "commit, to a bare put", one, "ms")
		}
		b.report.against(line+", rate", c.name+", rate", float64(len(took))/elapsed.Seconds(), "/s")
	}
	return nil
}

// barePuts does what a program does that has bbolt and no store.
func (b *bench) barePuts() ([]time.Duration, error) {
	put, shut, err := bolt.Yardstick(filepath.Join(b.dir, "bare.db"))
	if err != nil {
		return nil, err
	}
	took, _, err := b.during(1, func(writer, n int) error { return put(record("user", words(fmt.Sprint(writer), n))) })
	return took, errors.Join(err, shut())
}

// during calls f from so many goroutines as long as a measurement lasts, and
// gives how long each call took, and all of them.
func (b *bench) during(writers int, f func(writer, n int) error) (took []time.Duration, elapsed time.Duration, err error) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	begun := time.Now()
	for w := range writers {
		wg.Go(func() {
			var own []time.Duration
			var failed error
			for n := 0; failed == nil && (n == 0 || time.Since(begun) < b.lasting); n++ {
				start := time.Now()
				failed = f(w, n)
				own = append(own, time.Since(start))
			}
			mu.Lock()
			defer mu.Unlock()
			took = append(took, own...)
			if err == nil {
				err = failed
			}
		})
	}
	wg.Wait()
	return took, time.Since(begun), err
}

// jsonLines appends records to a file as a program without a store would, each
// durable before the next.
func (b *bench) jsonLines() (took []time.Duration, elapsed time.Duration, err error) {
	f, err := os.Create(filepath.Join(b.dir, "log.jsonl"))
	if err != nil {
		return nil, 0, err
	}
	took, elapsed, err = b.during(1, func(writer, n int) error {
		if _, err := f.Write(record("user", words(fmt.Sprint(writer), n))); err != nil {
			return err
		}
		return syncData(f)
	})
	return took, elapsed, errors.Join(err, f.Close())
}

// record is a message as one line of JSON.
func record(role, text string) []byte {
	line, _ := json.Marshal(map[string]string{"role": role, "content": text}) // strings always can
	return append(line, '\n')
}
