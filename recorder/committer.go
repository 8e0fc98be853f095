package recorder

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/internal/spool"
)

// recordedBy is the program that brings what is recorded, in origins.
const recordedBy = "record"

// mostAtOnce is how many exchanges of different sessions are committed at once: the store
// writes what is committed at the same time together.
const mostAtOnce = 16

// committer commits exchanges: those of one session in the order in which they ended, those
// of different sessions at the same time.
type committer struct {
	o     Options
	slots chan struct{}

	opening sync.Mutex
	repo    *tract.Repo // nil: it could not be opened yet
	index   *index      // of the repo

	prepared recent[*prepared]

	recorded, failed, dropped atomic.Int64

	stopped chan struct{}
	once    sync.Once

	mu    sync.Mutex
	lanes map[string][]*exchange // that wait, by session; a lane that is there has a goroutine
	open  map[*exchange]bool     // exchanges that are not committed
	added int64                  // exchanges so far
	held  int64                  // bytes of bodies in memory that wait
}

func newCommitter(repo *tract.Repo, o Options) *committer {
	x := newIndex(repo, o.Prefix, !o.Unmasked)
	x.cleared = spool.Cleared(o.Spool)
	return &committer{o: o, repo: repo, index: x, slots: make(chan struct{}, mostAtOnce), lanes: map[string][]*exchange{}, stopped: make(chan struct{}), open: map[*exchange]bool{}}
}

// ready opens the repo when it is not open yet.
func (c *committer) ready(ctx context.Context) error {
	c.opening.Lock()
	defer c.opening.Unlock()
	if c.repo != nil {
		return nil
	}
	if c.o.Open == nil {
		return errors.New("there is no repo to record to")
	}
	repo, err := c.o.Open(ctx)
	if err != nil {
		return &storeError{err}
	}
	c.repo, c.index.repo = repo, repo
	return nil
}

// errDropped says that an exchange was given up: it could not be committed, and not be kept for
// later.
var errDropped = errors.New("the store failed, and memory or spool were full")

// add adds an exchange that has ended. It does not wait. More bytes than are allowed wait only
// while the spool writes them.
func (c *committer) add(x *exchange) {
	key := x.lane()
	c.mu.Lock()
	defer c.mu.Unlock()
	limit := c.o.Memory
	if x.file != nil {
		limit *= 2
	}
	if x.size() > limit-c.held && len(c.open) > 0 {
		c.dropped.Add(1)
		go c.report(x, errDropped)
		return
	}
	c.held += x.size()
	list, runs := c.lanes[key]
	c.lanes[key] = append(list, x)
	c.added++
	x.number, c.open[x] = c.added, true
	if !runs {
		go c.run(key)
	}
}

// waiting returns the number of exchanges that are not committed.
func (c *committer) waiting() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return int64(len(c.open))
}

// run commits the exchanges of a lane until there are no more.
func (c *committer) run(key string) {
	for {
		c.mu.Lock()
		list := c.lanes[key]
		if len(list) == 0 {
			delete(c.lanes, key)
			c.mu.Unlock()
			return
		}
		x := list[0]
		c.lanes[key] = list[1:]
		c.mu.Unlock()

		size := c.load(x)
		if !c.commitAtLast(x) {
			return // the transport is closed
		}
		c.mu.Lock()
		delete(c.open, x)
		c.held -= size
		c.mu.Unlock()
	}
}

// How long a store that fails is given, and how often it is tried when no spool keeps the
// exchange.
const (
	firstPause = 50 * time.Millisecond
	mostPause  = 5 * time.Second
	mostTries  = 3
	mostWait   = time.Second // for exchanges of other sessions
)

// commitAtLast commits an exchange, and tries again while the store fails: those that follow
// it in its session come after it. It reports false when the transport was closed first.
func (c *committer) commitAtLast(x *exchange) bool {
	pause := firstPause
	for try := 1; ; try++ {
		c.slots <- struct{}{}
		err := c.commit(x)
		<-c.slots
		if err == nil {
			return true
		}
		if errors.Is(err, errEarly) {
			c.waitForEarlier(x)
			try--
			continue
		}
		last := !isTransient(err) || x.file == nil && try == mostTries
		if last || try == 1 && x.file != nil {
			c.report(x, err)
		}
		if last {
			c.failed.Add(1)
			x.file.Finish("failed", x.keptFrames(c.o.Unmasked, false))
			return true
		}
		select {
		case <-time.After(pause):
			pause = min(2*pause, mostPause)
		case <-c.stopped:
			return false
		}
	}
}

// errEarly says that an exchange may continue a conversation of which exchanges of another
// lane wait to be committed.
var errEarly = errors.New("earlier exchanges are not committed yet")

// waitForEarlier waits until the exchanges that ended before one are committed, a moment at
// most: a store may refuse them for long.
func (c *committer) waitForEarlier(x *exchange) {
	x.waited = true
	for end := time.Now().Add(mostWait); time.Now().Before(end) && c.hasEarlier(x); {
		time.Sleep(time.Millisecond)
	}
}

// hasEarlier reports whether exchanges wait that ended before one.
func (c *committer) hasEarlier(x *exchange) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for other := range c.open {
		if other.number < x.number {
			return true
		}
	}
	return false
}

// isTransient reports whether an exchange may be committed later: the store failed.
func isTransient(err error) bool { return errors.As(err, new(*storeError)) }

// storeError is an error of the store.
type storeError struct{ error }

// Unwrap returns the error of the store.
func (e *storeError) Unwrap() error { return e.error }

// load brings the bodies of an exchange back into memory, and returns their size as it is
// counted.
func (c *committer) load(x *exchange) int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.released {
		if frames, err := x.file.Read(); err == nil {
			x.read(frames)
		}
		return 0
	}
	return int64(len(x.sent) + len(x.came))
}

// written is called when the spool has all of an exchange: its bodies need not be in memory
// when too many are.
func (c *committer) written(x *exchange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	over := c.held > c.o.Memory && slices.ContainsFunc(slices.Collect(maps.Values(c.lanes)), func(list []*exchange) bool { return slices.Contains(list, x) })
	if !over {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	c.held -= int64(len(x.sent) + len(x.came))
	x.sent, x.came, x.released = nil, nil, true
}

// stop ends the tries to commit.
func (c *committer) stop() { c.once.Do(func() { close(c.stopped) }) }

// giveUp counts and reports what was not committed and is not in the spool either.
func (c *committer) giveUp() {
	c.mu.Lock()
	var lost []*exchange
	for x := range c.open {
		if x.file.Lost() {
			delete(c.open, x)
			lost = append(lost, x)
		}
	}
	c.mu.Unlock()
	for _, x := range lost {
		c.dropped.Add(1)
		c.report(x, errDropped)
	}
}

// report tells of an exchange that was not recorded.
func (c *committer) report(x *exchange, err error) {
	if c.o.OnError != nil {
		c.o.OnError(&Error{Path: x.Path, Sent: x.sent, Came: x.came, Err: err})
	}
}

// size is the bytes of the bodies in memory.
func (x *exchange) size() int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	return int64(len(x.sent) + len(x.came))
}

// lane returns the key of the exchanges that are committed one after the other: those of a
// session that the headers name, and all others together.
func (x *exchange) lane() string {
	if x.On != "" {
		return "branch " + x.On
	}
	return "session " + claimOf(x.Header, nil).session
}
