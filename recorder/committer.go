package recorder

import (
	"context"
	"errors"
	"io/fs"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/internal/lru"
	"github.com/tract-vcs/tract/llm"
)

// recordedBy is the importer name in the origins of recorded commits.
const recordedBy = "record"

// maxHold is the longest time for which traffic delays the commit of an exchange that has ended.
const maxHold = 150 * time.Millisecond

// maxConcurrent is the largest number of exchanges, of different sessions, that are committed
// concurrently. The store writes concurrent commits together (group commit).
const maxConcurrent = 16

// committer commits exchanges in the background.
//
// Each exchange belongs to the queue of its session, or of the branch that On names. Each queue has
// one goroutine, so the exchanges of a session are committed in the order in which they
// ended, and those of different sessions concurrently. While the store fails, the first
// exchange of a queue is retried and the others wait. Waiting exchanges are held in memory up
// to Options.Memory; beyond that, their bodies are only in the spool, and are read from it
// before the commit. An exchange that fits in neither is dropped and reported.
type committer struct {
	o          Options
	slots      chan struct{} // for exchanges that are being committed
	processors chan struct{} // for those of them that are being decoded and compared
	traffic    traffic

	opening sync.Mutex
	index   *index // its repo is nil until it is opened

	prepared *lru.Cache[string, *preparedMessages] // by cacheKey
	bodies   *lru.Cache[string, []byte]            // by cacheKey, bodies without secrets

	recorded, failed, dropped atomic.Int64

	ctx     context.Context //nolint:containedctx // ends with stop
	cancel  func()
	running sync.WaitGroup // the goroutines of the queues

	mu            sync.Mutex
	queues        map[string][]*exchange // exchanges that are not committed yet; each queue in the map has a goroutine
	exchangeCount int64                  // exchanges added so far
	heldBytes     int64                  // bytes of the bodies in memory of waiting exchanges
}

func newCommitter(repo *tract.Repo, o Options) *committer {
	c := &committer{
		o: o, index: newIndex(repo, o.Prefix, !o.Unmasked), slots: make(chan struct{}, maxConcurrent), processors: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)),
		prepared: lru.New[string, *preparedMessages](maxCachedBodies), bodies: lru.New[string, []byte](maxCachedBodies), queues: map[string][]*exchange{},
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// openRepo calls Options.Open if the repo is not open yet.
func (c *committer) openRepo(ctx context.Context) error {
	c.opening.Lock()
	defer c.opening.Unlock()
	if c.index.repo != nil {
		return nil
	}
	if c.o.Open == nil {
		return errors.New("there is no repo to record to")
	}
	repo, err := c.o.Open(ctx)
	if err != nil {
		return &storeError{err}
	}
	c.index.repo = repo
	return nil
}

// errDropped reports that an exchange was dropped: it could not be committed, nor kept for
// later.
var errDropped = errors.New("the store failed, and memory or spool were full")

// enqueue queues an exchange that has ended, without blocking. If its bodies do not fit into the memory,
// they are read from the spool when it is committed; without a spool it is dropped. After stop the
// spool has what passed until then, and without one an exchange is dropped.
func (c *committer) enqueue(x *exchange) {
	key := x.queueKey()
	c.mu.Lock()
	defer c.mu.Unlock()
	full, stopped := c.heldBytes+x.size() > c.o.Memory && c.heldBytes > 0, c.ctx.Err() != nil
	if full && x.file.Lost() || stopped && x.file == nil {
		c.dropped.Add(1)
		go c.reportFailure(x, errDropped)
		return
	}
	if stopped {
		return
	}
	if full {
		x.mu.Lock()
		x.sent, x.received, x.released = nil, nil, true
		x.mu.Unlock()
	}
	x.held = x.size()
	c.heldBytes += x.held
	list, runs := c.queues[key]
	c.queues[key] = append(list, x)
	c.exchangeCount++
	x.number = c.exchangeCount
	if !runs {
		c.running.Go(func() { c.commitQueue(key) })
	}
}

// pendingCount returns the number of exchanges that are not committed yet.
func (c *committer) pendingCount() (n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, list := range c.queues {
		n += int64(len(list))
	}
	return n
}

// commitQueue commits the exchanges of a queue until it is empty.
func (c *committer) commitQueue(queue string) {
	for {
		c.mu.Lock()
		list := c.queues[queue]
		if len(list) == 0 {
			delete(c.queues, queue)
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
		x := list[0]
		if !c.commitWithRetry(x) {
			return // the transport is closed
		}
		c.mu.Lock()
		if list := c.queues[queue]; len(list) > 0 && list[0] == x { // otherwise dropLost has removed it
			c.queues[queue] = list[1:]
		}
		c.heldBytes -= x.held
		c.mu.Unlock()
	}
}

// Retries while the store fails. maxTries applies to exchanges that no spool keeps; others are
// retried until the transport is closed.
const (
	firstPause   = 50 * time.Millisecond
	maxPause     = 5 * time.Second
	maxTries     = 3
	maxQueueWait = time.Second // for earlier exchanges of other queues
)

// commitWithRetry commits an exchange and retries while the store fails; later exchanges of its
// queue wait. It returns false if the transport was closed before the exchange was committed.
func (c *committer) commitWithRetry(x *exchange) (done bool) {
	ctx, cancel := context.WithCancel(x.ctx)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	x.ctx = ctx
	pause := firstPause
	for try := 1; ; try++ {
		if c.ctx.Err() != nil {
			return false
		}
		c.slots <- struct{}{}
		err := c.commitAndFinishFile(x)
		<-c.slots
		if err == nil {
			return true
		}
		if errors.Is(err, errEarly) {
			c.waitForEarlierOfAllQueues(x)
			try--
			continue
		}
		last := !errors.As(err, new(*storeError)) || x.file == nil && try == maxTries
		if last || try == 1 && x.file != nil {
			c.reportFailure(x, err)
		}
		if last {
			c.failed.Add(1)
			x.setKeptResponse()
			x.finishFile("failed")
			return true
		}
		select {
		case <-time.After(pause):
			pause = min(2*pause, maxPause)
		case <-c.ctx.Done():
			return false
		}
	}
}

// errEarly reports that an exchange may continue a conversation whose exchanges are still
// waiting in another queue.
var errEarly = errors.New("earlier exchanges are not committed yet")

// waitForEarlierOfAllQueues waits until the exchanges that ended before x are committed, at most
// maxQueueWait, because the store may refuse them for a long time.
func (c *committer) waitForEarlierOfAllQueues(x *exchange) {
	x.waited = true
	for end := time.Now().Add(maxQueueWait); time.Now().Before(end) && c.hasEarlierOfAnyQueue(x); {
		time.Sleep(time.Millisecond)
	}
}

// hasEarlierOfAnyQueue reports whether an exchange of any queue that ended before x is not
// committed yet.
func (c *committer) hasEarlierOfAnyQueue(x *exchange) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, list := range c.queues {
		if len(list) > 0 && list[0].number < x.number {
			return true
		}
	}
	return false
}

// acquireProcessor waits until an exchange may use a processor. Half of the processors are left to
// the traffic, which goes first. release may be called more than once.
func (c *committer) acquireProcessor(x *exchange) (release func()) {
	c.processors <- struct{}{}
	c.traffic.awaitQuiet(x.Started.Add(x.duration + maxHold))
	return sync.OnceFunc(func() { <-c.processors })
}

// storeError marks an error of the store: another try may succeed.
type storeError struct{ error }

// Unwrap returns the error of the store.
func (e *storeError) Unwrap() error { return e.error }

// errUnreadable reports that the spool no longer has the request of an exchange.
var errUnreadable = errors.New("the spool no longer has the whole request")

// loadBodies reads the bodies of an exchange from the spool if they are not in memory. A file that
// cannot be read now is tried again, as a store that fails is: it has the only copy.
func (x *exchange) loadBodies() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.released || x.sent != nil {
		return nil
	}
	frames, err := x.file.Read()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.Join(errUnreadable, err)
	case err != nil:
		return &storeError{err}
	case !x.readFrames(frames):
		return errUnreadable
	}
	return nil
}

// maxStop is how long stop waits for a store that does not obey a context.
const maxStop = time.Second

// stop ends the running commits and begins no others. The exchanges that are not committed stay in the
// spool, and another transport with the same spool can commit them.
func (c *committer) stop() {
	c.cancel()
	ended := make(chan struct{})
	go func() {
		c.running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(maxStop):
	}
}

// dropLost forgets, counts and reports the exchanges that are neither committed nor in the spool.
func (c *committer) dropLost() {
	c.mu.Lock()
	var lost []*exchange
	for queue, list := range c.queues {
		c.queues[queue] = slices.DeleteFunc(slices.Clone(list), func(x *exchange) bool {
			if x.file.Lost() {
				lost = append(lost, x)
			}
			return x.file.Lost()
		})
	}
	c.mu.Unlock()
	for _, x := range lost {
		c.dropped.Add(1)
		c.reportFailure(x, errDropped)
	}
}

// reportFailure calls Options.OnError for an exchange that was not recorded.
func (c *committer) reportFailure(x *exchange, err error) {
	if c.o.OnError != nil {
		c.o.OnError(&Error{Path: x.Path, Sent: x.sent, Came: x.received, Err: err})
	}
}

// size returns the number of bytes of the bodies in memory.
func (x *exchange) size() int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	return int64(len(x.sent) + len(x.received))
}

// queueKey returns the key of the queue of an exchange: the branch that On names, or the session
// that the headers name. All exchanges without either share one queue.
func (x *exchange) queueKey() string {
	if x.On != "" {
		return "branch " + x.On
	}
	return "session " + readIdentity(x.Header, &llm.Request{}).session
}
