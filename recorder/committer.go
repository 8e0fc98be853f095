package recorder

import (
	"sync"
	"sync/atomic"

	"github.com/tract-vcs/tract"
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
	repo  *tract.Repo
	index *index
	slots chan struct{}

	recorded, failed atomic.Int64

	mu    sync.Mutex
	lanes map[string][]*exchange // that wait, by session; a lane that is there has a goroutine
	count int64
}

func newCommitter(repo *tract.Repo, o Options) *committer {
	return &committer{o: o, repo: repo, index: newIndex(repo, o.Prefix, !o.Unmasked), slots: make(chan struct{}, mostAtOnce), lanes: map[string][]*exchange{}}
}

// add adds an exchange that has ended. It does not wait.
func (c *committer) add(x *exchange) {
	key := x.lane()
	c.mu.Lock()
	defer c.mu.Unlock()
	list, runs := c.lanes[key]
	c.lanes[key] = append(list, x)
	c.count++
	if !runs {
		go c.run(key)
	}
}

// waiting returns the number of exchanges that are not committed.
func (c *committer) waiting() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count
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

		c.slots <- struct{}{}
		c.commit(x)
		<-c.slots

		c.mu.Lock()
		c.count--
		c.mu.Unlock()
	}
}

// lane returns the key of the exchanges that are committed one after the other: those of a
// session that the headers name, and all others together.
func (x *exchange) lane() string {
	if x.on != "" {
		return "branch " + x.on
	}
	return "session " + claimOf(x.header, nil).session
}
