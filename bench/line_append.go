package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/content"
	"go.etcd.io/bbolt"
)

// appender appends messages durably.
type appender struct {
	name   string
	append side
	close  func() error
}

// appends measures durable commits to a new store.
func (b *bench) appends(ctx context.Context) error {
	return b.appending(ctx, filepath.Join(b.dir, "append"), "empty store")
}

// appendsLarge measures durable commits to the largest store.
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
	return errors.Join(err, os.RemoveAll(c.dir))
}

func (b *bench) appending(ctx context.Context, store, what string) (err error) {
	dir, err := os.MkdirTemp(b.dir, "append-")
	if err != nil {
		return err
	}
	ways := []appender{}
	defer func() {
		for _, w := range ways {
			err = errors.Join(err, w.close())
		}
	}()
	for _, open := range []func() (appender, error){
		func() (appender, error) { return commits(ctx, store) },
		func() (appender, error) { return bboltPuts(filepath.Join(dir, "bare.db")) },
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
	took, err := alternate(ctx, b.rounds, b.duration, sides...)
	if err != nil {
		return err
	}
	name := "durable append, " + what
	limits := []limit{noLimit, atMost(1.2), atMost(1.5), atMost(1)} // bbolt, JSON lines, SQLite
	for i, w := range ways[1:] {
		b.compare(name+", to "+w.name, limits[i+1], times(name, took[0]), times(w.name, took[i+1]))
	}
	b.record(name+", p99", noLimit, one("", "ms", times("", took[0]).at(0.99)))
	return b.plumbing(ctx, name, times(name, took[0]))
}

// appendNext returns a side that appends one message after the other. The time to generate
// a message does not count.
func appendNext(add func(ctx context.Context, n int, text string) error) side {
	n := 0
	return func(ctx context.Context) (time.Duration, error) {
		n++
		text := message(writerSeed, n)
		start := time.Now()
		err := add(ctx, n, text)
		return time.Since(start), err
	}
}

// commits appends each message to a tract store as one commit.
func commits(ctx context.Context, store string) (appender, error) {
	repo, err := tract.Open(ctx, store, tract.OpenOptions{Create: true})
	if err != nil {
		return appender{}, err
	}
	return appender{"commit", appendNext(func(ctx context.Context, n int, text string) error {
		_, err := repo.Branch("main").Append(ctx, []content.Block{block(n, text)}, tract.AppendOptions{})
		return err
	}), repo.Close}, nil
}

// bboltPuts puts each message into a bucket of a bbolt file in a transaction of its own.
func bboltPuts(path string) (appender, error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{FreelistType: bbolt.FreelistArrayType, NoStatistics: true})
	if err != nil {
		return appender{}, err
	}
	bucket := []byte("messages")
	return appender{"a bare bbolt put", appendNext(func(_ context.Context, n int, text string) error {
		return db.Update(func(tx *bbolt.Tx) error {
			b, err := tx.CreateBucketIfNotExists(bucket)
			if err != nil {
				return err
			}
			return b.Put(binary.BigEndian.AppendUint64(nil, uint64(n)), jsonLine(n, text))
		})
	}), db.Close}, nil
}

// jsonLines appends each message to a file as a JSON line and syncs the file.
func jsonLines(path string) (appender, error) {
	f, err := os.Create(path)
	if err != nil {
		return appender{}, err
	}
	return appender{"a JSON line, fdatasync", appendNext(func(_ context.Context, n int, text string) error {
		if _, err := f.Write(jsonLine(n, text)); err != nil {
			return err
		}
		return syncData(f)
	}), f.Close}, nil
}

// rows inserts each message into SQLite. It returns the zero appender where SQLite was not
// built.
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

// gitSize is the number of commits in the repository that git's plumbing appends to.
const gitSize = 10_000

// plumbing compares with commits by git's plumbing commands. Each takes five processes, so
// that only a few are measured.
func (b *bench) plumbing(ctx context.Context, name string, ours figure) error {
	if !b.hasTool("git", name+", to git") {
		return nil
	}
	g, err := b.git(ctx, b.upTo(gitSize))
	if err != nil {
		return err
	}
	took, err := alternate(ctx, b.rounds, 0, appendNext(g.commit))
	if err != nil {
		return err
	}
	what := fmt.Sprintf("git commit-tree, %s commits", count(b.upTo(gitSize)))
	b.compare(name+", to git plumbing", noLimit, ours, times(what, took[0]))
	return nil
}

// upTo returns the smaller of a size and the largest measured size.
func (b *bench) upTo(size int) int { return min(size, b.sizes[len(b.sizes)-1]) }
