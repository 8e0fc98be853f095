package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/journal"
	"github.com/tract-vcs/tract/objects/bolt/internal/page"
)

// compaction copies a store into a new file: for gc what is reachable, packed closely; for
// a backup everything, as it is.
//
// It does so in rounds. The first copies all there is, the next ones what was written
// meanwhile, which is less each time; the last one runs while the caller holds the lock.
type compaction struct {
	src   *source
	out   newFile
	reach *reachability // nil: everything is kept as it is

	loose      map[objects.ID]looseCopy // objects in no pack that were seen
	refs       map[string]bool          // refs that were moved since they were copied; nil: they were not copied yet
	pack       uint32                   // the last pack of the source that was copied
	seq        uint64                   // the last log entry that was
	log        entryRun
	room       arena            // for the pack that is copied
	pending    []objects.Object // for packs
	size       int              // of their data
	referred   []objects.ID     // by what was written meanwhile
	verified   bool             // what was copied first was read back
	kept       int              // objects and tombstones in the new file
	round      int64            // bytes of packs that this round has copied
	lockedSize int64            // bytes of packs that were copied while the caller held the lock
}

// looseCopy is what became of an object in no pack.
type looseCopy struct{ copied, tombstone bool }

// pendingBytes is how much data is packed together.
const pendingBytes = 2 << 20

// copyRounds copies until little is left for the round under the lock.
func (c *compaction) copyRounds(level uint64) error {
	for range 10 {
		if err := c.copyRound(); err != nil {
			return err
		}
		if c.round < viewBytes {
			break
		}
	}
	if err := c.out.addRun(level); err != nil {
		return err
	}
	return c.out.sync()
}

// copyRound copies what was written since the last round.
func (c *compaction) copyRound() error {
	c.round = 0
	for _, step := range []func() error{
		func() error { return c.src.packs(c.pack, c.copyPack) },
		c.flush, c.copyLoose, c.copyLog, c.copyReferred, c.flush, c.copyRefs,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// put adds an object to the next packs.
func (c *compaction) put(o objects.Object) error {
	if err := c.dropTombstone(o.ID); err != nil {
		return err
	}
	c.pending, c.size, c.kept = append(c.pending, o), c.size+len(o.Data), c.kept+1
	if c.size < pendingBytes && len(c.pending) < 4*packObjects {
		return nil
	}
	return c.flush()
}

// dropTombstone deletes the tombstone of an object that was put again meanwhile.
func (c *compaction) dropTombstone(id objects.ID) error {
	if l := c.loose[id]; !l.copied || !l.tombstone {
		return nil
	}
	c.loose[id] = looseCopy{}
	c.kept--
	return c.out.add(deleteKey(objectsBucket, bytes.Clone(id[:])))
}

// flush makes packs of the objects that were put.
func (c *compaction) flush() error {
	if len(c.pending) == 0 {
		return nil
	}
	for i := 0; c.verified && i < len(c.pending); i++ { // nobody reads them again before they count
		if err := c.pending[i].Check(); err != nil {
			return err
		}
	}
	runs := splitPacks(inHistoryOrder(c.pending), dense)
	packs := make([]rawPack, len(runs))
	var wg sync.WaitGroup
	for i, run := range runs {
		packs[i].n = c.out.packs + 1 + uint32(i)
		wg.Go(func() { packs[i].head, packs[i].body = encodePack(packs[i].n, run, codecZstd) })
	}
	wg.Wait()
	c.pending, c.size = c.pending[:0], 0
	for _, p := range packs {
		if err := c.out.addRawPack(p); err != nil {
			return err
		}
	}
	return nil
}

// copyPack copies a pack of the source, or what is kept of it. A pack that was written
// after the sweep has looked is kept as it is.
func (c *compaction) copyPack(raw rawPack) error {
	c.pack = raw.n
	c.round += int64(len(raw.head) + len(raw.body))
	if c.reach == nil {
		return c.copyRaw(raw)
	}
	c.room.reset()
	p, err := parsePackIn(&c.room, raw.n, raw.head)
	if err != nil {
		return err
	}
	body, sound, err := decodeBody(&c.room, p, raw.body)
	if err != nil {
		return err
	}
	at, known := c.reach.find(raw.n)
	if !known {
		return c.copyNewPack(raw, p, body, sound)
	}
	first := c.reach.packs[at].first
	whole := len(p.purged) == 0 && 2*p.BodySize() >= dense.bytes && codec(raw.body[8]) == codecZstd && sound && p.sound
	for i := 0; whole && i < p.Len(); i++ {
		whole = c.reach.keeps(first + i)
	}
	if whole {
		if err := c.flush(); err != nil {
			return err
		}
		c.kept += p.Len()
		return c.out.addPack(c.out.packs+1, bytes.Clone(raw.head), bytes.Clone(raw.body))
	}
	return c.putRows(p, body, sound, func(i int) bool { return c.reach.keeps(first + i) })
}

// putRows puts the objects of some rows of a pack.
func (c *compaction) putRows(p *pack, body []byte, sound bool, wanted func(i int) bool) error {
	for i := range p.Len() {
		if p.isPurged(i) || !wanted(i) {
			continue
		}
		var room []objects.ID
		o, err := p.whole(i, body, sound, nil, &room)
		if err == nil {
			o.Data = bytes.Clone(o.Data) // the pack does not stay in memory
			err = c.put(o)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// copyNewPack copies a pack that was written meanwhile, under the next number. Its objects
// are compared with their ids, since it is not read again.
func (c *compaction) copyNewPack(raw rawPack, p *pack, body []byte, sound bool) error {
	if !sound || !p.sound {
		return &objects.CorruptError{Cause: fmt.Errorf("pack %d: a checksum is wrong", raw.n)}
	}
	for i := range p.Len() {
		if p.isPurged(i) {
			continue
		}
		var room []objects.ID
		o, err := p.whole(i, body, false, nil, &room)
		if err == nil {
			err = c.dropTombstone(o.ID)
		}
		if err != nil {
			return err
		}
		c.kept++
	}
	for k := p.Len(); k < len(p.ids)/idSize; k++ {
		c.referred = append(c.referred, *p.ID(k))
	}
	if err := c.flush(); err != nil {
		return err
	}
	return c.out.addPack(c.out.packs+1, bytes.Clone(raw.head), bytes.Clone(raw.body))
}

// copyRaw copies a pack for a backup.
func (c *compaction) copyRaw(raw rawPack) error {
	if len(c.loose) > 0 && len(raw.head) >= packIDs && parsePackHeader(raw.head).end <= len(raw.head) {
		f := parsePackHeader(raw.head)
		for i := range f.count {
			if err := c.dropTombstone(objects.ID(raw.head[packIDs+i*idSize:])); err != nil {
				return err
			}
		}
	}
	return c.out.addRawPack(raw)
}

// copyLoose copies the objects in no pack, and tombstones, that were not seen yet.
func (c *compaction) copyLoose() error {
	if c.loose == nil {
		c.loose = map[objects.ID]looseCopy{}
	}
	want := func(e page.Entry) (bool, error) {
		if len(e.Key) != idSize {
			return false, errKey(objectsBucket, e.Key)
		}
		was, seen := c.loose[objects.ID(e.Key)]
		if !was.tombstone {
			return !seen, nil
		}
		begin, err := e.Part(0, min(1, e.ValueSize))
		return !isTombstone(begin), err // it was put again
	}
	return c.src.each(objectsBucket, []byte{}, false, want, func(key, value []byte) error {
		id := objects.ID(key)
		was, seen := c.loose[id]
		now := looseCopy{copied: true, tombstone: isTombstone(value)}
		if c.reach != nil {
			o := c.reach.loose[id]
			if o != nil && o.fate == fateGone && !seen && o.tombstone == now.tombstone {
				c.loose[id] = looseCopy{tombstone: now.tombstone}
				return nil
			}
			if o == nil || was.tombstone {
				if err := c.referTo(id, value); err != nil {
					return err
				}
			}
			value = compressRecord(value)
		}
		if c.loose[id] = now; !was.copied {
			c.kept++
		}
		return c.out.add(setKey(objectsBucket, key, value))
	})
}

// referTo notes what a large object that was written meanwhile refers to.
func (c *compaction) referTo(id objects.ID, value []byte) error {
	o, err := decodeObject(id, value)
	if errors.Is(err, objects.ErrPurged) {
		return nil
	}
	if err == nil {
		o, err = verified(o)
	}
	c.referred = append(append(c.referred, o.Parents...), o.Links...)
	return err
}

// copyLog copies the log entries behind the last one. They never change.
func (c *compaction) copyLog() error {
	return c.src.each(logBucket, logKey(c.seq+1), false, nil, func(key, value []byte) error {
		list, err := decodeEntries(key, value)
		if err != nil {
			return err
		}
		for _, e := range list {
			for _, u := range e.Refs {
				if c.refs != nil {
					c.refs[u.Name] = true
				}
				if c.reach != nil && e.Seq > c.reach.seq {
					c.referred = append(c.referred, u.Old, u.New)
				}
			}
			c.seq = e.Seq
			if err := c.out.add(c.log.add(e)...); err != nil {
				return err
			}
		}
		return nil
	})
}

// copyReferred copies what was not kept, and is referred to by what was written meanwhile:
// somebody has put it again, and it was there.
func (c *compaction) copyReferred() error {
	if c.reach == nil {
		return nil
	}
	r := c.reach
	before, kept, young := r.marks, slices.Clone(r.kept), slices.Clone(r.young)
	gone := map[objects.ID]bool{}
	for id, o := range r.loose {
		if o.fate == fateGone {
			gone[id] = true
		}
	}
	err := r.src.view(func(l *snapshot) error {
		l = l.withoutJournal()
		for _, id := range c.referred {
			if err := r.mark(l, id, fateKept); err != nil {
				return err
			}
		}
		return nil
	})
	c.referred = c.referred[:0]
	if err == nil {
		err = r.propagate()
	}
	if err != nil || r.marks == before {
		return err
	}
	for id := range gone {
		if r.loose[id].fate != fateGone {
			if err := c.bringBack(id); err != nil {
				return err
			}
		}
	}
	for _, rows := range r.packs {
		fresh := func(i int) bool {
			bit := rows.first + i
			return r.keeps(bit) && !kept.has(bit) && !young.has(bit)
		}
		if rows.n > c.pack || !anyRow(rows.rows, fresh) {
			continue
		}
		if err := c.bringBackRows(rows.n, fresh); err != nil {
			return err
		}
	}
	return nil
}

// anyRow reports whether f holds for one of n rows.
func anyRow(n int, f func(i int) bool) bool {
	for i := range n {
		if f(i) {
			return true
		}
	}
	return false
}

// bringBack copies a loose object that was left out.
func (c *compaction) bringBack(id objects.ID) error {
	var value []byte
	err := c.src.view(func(l *snapshot) (err error) {
		value, err = l.withoutJournal().get(objectsBucket, id[:])
		return err
	})
	if err != nil || value == nil {
		return err // it is in a pack by now
	}
	c.loose[id] = looseCopy{copied: true, tombstone: isTombstone(value)}
	c.kept++
	return c.out.add(setKey(objectsBucket, bytes.Clone(id[:]), compressRecord(value)))
}

// bringBackRows copies objects of a pack that were left out.
func (c *compaction) bringBackRows(n uint32, wanted func(i int) bool) error {
	var p *pack
	var body []byte
	var sound bool
	err := c.src.view(func(l *snapshot) (err error) {
		l = l.withoutJournal()
		if p, err = l.pack(n); err == nil {
			body, sound, err = l.body(p)
		}
		return err
	})
	if err != nil {
		return err
	}
	return c.putRows(p, body, sound, wanted)
}

// copyRefs copies all refs, or those that were moved since.
func (c *compaction) copyRefs() error {
	if c.refs == nil {
		c.refs = map[string]bool{}
		err := c.src.each(refsBucket, []byte{}, false, nil, func(key, value []byte) error {
			r, err := decodeRef(string(key), value)
			if err != nil {
				return err
			}
			return c.out.add(setKey(refsBucket, key, value), setKey(recentBucket, recentKey(r.Ref), []byte{}))
		})
		if err != nil {
			return err
		}
		return c.copyLog() // what moved while they were read is noted
	}
	if len(c.refs) > 0 {
		if err := c.out.write(); err != nil {
			return err
		}
	}
	for name := range c.refs {
		if err := c.copyRef(name); err != nil {
			return err
		}
	}
	clear(c.refs)
	return nil
}

func (c *compaction) copyRef(name string) error {
	var now []byte
	err := c.src.view(func(l *snapshot) (err error) {
		now, err = l.withoutJournal().get(refsBucket, []byte(name))
		return err
	})
	if err != nil {
		return err
	}
	old, err := c.out.get(refsBucket, []byte(name))
	if err != nil {
		return err
	}
	if old != nil {
		r, err := decodeRef(name, old)
		if err != nil {
			return err
		}
		if err := c.out.add(deleteKey(refsBucket, []byte(name)), deleteKey(recentBucket, recentKey(r.Ref))); err != nil {
			return err
		}
	}
	if now == nil {
		return nil
	}
	r, err := decodeRef(name, now)
	if err != nil {
		return err
	}
	return c.out.add(setKey(refsBucket, []byte(name), now), setKey(recentBucket, recentKey(r.Ref), []byte{}))
}

// copyLast copies what is left, while the caller holds the lock, and the rest of the log.
func (c *compaction) copyLast(l *snapshot) error {
	c.src.locked = l
	if err := c.copyRound(); err != nil {
		return err
	}
	c.lockedSize = c.round
	if err := c.out.add(c.log.end()...); err != nil {
		return err
	}
	return c.out.addRun(0)
}

// verify reads everything that was written.
func (c *compaction) verify() error {
	f, err := os.Open(c.out.path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	m, err := page.ReadMeta(f, info.Size())
	if err != nil {
		return err
	}
	have := 0
	s := &fileSnapshot{store: &store{path: c.out.path}, file: f, size: info.Size(), meta: m, ctx: context.Background(), sealed: true}
	a := &checker{store: s.store, files: s, meta: m, to: objects.Audit{
		Objects:   func(list []objects.Object) error { have += len(list); return nil },
		Tombstone: func(objects.Tombstone) error { have++; return nil },
		Damage:    func(d objects.Damage) error { return fmt.Errorf("%s of the new file: %s", d.Where, d.What) },
	}}
	a.prepare()
	if err := a.file(); err != nil {
		return err
	}
	if have != c.kept {
		return fmt.Errorf("the new file has %d objects of %d", have, c.kept)
	}
	c.verified = true
	return nil
}

// metaNow returns the changes that a file of gc needs: the ages of its packs begin anew.
func (c *compaction) metaNow(bound journal.Binding) []journal.Change {
	list := []journal.Change{setKey(metaBucket, journalKey, encodeBinding(bound))}
	if c.out.packs > 0 {
		list = append(list, setKey(metaBucket, agesKey, encodeAges([]packAge{{c.out.packs, uint64(max(time.Now().UnixMilli(), 0))}})))
	}
	return list
}
