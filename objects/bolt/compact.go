package bolt

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"sync"

	"go.etcd.io/bbolt"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/checksum"
	"github.com/tract-vcs/tract/objects/bolt/internal/journal"
	"github.com/tract-vcs/tract/objects/bolt/internal/page"
)

// compaction is a file that is to take the place of the store's.
type compaction struct {
	path    string
	old     os.FileInfo // of the file it is made from
	mapMost int64       // see store
	db      *bbolt.DB
	packs   uint32 // in it
	checked uint32 // the last of them that was read back
	from    uint32 // last pack of the old file that is in it
	entry   uint64 // last log entry that is in it
	log     entryRun
	entries []indexEntry
	pending []objects.Object
	size    int
	changes []journal.Change
	bytes   int
	kept    int
	erased  map[objects.ID]bool // of which the new file has the old tombstone
}

// How much a compaction packs together, and writes in one transaction.
const (
	compactPending = 16 << 20
	compactWrite   = 16 << 20
)

// compact writes what is kept of a moment into a new file.
func (s *store) compact(h *steady, w *sweeper) (c *compaction, err error) {
	c = &compaction{mapMost: s.mapMost, erased: map[objects.ID]bool{}}
	defer func() {
		if err != nil {
			c.discard()
		}
	}()
	if c.old, err = h.file.Stat(); err != nil {
		return nil, err
	}
	l := newLook(h, h.meta)
	version, err := l.version()
	if err != nil {
		return c, err
	}
	if version = max(version, formatPacked); len(w.erase) > 0 {
		version = max(version, formatErased)
	}
	if err = c.begin(s.path, version); err != nil {
		return c, err
	}
	for _, step := range []func(*look, *sweeper) error{c.copyPacks, c.copyLoose, c.bury, c.copyLog} {
		if err = step(l, w); err != nil {
			return c, err
		}
	}
	if err = c.flush(); err == nil {
		err = c.write()
	}
	if err == nil {
		err = c.verify()
	}
	return c, err
}

func (c *compaction) sameFile(f *os.File) (bool, error) {
	info, err := f.Stat()
	return err == nil && os.SameFile(info, c.old), err
}

// put gathers objects for packs, and changes for a transaction.
func (c *compaction) put(o objects.Object) error {
	if c.erased[o.ID] { // it was put again meanwhile
		if err := c.add(deleteKey(objectsBucket, bytes.Clone(o.ID[:]))); err != nil {
			return err
		}
	}
	c.pending, c.size, c.kept = append(c.pending, o), c.size+len(o.Data), c.kept+1
	if c.size < compactPending && len(c.pending) < compactPending/256 {
		return nil
	}
	return c.flush()
}

// flush makes packs of what is gathered.
func (c *compaction) flush() error {
	if len(c.pending) == 0 {
		return nil
	}
	runs := cut(inLines(c.pending), dense)
	values := make([][2][]byte, len(runs))
	var wg sync.WaitGroup
	for i, run := range runs {
		n := c.packs + 1 + uint32(i)
		wg.Go(func() { values[i][0], values[i][1] = encodePack(n, run, codecZstd) })
	}
	wg.Wait()
	c.pending, c.size = nil, 0
	for i, run := range runs {
		ids := make([]objects.ID, len(run))
		for k := range run {
			ids[k] = run[k].ID
		}
		if err := c.addPack(ids, values[i][0], values[i][1]); err != nil {
			return err
		}
	}
	return nil
}

// addPack writes the next pack.
func (c *compaction) addPack(ids []objects.ID, head, body []byte) error {
	c.packs++
	for i, id := range ids {
		c.entries = append(c.entries, newIndexEntry(id, place{c.packs, i}))
	}
	return c.add(setKey(headsBucket, packKey(c.packs), head), setKey(bodiesBucket, packKey(c.packs), body))
}

// takeOver writes a pack as it is, if it is in zstd, not small, and all of it is kept.
func (c *compaction) takeOver(p *pack, head, body []byte, sound bool, w *sweeper) (done bool, err error) {
	if 2*p.BodySize() < dense.bytes || codec(body[8]) != codecZstd || !sound || !p.sound {
		return false, nil
	}
	ids := make([]objects.ID, p.Len())
	for i := range ids {
		if ids[i] = p.id(i); !w.keeps(ids[i]) {
			return false, nil
		}
	}
	if err := c.flush(); err != nil {
		return false, err
	}
	head, body = bytes.Clone(head), bytes.Clone(body)
	key := packKey(c.packs + 1)
	binary.BigEndian.PutUint64(head, checksum.Sum(key, head[8:]))
	binary.BigEndian.PutUint64(body, checksum.Sum(key, body[8:]))
	c.kept += len(ids)
	return true, c.addPack(ids, head, body)
}

func (c *compaction) add(list ...journal.Change) error {
	for _, one := range list {
		c.changes, c.bytes = append(c.changes, one), c.bytes+len(one.Key)+len(one.Value)
	}
	if c.bytes < compactWrite {
		return nil
	}
	return c.write()
}

// write writes the changes, in the order of keys.
func (c *compaction) write() error {
	info, err := os.Stat(c.path)
	if err != nil {
		return err
	}
	if err := checkMapSize(c.path, info.Size()+int64(c.bytes), c.mapMost); err != nil {
		return err
	}
	list := c.changes
	c.changes, c.bytes = nil, 0
	slices.SortStableFunc(list, func(a, b journal.Change) int {
		return cmp.Or(cmp.Compare(a.Bucket, b.Bucket), bytes.Compare(a.Key, b.Key))
	})
	return protect(func() error {
		return c.db.Update(func(tx *bbolt.Tx) error {
			for _, one := range list {
				b := tx.Bucket([]byte(buckets[one.Bucket]))
				b.FillPercent = 1
				err := error(nil)
				if one.Value == nil {
					err = b.Delete(one.Key)
				} else {
					err = b.Put(one.Key, one.Value)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// copyPacks takes over what is kept of packs, those beyond the last that is in.
func (c *compaction) copyPacks(l *look, w *sweeper) error {
	for e, err := range l.ascend(headsBucket, packKey(c.from+1)) {
		if err != nil {
			return err
		}
		head, err := e.Value()
		if err != nil {
			return err
		}
		n := binary.BigEndian.Uint32(e.Key)
		p, err := parsePack(n, head)
		if err != nil {
			return err
		}
		if err := c.copyPack(l, p, head, w); err != nil {
			return err
		}
		c.from = n
	}
	return nil
}

func (c *compaction) copyPack(l *look, p *pack, head []byte, w *sweeper) error {
	closed, err := l.closedBody(p)
	if err != nil {
		return err
	}
	body, sound, err := openBody(nil, p, closed)
	if err != nil {
		return err
	}
	if done, err := c.takeOver(p, head, closed, sound, w); done || err != nil {
		return err
	}
	for i := range p.Len() {
		if !w.keeps(p.id(i)) {
			continue
		}
		var room []objects.ID
		o, err := p.whole(i, body, sound, nil, &room)
		if err == nil {
			o.Data = bytes.Clone(o.Data) // not all of the pack for the sake of one
			err = c.put(o)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// copyLoose takes over the large objects.
func (c *compaction) copyLoose(l *look, w *sweeper) error {
	for e, err := range l.ascend(objectsBucket, nil) {
		var value []byte
		if err == nil {
			value, err = e.Value()
		}
		if err != nil {
			return err
		}
		if !w.keeps(objects.ID(e.Key)) {
			continue
		}
		if isTombstone(value) {
			c.erased[objects.ID(e.Key)] = true
		}
		if err := c.add(setKey(objectsBucket, bytes.Clone(e.Key), closeRecord(bytes.Clone(value)))); err != nil {
			return err
		}
		c.kept++
	}
	return nil
}

// copyLog takes over the log beyond what is in. Its entries never change.
func (c *compaction) copyLog(l *look, _ *sweeper) error {
	for e, err := range l.ascend(logBucket, logKey(c.entry+1)) {
		var value []byte
		if err == nil {
			value, err = e.Value()
		}
		if err != nil {
			return err
		}
		list, err := decodeEntries(e.Key, value)
		if err != nil {
			return err
		}
		for _, entry := range list {
			if err := c.add(c.log.add(entry)...); err != nil {
				return err
			}
			c.entry = entry.Seq
		}
	}
	return nil
}

// reopen opens what was written.
func (c *compaction) reopen() (f *os.File, size int64, m page.Meta, err error) {
	if f, err = os.Open(c.path); err != nil {
		return nil, 0, m, err
	}
	info, err := f.Stat()
	if err == nil {
		size = info.Size()
		m, err = page.ReadMeta(f, size)
	}
	if err != nil {
		_ = f.Close()
	}
	return f, size, m, err
}

// verify reads what was written: but for what comes meanwhile it is all that there will be.
func (c *compaction) verify() error {
	f, size, m, err := c.reopen()
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	have := 0
	s := &steady{store: &store{path: c.path}, file: f, size: size, meta: m, ctx: context.Background()}
	a := &auditor{store: s.store, files: s, meta: m, to: objects.Audit{
		Objects:   func(list []objects.Object) error { have += len(list); return nil },
		Tombstone: func(objects.Tombstone) error { have++; return nil },
		Damage:    func(d objects.Damage) error { return fmt.Errorf("%s of the new file: %s", d.Where, d.What) },
	}}
	a.prepare()
	a.pages = make([]pageState, m.HighWater)
	if err := a.trees(); err != nil {
		return err
	}
	if have != c.kept {
		return fmt.Errorf("the new file has %d objects of %d", have, c.kept)
	}
	c.checked = c.packs
	return nil
}
