package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects/bolt"
)

// A bare put and a line with fdatasync are the least that a commit can be held
// against: they know of no ids, parents, refs or other processes.
var (
	goalBare  = atMost(1.2, 0.7)
	goalLines = atMost(2.0, 0.75)
)

// appender is a way to append a message durably, and how to end it.
type appender struct {
	name   string
	append side
	shut   func() error
}

// appends measures one durable commit in a store that was empty.
func (b *bench) appends(ctx context.Context) error {
	return b.appending(ctx, filepath.Join(b.dir, "append"), "empty store")
}

// appendsLarge measures the same in the largest store.
func (b *bench) appendsLarge(ctx context.Context) error {
	size := b.sizes[len(b.sizes)-1]
	h, err := b.history(ctx, size)
	if err != nil {
		return err
	}
	c, err := h.copy("append")
	if err != nil {
		return err
	}
	err = b.appending(ctx, c.store(), "store of "+count(size))
	return errors.Join(err, os.RemoveAll(c.place))
}

func (b *bench) appending(ctx context.Context, store, what string) (err error) {
	dir, err := os.MkdirTemp(b.dir, "append-")
	if err != nil {
		return err
	}
	ways := []appender{}
	defer func() {
		for _, w := range ways {
			err = errors.Join(err, w.shut())
		}
	}()
	for _, open := range []func() (appender, error){
		func() (appender, error) { return commits(ctx, store) },
		func() (appender, error) { return barePuts(filepath.Join(dir, "bare.db")) },
		func() (appender, error) { return jsonLines(filepath.Join(dir, "log.jsonl")) },
		func() (appender, error) { return b.rows(filepath.Join(dir, "rows.db")) },
	} {
		w, err := open()
		if err != nil {
			return err
		}
		if w.append != nil {
			ways = append(ways, w)
		}
	}
	sides := make([]side, len(ways))
	for i, w := range ways {
		sides[i] = w.append
	}
	took, err := inTurns(ctx, b.rounds, b.lasting, sides...)
	if err != nil {
		return err
	}
	name := "durable append, " + what
	goals := []goal{{}, goalBare, goalLines, {}}
	for i, w := range ways[1:] {
		b.hold(name+", to "+w.name, goals[i+1], times(name, took[0]), times(w.name, took[i+1]))
	}
	b.tell(name+", p99", goal{}, one("", "ms", times("", took[0]).at(0.99)))
	return b.plumbing(ctx, name, times(name, took[0]))
}

// adding is a side that adds one message after the other. To make one up does not
// count.
func adding(add func(ctx context.Context, n int, text string) error) side {
	n := 0
	return func(ctx context.Context) (time.Duration, error) {
		n++
		text := message(writerSeed, n)
		start := time.Now()
		err := add(ctx, n, text)
		return time.Since(start), err
	}
}

// commits is what is measured: a message in a transaction of its own.
func commits(ctx context.Context, store string) (appender, error) {
	repo, err := tract.Open(ctx, store, tract.OpenOptions{Create: true})
	if err != nil {
		return appender{}, err
	}
	return appender{"commit", adding(func(ctx context.Context, n int, text string) error {
		_, err := repo.Branch("main").Append(ctx, []content.Block{block(n, text)}, tract.AppendOptions{})
		return err
	}), repo.Close}, nil
}

// barePuts does what a program does that has bbolt and no store.
func barePuts(path string) (appender, error) {
	put, shut, err := bolt.Yardstick(path)
	if err != nil {
		return appender{}, err
	}
	return appender{"a bare bbolt put", adding(func(_ context.Context, n int, text string) error {
		return put(record(n, text))
	}), shut}, nil
}

// jsonLines appends records to a file as a program without a store would.
func jsonLines(path string) (appender, error) {
	f, err := os.Create(path)
	if err != nil {
		return appender{}, err
	}
	return appender{"a JSON line, fdatasync", adding(func(_ context.Context, n int, text string) error {
		if _, err := f.Write(record(n, text)); err != nil {
			return err
		}
		return syncData(f)
	}), f.Close}, nil
}

// rows inserts into SQLite; the zero appender where there is none.
func (b *bench) rows(path string) (appender, error) {
	if b.sqlite == nil {
		return appender{}, nil
	}
	if _, err := b.sqlite.do(sqliteRequest{Do: "open", Path: path}); err != nil {
		return appender{}, err
	}
	n := 0
	return appender{"a SQLite insert, WAL, FULL", func(context.Context) (time.Duration, error) {
		n++
		a, err := b.sqlite.do(sqliteRequest{Do: "insert", Role: role(n), Text: message(writerSeed, n)})
		return a.Took, err
	}, func() error { return nil }}, nil
}

// gitSize is how many commits the repository has to which git's plumbing adds.
const gitSize = 10_000

// plumbing adds to git what was added to the store. A commit takes five processes
// there, so that a few of them must do.
func (b *bench) plumbing(ctx context.Context, name string, ours figure) error {
	if !b.has("git", name+", to git") {
		return nil
	}
	g, err := b.git(ctx, b.upTo(gitSize))
	if err != nil {
		return err
	}
	took, err := inTurns(ctx, b.rounds, 0, adding(g.commit))
	if err != nil {
		return err
	}
	what := fmt.Sprintf("git commit-tree, %s commits", count(b.upTo(gitSize)))
	b.hold(name+", to git plumbing", goal{}, ours, times(what, took[0]))
	return nil
}

// upTo is a size that a yardstick can bear, or the largest when all are smaller.
func (b *bench) upTo(size int) int { return min(size, b.sizes[len(b.sizes)-1]) }
