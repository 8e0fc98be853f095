package postgres

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/tract-vcs/tract/objects"
)

// Limits of what is remembered.
const (
	cacheSize   = 1 << 16 // refs, and positions
	recentSize  = 1 << 12 // objects
	recentBatch = 64      // objects of a batch that are remembered
)

// cache remembers values by their keys. It forgets all when it is full.
type cache[K comparable, V any] struct {
	mu    sync.Mutex
	known map[K]V
	limit int
}

func (c *cache[K, V]) get(key K) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := c.known[key]
	return v, ok
}

func (c *cache[K, V]) put(key K, v V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil || len(c.known) >= c.limit {
		c.known = map[K]V{}
	}
	c.known[key] = v
}

// take is get, and forgets the value.
func (c *cache[K, V]) take(key K) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := c.known[key]
	delete(c.known, key)
	return v, ok
}

func (c *cache[K, V]) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known = nil
}

// caches are what this process knows of the store without asking for it.
type caches struct {
	// refs are as they were seen last. They may have moved since: a write that relies on one
	// compares and swaps.
	refs cache[string, refState]

	// positions are where commits are. A commit never gets another position; one that was swept
	// has none, so that whoever reads at a position verifies the id.
	positions cache[objects.ID, position]

	// ends are where lines end that no ref owns, and that this process has begun or taken over from a ref: it
	// alone may extend them. A write takes the ends that it extends, whatever comes of it.
	ends cache[position, bool]

	// recent are small objects that this process has lately written, or read if they last. A compile
	// of a tip just written reads nothing but where the ref is.
	recent cache[objects.ID, objects.Object]

	purges atomic.Uint64 // as the database had it last
}

func (c *caches) cacheRef(name string, r refState) {
	if have, ok := c.refs.get(name); !ok || have.version <= r.version {
		c.refs.put(name, r)
	}
	c.cachePosition(r.target, r.at)
}

func (c *caches) cachePosition(id objects.ID, at position) {
	if at.line != 0 {
		c.positions.put(id, at)
	}
}

func (c *caches) setPurges(n uint64) {
	if c.purges.Swap(n) != n {
		c.recent.forget()
	}
}

// isCacheable reports whether an object is small and is never purged: a commit, an origin, a manifest.
func isCacheable(o *objects.Object) bool {
	return !o.Kind.Purgeable() && len(o.Data)+int(idSize)*(len(o.Parents)+len(o.Links)) < inlineSize
}

// refState is a row of tract_ref.
type refState struct {
	target   objects.ID // zero: the ref is deleted, or never was
	at       position
	ownsLine bool // the target is the last commit of its line, and only a write that moves the ref may extend it
	version  uint64
	updated  int64
	seq      uint64
	newest   objects.ID // hash of the newest log entry; zero: the ref never was
}

// toRef returns the ref as callers see it.
func (r refState) toRef(name string) objects.Ref {
	return objects.Ref{Name: name, Target: r.target, Version: r.version, Updated: time.UnixMilli(r.updated).UTC()}
}

// sequence hands out numbers of log entries. It draws them from the database, more at a time
// while they are used up quickly, and throws away what is left after a second, so that the
// entries of all processes stay in about the order of their time.
type sequence struct {
	turn  chan struct{} // has an element while somebody uses the rest, and perhaps draws
	left  []int64       // ascending
	drawn time.Time
	draws int // one soon after the other
}

const (
	singleDraws = 8 // draws of one number, so that a short command leaves no gap
	maxDrawBits = 7 // of the most numbers of a draw
	drawTime    = time.Second
)

// drawSeq draws a number for a log entry; it is greater than last, which was drawn before.
func (s *store) drawSeq(ctx context.Context, last uint64) (uint64, error) {
	after := int64(last)
	q := &s.seqs
	select {
	case q.turn <- struct{}{}:
		defer func() { <-q.turn }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	if time.Since(q.drawn) > drawTime {
		q.left, q.draws = nil, 0
	}
	for {
		for len(q.left) > 0 {
			n := q.left[0]
			if q.left = q.left[1:]; n > after {
				return uint64(n), nil
			}
		}
		size := 1 << min(max(0, q.draws-singleDraws), maxDrawBits)
		list, err := collect(ctx, s, pgx.RowTo[int64], `select nextval('tract_seq') from generate_series(1, $1::int)`, size)
		if err == nil && slices.Max(list) <= after { // the sequence was set back
			_, err = collect(ctx, s, pgx.RowTo[int64], advanceSQL, after)
		}
		if err != nil {
			return 0, err
		}
		q.left, q.drawn = list, time.Now()
		q.draws++
	}
}

// advanceSQL lets no number up to one be drawn any more.
const advanceSQL = `select setval('tract_seq', $1) from tract_seq where last_value < $1`
