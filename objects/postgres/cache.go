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
	at      position
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

// positionCache remembers where commits are. A commit never gets another position; one that was
// swept has none, so that whoever reads at a position verifies the id.
type positionCache struct {
	mu    sync.Mutex
	known map[objects.ID]position
}

func (c *positionCache) get(id objects.ID) (position, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, ok := c.known[id]
	return p, ok
}

func (c *positionCache) put(id objects.ID, p position) {
	if p.line == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil || len(c.known) >= cacheSize {
		c.known = map[objects.ID]position{}
	}
	c.known[id] = p
}

// sequence hands out numbers of log entries. It draws them from the database, more at a time
// while they are used up quickly, and throws away what is left after a second, so that the
// entries of all processes stay in about the order of their time.
type sequence struct {
	turn  chan struct{} // has an element while somebody uses the rest, and perhaps draws
	left  []uint64      // ascending
	drawn time.Time
	draws int // one soon after the other
}

const (
	singleDraws  = 8 // draws of one number, so that a short command leaves no gap
	maxBlockBits = 7 // of the most numbers of a draw
	blockTime    = time.Second
)

// next returns a number greater than after, which was drawn before.
func (s *store) next(ctx context.Context, after uint64) (uint64, error) {
	q := &s.seqs
	select {
	case q.turn <- struct{}{}:
		defer func() { <-q.turn }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	if time.Since(q.drawn) > blockTime {
		q.left, q.draws = nil, 0
	}
	for {
		for len(q.left) > 0 {
			n := q.left[0]
			if q.left = q.left[1:]; n > after {
				return n, nil
			}
		}
		if err := s.draw(ctx); err != nil {
			return 0, err
		}
		if last := len(q.left) - 1; last < 0 || q.left[last] <= after { // the sequence was set back
			if err := s.exec(ctx, advanceSQL, int64(after)); err != nil {
				return 0, err
			}
		}
	}
}

// advanceSQL lets no number up to one be drawn any more.
const advanceSQL = `select setval('tract_seq', $1) from tract_seq where last_value < $1`

// draw draws the next numbers.
func (s *store) draw(ctx context.Context) error {
	q := &s.seqs
	block := 1 << min(max(0, q.draws-singleDraws), maxBlockBits)
	err := s.retry(ctx, statementTime, func(ctx context.Context) error {
		q.left = nil
		return s.rowsOnce(ctx, func(row pgx.Rows) error {
			var n int64
			err := row.Scan(&n)
			q.left = append(q.left, uint64(n))
			return err
		}, `select nextval('tract_seq') from generate_series(1, $1::int)`, block)
	})
	q.drawn = time.Now()
	q.draws++
	return err
}
