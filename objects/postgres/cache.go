package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/tract-vcs/tract/objects"
)

// cacheSize is how many refs and how many places are remembered.
const cacheSize = 1 << 16

// refState is a row of tract_ref.
type refState struct {
	target  objects.ID // zero: the ref is deleted, or never was
	at      place
	version uint64
	updated int64
	seq     uint64
	newest  objects.ID // hash of the newest log entry; zero: the ref never was
}

// ref returns the ref as callers see it.
func (r refState) ref(name string) objects.Ref {
	return objects.Ref{Name: name, Target: r.target, Version: r.version, Updated: time.UnixMilli(r.updated).UTC()}
}

// refCache remembers refs as they were seen last. They may have moved since: a write that
// relies on one compares and swaps.
type refCache struct {
	mu    sync.Mutex
	known map[string]refState
}

func (c *refCache) get(name string) (refState, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, ok := c.known[name]
	return r, ok
}

func (c *refCache) put(name string, r refState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil || len(c.known) >= cacheSize {
		c.known = map[string]refState{}
	}
	if have, ok := c.known[name]; !ok || have.version <= r.version {
		c.known[name] = r
	}
}

// placeCache remembers where commits are. A commit never gets another place; one that was
// swept has none, so that whoever reads at a place verifies the id.
type placeCache struct {
	mu    sync.Mutex
	known map[objects.ID]place
}

func (c *placeCache) get(id objects.ID) (place, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, ok := c.known[id]
	return p, ok
}

func (c *placeCache) put(id objects.ID, p place) {
	if p.line == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil || len(c.known) >= cacheSize {
		c.known = map[objects.ID]place{}
	}
	c.known[id] = p
}

// sequence hands out numbers of log entries. It draws them from the database, more at a time
// while they are used up quickly, and throws away what is left after a second, so that the
// entries of all processes stay in about the order of their time.
type sequence struct {
	mu    sync.Mutex
	left  []uint64 // ascending
	drawn time.Time
	draws int // one soon after the other
}

const (
	singleDraws = 8 // draws of one number, so that a short command leaves no gap
	maxBlock    = 128
	blockTime   = time.Second
)

// next returns a number greater than after.
func (s *store) next(ctx context.Context, after uint64) (uint64, error) {
	q := &s.seqs
	for {
		q.mu.Lock()
		fresh := time.Since(q.drawn) < blockTime
		for fresh && len(q.left) > 0 {
			n := q.left[0]
			q.left = q.left[1:]
			if n > after {
				q.mu.Unlock()
				return n, nil
			}
		}
		if !fresh {
			q.draws = 0
		}
		block := min(1<<max(0, q.draws-singleDraws), maxBlock)
		q.draws++
		q.mu.Unlock()
		var drawn []uint64
		err := s.retry(ctx, statementTime, func(ctx context.Context) error {
			drawn = drawn[:0]
			return s.rowsOnce(ctx, func(row pgx.Rows) error {
				var n int64
				err := row.Scan(&n)
				drawn = append(drawn, uint64(n))
				return err
			}, `select nextval('tract_seq') from generate_series(1, $1::int)`, block)
		})
		if err != nil {
			return 0, err
		}
		q.mu.Lock()
		q.left, q.drawn = drawn, time.Now()
		q.mu.Unlock()
	}
}
