package bolt

import (
	"context"
	"iter"
	"slices"
	"sync"

	"github.com/tract-vcs/tract/objects"
)

// A walk follows first parents. Inside a pack it needs no index: the table of a pack knows
// the row of each parent, and the pack before it mostly holds the next commit. One chainReader
// does that for ChainRuns, which yields the commits of a pack as they lie in memory that is
// used again, and for Chain, which gives them out one by one.
const (
	walkPacks  = 32   // most packs whose heads are read in one snapshot
	aheadFrom  = 1024 // commits after which the next batches are read while one is used
	aheadCount = 4    // batches of a long walk: with more than two neither side waits for each step of the other
	firstLoose = 2    // commits in no pack that the first batch may have
)

// chainBatch is the commits that are read in one snapshot.
type chainBatch struct {
	arena    arena
	list     []objects.Object
	locators []objects.Locator
	runs     []objects.CommitRun
	loose    int // how many are in no pack
}

var chainBatches = sync.Pool{New: func() any { return new(chainBatch) }}

// addRun makes a run of the objects of the list from one on.
func (b *chainBatch) addRun(from int) {
	b.runs = append(b.runs, objects.CommitRun{Objects: b.list[from:], Locators: b.locators[from:]})
}

func (b *chainBatch) reset() {
	b.list, b.locators, b.runs, b.loose = b.list[:0], b.locators[:0], b.runs[:0], 0
	b.arena.reset()
}

// ChainRuns is objects.BulkReader.
func (s *store) ChainRuns(ctx context.Context, tip objects.ID, limit int) iter.Seq2[objects.CommitRun, error] {
	return func(yield func(objects.CommitRun, error) bool) {
		c := &chainReader{tip: tip, left: limit, limited: limit > 0}
		for batch, err := range readAhead(ctx, func(ctx context.Context, b *chainBatch) error {
			if c.tip.IsZero() || c.limited && c.left == 0 {
				return nil
			}
			return s.view(ctx, "read", func(l *snapshot) error { return c.read(l, b) })
		}) {
			if err != nil {
				yield(objects.CommitRun{}, err)
				return
			}
			for _, run := range batch.runs {
				if !yield(run, nil) {
					return
				}
			}
		}
	}
}

// chainReader reads the commits of a chain in batches.
type chainReader struct {
	tip     objects.ID // the next commit; zero: there is none
	left    int        // commits, if they are limited
	limited bool
	packs   int    // most packs of the last batch
	loose   int    // most commits in no pack of the last batch, for each pack
	after   uint32 // the pack that was read last
	scan    readAdvice
}

// read adds to a batch what some packs hold, or some commits that are in none. It begins
// with few, since many a walk ends soon. It ends before a commit that cannot be read: if
// the walk comes that far, it asks again.
func (c *chainReader) read(l *snapshot, b *chainBatch) error {
	first := c.loose == 0
	c.loose = min(max(4*c.loose, firstLoose), pageObjects)
	if first || c.after > 0 {
		c.packs = min(max(2*c.packs, 1), walkPacks)
	}
	l.useArena(&b.arena)
	if c.packs > 1 {
		l.scan = &c.scan
	}
	for packs := 0; packs < c.packs && len(b.list) < pageObjects*c.packs && b.loose < c.loose*c.packs && !c.tip.IsZero() && !(c.limited && c.left == 0); {
		if first && b.loose > 0 && l.record(c.tip) == nil {
			break // a caller that has compiled before goes no further than what is new
		}
		from := len(b.list)
		whole, err := c.readNext(l, b)
		if err != nil {
			if from > 0 {
				return nil
			}
			return err
		}
		if whole {
			packs++
		}
	}
	return nil
}

// readNext adds the next commit to a batch, or, if its pack is sound, all commits of the chain
// that the pack has; whole reports that. With an error the batch is as it was.
func (c *chainReader) readNext(l *snapshot, b *chainBatch) (whole bool, err error) {
	from := len(b.list)
	p, row, err := l.packOf(c.tip, c.after)
	c.after = 0
	if err != nil {
		return false, err
	}
	if p != nil {
		c.after = p.n
	}
	whole = p != nil && p.sound && p.Kind(row) == objects.KindCommit // the table has no data of other kinds
	if whole {
		limit := 0
		if c.limited {
			limit = c.left
		}
		b.list, b.locators = p.AppendChain(b.list, b.locators, row, limit, l.number<<32|uint64(p.n), &b.arena.tables)
	} else {
		var o objects.Object
		if p != nil {
			o, err = l.readPacked(p, row)
		} else {
			o, err = l.object(c.tip)
		}
		if err != nil {
			return false, err
		}
		b.list, b.locators = append(b.list, o), append(b.locators, objects.Locator{})
		b.loose++
	}
	c.left -= len(b.list) - from
	c.tip = objects.ID{}
	if last := &b.list[len(b.list)-1]; len(last.Parents) > 0 {
		c.tip = last.Parents[0]
	}
	b.addRun(from)
	return whole, nil
}

// packOf returns the pack that has an object, and its row in it; nil: it is in none. A
// commit whose child begins a pack is first looked for at the end of the pack before.
func (l *snapshot) packOf(id objects.ID, after uint32) (*pack, int, error) {
	if l.record(id) != nil {
		return nil, 0, nil
	}
	if after > 1 {
		p, err := l.pack(after - 1)
		if err == nil && p.has(p.Len()-1, id) {
			return p, p.Len() - 1, nil
		}
	}
	at, ok, err := l.locate(id)
	if err != nil || !ok {
		return nil, 0, err
	}
	p, err := l.pack(at.pack)
	return p, at.slot, packError(id, err)
}

// readAhead yields batches that read fills, until one is empty or has an error. After some
// commits a goroutine fills the next batches while one is used. When the loop has ended,
// nothing is read any more.
func readAhead(ctx context.Context, read func(context.Context, *chainBatch) error) iter.Seq2[*chainBatch, error] {
	return func(yield func(*chainBatch, error) bool) {
		b := takeBatch()
		defer func() { chainBatches.Put(b) }()
		for given := 0; given <= aheadFrom; given += len(b.list) {
			if err := b.fill(ctx, read); err != nil || len(b.list) == 0 {
				if err != nil {
					yield(nil, err)
				}
				return
			}
			if !yield(b, nil) {
				return
			}
		}
		readConcurrently(ctx, read, yield)
	}
}

func takeBatch() *chainBatch {
	return chainBatches.Get().(*chainBatch) //nolint:forcetypeassert // the pool holds nothing else
}

func (b *chainBatch) fill(ctx context.Context, read func(context.Context, *chainBatch) error) error {
	b.reset()
	return read(ctx, b)
}

// readConcurrently is readAhead with the goroutine.
func readConcurrently(ctx context.Context, read func(context.Context, *chainBatch) error, yield func(*chainBatch, error) bool) {
	type filled struct {
		batch *chainBatch
		err   error
	}
	ctx, cancel := context.WithCancel(ctx)
	free, ready := make(chan *chainBatch, aheadCount), make(chan filled, aheadCount) // each has room for all batches
	for range aheadCount {
		free <- takeBatch()
	}
	go func() {
		defer close(ready)
		for b := range free {
			err := b.fill(ctx, read)
			if ready <- (filled{b, err}); err != nil || len(b.list) == 0 {
				return
			}
		}
	}()
	defer func() {
		cancel()
		close(free)
		for f := range ready {
			chainBatches.Put(f.batch)
		}
		for b := range free {
			chainBatches.Put(b)
		}
	}()
	for f := range ready {
		more := f.err == nil && len(f.batch.list) > 0 && yield(f.batch, nil)
		free <- f.batch
		if f.err != nil {
			yield(nil, f.err)
		}
		if !more {
			return
		}
	}
}

// Chain is objects.Reader.
func (s *store) Chain(ctx context.Context, tip objects.ID, o objects.ChainOptions) iter.Seq2[objects.Object, error] {
	return func(yield func(objects.Object, error) bool) {
		p := &prefetcher{store: s, ctx: ctx, options: o}
		objects.Walk(ctx, p.get, tip, o)(yield)
	}
}

// prefetcher gives a walk its commits one by one, and reads those of a chain in batches.
type prefetcher struct {
	store   *store
	ctx     context.Context //nolint:containedctx // a walk is one call
	options objects.ChainOptions
	chains  [2]*prefetched // two, since a walk to a fork point goes down two chains in turn
	last    int            // the chain that was used last
}

// prefetched is the commits of a chain that were read and not given yet.
type prefetched struct {
	chainReader
	rest []objects.Object
}

func (p *prefetcher) get(id objects.ID) (objects.Object, error) {
	i := slices.IndexFunc(p.chains[:], func(c *prefetched) bool {
		return c != nil && (len(c.rest) > 0 && c.rest[0].ID == id || len(c.rest) == 0 && c.tip == id)
	})
	if i < 0 {
		i = 1 - p.last
		c := &prefetched{chainReader: chainReader{tip: id}}
		if len(p.options.Stop) == 0 {
			c.left, c.limited = p.options.Limit, p.options.Limit > 0
		}
		p.chains[i] = c
	}
	p.last = i
	c := p.chains[i]
	if len(c.rest) == 0 {
		b := &chainBatch{} // the objects are the caller's
		if err := p.store.view(p.ctx, "read", func(l *snapshot) error { return c.read(l, b) }); err != nil {
			return objects.Object{ID: id}, err
		}
		c.rest = b.list
	}
	o := c.rest[0]
	c.rest = c.rest[1:]
	return o, nil
}
