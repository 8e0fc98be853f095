package bolt

import (
	"context"
	"iter"
	"math"
	"sync"

	"github.com/tract-vcs/tract/objects"
)

// A walk follows first parents. Inside a pack it needs no index: the table of a pack knows
// the row of each parent, and the pack before it mostly holds the next commit. One chainReader
// does that for ChainRuns, which yields the commits of a pack as they lie in memory that is
// used again, and for Chain, which gives them out one by one.
const (
	walkPacks  = 8 // most packs whose heads are read in one snapshot
	firstLoose = 2 // commits in no pack that the first batch may have
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

func (b *chainBatch) reset() {
	b.list, b.locators, b.runs, b.loose = b.list[:0], b.locators[:0], b.runs[:0], 0
	b.arena.reset()
}

// ChainRuns is objects.BulkReader. In a long walk a goroutine reads the next batch while the caller
// has the runs of the last one.
func (s *store) ChainRuns(ctx context.Context, tip objects.ID, limit int) iter.Seq2[objects.CommitRun, error] {
	return func(yield func(objects.CommitRun, error) bool) {
		now, next := chainBatches.Get().(*chainBatch), chainBatches.Get().(*chainBatch) //nolint:forcetypeassert // the pool holds nothing else
		defer chainBatches.Put(now)
		defer chainBatches.Put(next)
		c := newChainReader(tip, limit)
		var err error
		read := func() {
			next.reset()
			err = s.view(ctx, "read", func(l *snapshot) error { return c.read(l, next) })
		}
		var reading sync.WaitGroup
		defer reading.Wait()
		for ahead := false; ahead || c.hasMore(); {
			if !ahead {
				read()
			}
			reading.Wait()
			if err != nil {
				yield(objects.CommitRun{}, err)
				return
			}
			now, next = next, now
			if ahead = c.packs > 1 && c.hasMore(); ahead {
				reading.Go(read)
			}
			for _, run := range now.runs {
				if !yield(run, nil) {
					return
				}
			}
		}
	}
}

// chainReader reads the commits of a chain in batches.
type chainReader struct {
	tip    objects.ID // the next commit; zero: there is none
	left   int        // most commits that are still to be read
	packs  int        // most packs of the last batch
	loose  int        // most commits in no pack of the last batch, for each pack
	after  uint32     // the pack that was read last
	advice headAdvice
}

// newChainReader returns a reader of at most limit commits; 0: of all.
func newChainReader(tip objects.ID, limit int) *chainReader {
	if limit <= 0 {
		limit = math.MaxInt
	}
	return &chainReader{tip: tip, left: limit}
}

func (c *chainReader) hasMore() bool { return !c.tip.IsZero() && c.left > 0 }

// read adds to a batch what some packs hold, or some commits that are in none. It begins
// with few, since many a walk ends soon. It ends before a commit that cannot be read: if
// the walk comes that far, it asks again.
func (c *chainReader) read(l *snapshot, b *chainBatch) error {
	first := c.loose == 0
	c.loose = min(max(4*c.loose, firstLoose), viewObjects)
	if first || c.after > 0 {
		c.packs = min(max(2*c.packs, 1), walkPacks)
	}
	l = l.withArena(&b.arena)
	if c.packs > 1 {
		l.advice = &c.advice
	}
	for packs := 0; packs < c.packs && len(b.list) < viewObjects*c.packs && b.loose < c.loose*c.packs && c.hasMore(); {
		if first && b.loose > 0 && l.journalRecord(c.tip) == nil {
			break // a caller that has compiled before goes no further than what is new
		}
		from := len(b.list)
		wholePack, err := c.readNext(l, b)
		if err != nil {
			if from > 0 {
				return nil
			}
			return err
		}
		if wholePack {
			packs++
		}
	}
	return nil
}

// readNext adds the next commit to a batch, or, if its pack is sound, all commits of the chain
// that the pack has; wholePack reports that. With an error the batch is as it was.
func (c *chainReader) readNext(l *snapshot, b *chainBatch) (wholePack bool, err error) {
	from := len(b.list)
	p, row, err := l.packOfOrNil(c.tip, c.after)
	c.after = 0
	if err != nil {
		return false, err
	}
	if p != nil {
		c.after = p.n
	}
	wholePack = p != nil && p.sound && p.Kind(row) == objects.KindCommit // the table has no data of other kinds
	if wholePack {
		b.list, b.locators = p.AppendChain(b.list, b.locators, row, c.left, l.fileNumber<<32|uint64(p.n), &b.arena.tables)
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
	b.runs = append(b.runs, objects.CommitRun{Objects: b.list[from:], Locators: b.locators[from:]})
	return wholePack, nil
}

// packOfOrNil returns the pack that has an object, and its row in it; nil: it is in none. A
// commit whose child begins a pack is first looked for at the end of the pack before.
func (l *snapshot) packOfOrNil(id objects.ID, childPack uint32) (_ *pack, row int, err error) {
	if l.journalRecord(id) != nil {
		return nil, 0, nil
	}
	if childPack > 1 {
		p, err := l.pack(childPack - 1)
		if err == nil && p.hasUnpurged(p.Len()-1, id) {
			return p, p.Len() - 1, nil
		}
	}
	at, ok, err := l.locate(id)
	if err != nil || !ok {
		return nil, 0, err
	}
	p, err := l.pack(at.pack)
	return p, at.row, wrapPackError(id, err)
}

// Chain is objects.Reader.
func (s *store) Chain(ctx context.Context, tip objects.ID, o objects.ChainOptions) iter.Seq2[objects.Object, error] {
	return func(yield func(objects.Object, error) bool) {
		limit := o.Limit
		if len(o.Stop) > 0 {
			limit = 0 // it reads more than it yields
		}
		c, ahead := newChainReader(tip, limit), map[objects.ID]objects.Object{}
		objects.Walk(ctx, func(id objects.ID) (objects.Object, error) {
			if o, ok := ahead[id]; ok {
				delete(ahead, id)
				return o, nil
			}
			if c.tip != id {
				c.tip, c.after = id, 0
			}
			b := &chainBatch{} // the objects are the caller's
			if err := s.view(ctx, "read", func(l *snapshot) error { return c.read(l, b) }); err != nil {
				return objects.Object{ID: id}, err
			}
			for _, o := range b.list[1:] {
				ahead[o.ID] = o
			}
			return b.list[0], nil
		}, tip, o)(yield)
	}
}
