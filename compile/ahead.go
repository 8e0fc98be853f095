package compile

import (
	"context"
	"runtime"
	"slices"
	"sync"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// ahead loads what is surely sent while the walk still goes on. The walk begins at the
// end, where what speaks of a commit has been by when the commit comes, so that it is
// mostly known what will be decided. It is a help and no more: what it leaves, for
// whatever reason, is loaded when all is decided, and the errors are those of then.
// A nil one does nothing.
type ahead struct {
	reader objects.Reader
	store  objects.Bulk // the same
	policy priority.Policy
	spoken map[objects.ID]bool // commits that a later one speaks of
	open   bool                // it has begun
	over   bool                // of what comes nothing is sure
	list   []*Entry            // surely sent, the newest first, and not loaded yet
	size   int64               // of their contents
	slots  chan struct{}       // as many as may load at once
	loads  sync.WaitGroup
	reads  sync.WaitGroup  // of the file, which nobody waits for
	ctx    context.Context //nolint:containedctx // of one Chain, which waits for all of it
	cancel context.CancelFunc

	step, least int64 // aheadSize and aheadLeast

	mu   sync.Mutex
	room [][]byte // for the contents, as far as it is free
}

const (
	// aheadSize is how much is loaded at a time, and aheadLeast what is worth while: less
	// is loaded sooner when all is decided.
	aheadSize, aheadLeast = 2 << 20, 16 << 20
	// roomLeast and roomMost bound the pieces of memory that contents lie in, which are
	// a quarter of all: a block that is kept keeps the piece that it lies in.
	roomLeast, roomMost = 4 << 20, 64 << 20
	// aheadMost is most memory that is asked for at once: what a commit says of those
	// before it may be wrong.
	aheadMost = 1 << 30
	// aheadMarks is how many marks are followed to know how much may be sent.
	aheadMarks = 8
	// aheadRecord is about how much longer the record of a content is than what it weighs.
	aheadRecord = 8
)

// newAhead is for a Chain: nil where a budget decides, or the reader cannot do it.
func newAhead(ctx context.Context, r objects.Reader, o Options) *ahead {
	store, ok := r.(objects.Bulk)
	if !ok || o.Budget > 0 {
		return nil
	}
	a := &ahead{
		reader: r, store: store, policy: o.Policy, step: aheadSize, least: aheadLeast,
		spoken: map[objects.ID]bool{}, slots: make(chan struct{}, runtime.GOMAXPROCS(0)),
	}
	a.ctx, a.cancel = context.WithCancel(ctx)
	return a
}

// begin is told of a commit near the end of a history, and makes room for what is before
// it, all at once and before anything else: the collector then runs when there is nothing
// to go through, and not again whenever memory has doubled.
func (a *ahead) begin(c *commit.Commit) {
	if a == nil || a.over || c.Op == commit.Compress || c.Weight.Sent < a.least {
		return
	}
	all, commits := c.Weight.Sent, c.Depth+1
	for n, mark := 1, c.Mark; !mark.IsZero(); n++ {
		m, err := commit.Read(a.ctx, a.reader, mark)
		if err != nil {
			return // the walk comes there
		}
		if mark = m.Mark; m.Op == commit.Compress || m.Op == commit.Merge || n == aheadMarks {
			all, commits = all-m.Weight.Sent, c.Depth-m.Depth
			break
		}
	}
	if all < a.least {
		return
	}
	read := a.store.Expect(all)
	if a.open = read != nil; !a.open {
		return
	}
	a.reads.Go(func() { read(a.ctx) })
	all = min(all, aheadMost) + int64(min(commits, most))*aheadRecord
	for left := all + all/32; left > 0; {
		n := min(max(all/4+aheadSize, roomLeast), roomMost, max(left, roomLeast))
		left -= n
		a.room = append(a.room, piece(n))
	}
}

// piece makes a piece of room.
func piece(n int64) []byte {
	b := make([]byte, n)
	objects.WillFill(b)
	return b
}

// take takes memory out of the room, or makes some.
func (a *ahead) take(n int) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.room) > 0 && len(a.room[0]) < n {
		a.room = a.room[1:]
	}
	if len(a.room) == 0 {
		a.room = append(a.room, piece(int64(max(n, roomLeast))))
	}
	b := a.room[0][:n:n]
	a.room[0] = a.room[0][n:]
	return b
}

// pass is told of every entry that the walk comes by.
func (a *ahead) pass(e *Entry) {
	switch {
	case a == nil || a.over:
	case e.Op == commit.Append && !a.open: // there are few of them
	case e.Op == commit.Append:
		if a.size >= a.step && e.spot.Body != a.list[len(a.list)-1].spot.Body { // a body is read once
			a.load()
		}
		if e.spot.Body != 0 && !a.spoken[e.ID] && a.sends(e) {
			a.list, a.size = append(a.list, e), a.size+int64(e.Size)
		}
	case e.Op == commit.Edit || e.Op == commit.Annotate:
		a.spoken[e.rare.speaks.Target] = true
	default: // what is before a summary may be in its range, and what a merge brings is elsewhere
		a.end()
	}
}

// sends tells whether the policy sends an append of which nothing else speaks, wherever
// it is in the history. What of a named system block is sent is decided by its words, and
// thoughts may still go with a call that nobody answered.
func (a *ahead) sends(e *Entry) bool {
	if e.Kind == content.KindSystem || e.Role == content.NoRole {
		return false
	}
	level, _ := a.policy.Decide(priority.Facts{Default: e.Kind.Traits().Level, Explicit: e.Priority, Reasoning: e.Kind == content.KindReasoning})
	return level != priority.Skip
}

// load begins to load the list.
func (a *ahead) load() {
	list := a.list
	a.list, a.size = make([]*Entry, 0, len(list)+len(list)/8), 0
	slices.Reverse(list) // as they lie
	a.loads.Go(func() {
		a.slots <- struct{}{}
		defer func() { <-a.slots }()
		_ = commit.Blocks(a.ctx, a.reader, commit.Wanted{
			Len: len(list),
			Of: func(i int) (commit, content objects.ID, spot objects.Spot) {
				return list[i].ID, list[i].Content, list[i].spot
			},
			Put: func(i int, b content.Block, left *objects.Tombstone) {
				if left == nil {
					list[i].Block = b
				}
			},
			Room: a.take,
		}) // it is tried once more
	})
}

// end is told that nothing more is sure.
func (a *ahead) end() {
	if a == nil || a.over {
		return
	}
	if a.over = true; len(a.list) > 0 {
		a.load()
		a.list = nil
	}
}

// wait waits until what was begun is loaded.
func (a *ahead) wait() {
	if a != nil {
		a.loads.Wait()
	}
}

// stop ends it. Nothing reads any more when it has returned.
func (a *ahead) stop() {
	if a != nil {
		a.cancel()
		a.loads.Wait()
		a.reads.Wait()
	}
}

// lend gives entries of the same history the blocks that were loaded ahead.
func (l *listing) lend(entries []Entry) {
	if l.ahead == nil {
		return
	}
	l.ahead.end()
	l.ahead.wait()
	blocks := map[objects.ID]content.Block{}
	for i := range l.entries() {
		if e := &l.list[l.free+i]; e.Block != nil {
			blocks[e.ID] = e.Block
		}
	}
	for i := range entries {
		e := &entries[i]
		e.Block = blocks[e.ID]
	}
}

// lacking lists what is sent and was not loaded yet.
func (h *history) lacking() (list []*Entry) {
	for i := range h.entries {
		e := &h.entries[i]
		if !e.Sent || !e.Says() || e.Block != nil {
			continue
		}
		if list == nil {
			list = make([]*Entry, 0, len(h.entries)-i)
		}
		list = append(list, e)
	}
	return list
}
