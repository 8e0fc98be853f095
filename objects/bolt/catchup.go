package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/journal"
)

// catchUp adds what came since, and makes the file whole.
func (c *compaction) catchUp(l *look, w *sweeper, bound journal.Binding) error {
	leading, err := c.leading(l)
	if err != nil {
		return err
	}
	more, err := c.newLoose(l, w)
	if err != nil {
		return err
	}
	for _, id := range w.resurrect(append(leading, more...)) {
		at, packed, err := l.locate(id)
		if err != nil {
			return err
		}
		if packed && at.pack > c.from {
			continue // it comes with its pack
		}
		o, err := l.object(id)
		if e := (*objects.PurgedError)(nil); errors.As(err, &e) {
			err = c.add(setKey(objectsBucket, bytes.Clone(id[:]), encodeTombstone(e.Tombstone)))
		} else if err == nil {
			err = c.put(o)
		}
		if err != nil {
			return err
		}
	}
	for _, step := range []func(*look, *sweeper) error{c.copyPacks, c.copyLog, c.copyRefs} {
		if err := step(l, w); err != nil {
			return err
		}
	}
	if err := errors.Join(c.flush(), c.add(c.log.end()...)); err != nil {
		return err
	}
	if err := c.finish(bound); err != nil {
		return err
	}
	return c.readBack()
}

// readBack reads the packs that came after the others were verified.
func (c *compaction) readBack() error {
	if c.packs == c.checked {
		return nil
	}
	f, _, m, err := c.reopen()
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	l := newLook(f, m)
	for ; c.checked < c.packs; c.checked++ {
		if err := l.readBack(c.checked + 1); err != nil {
			return fmt.Errorf("pack %d of the new file: %w", c.checked+1, err)
		}
	}
	return nil
}

// readBack holds every object of a pack against its id.
func (l *look) readBack(n uint32) error {
	p, err := l.pack(n)
	if err != nil {
		return err
	}
	body, sound, err := l.body(p)
	if err != nil {
		return err
	}
	for i := range p.Len() {
		var room []objects.ID
		o, err := p.whole(i, body, sound, nil, &room)
		if err == nil {
			_, err = checked(o)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// leading gives what objects and moves lead to that came since.
func (c *compaction) leading(l *look) (ids []objects.ID, err error) {
	for e, err := range l.ascend(headsBucket, packKey(c.from+1)) {
		if err != nil {
			return nil, err
		}
		head, err := e.Value()
		if err != nil {
			return nil, err
		}
		p, err := parsePack(binary.BigEndian.Uint32(e.Key), head)
		if err != nil {
			return nil, err
		}
		for i := range p.Len() {
			var room []objects.ID
			parents, links := p.Edges(i, &room)
			ids = append(append(ids, parents...), links...)
		}
	}
	// Some entries that the journal had when the store was looked at may lie together
	// with newer ones, under the key of the first.
	for e, err := range l.ascend(logBucket, logKey(c.entry+1)) {
		var value []byte
		if err == nil {
			value, err = e.Value()
		}
		if err != nil {
			return nil, err
		}
		list, err := decodeEntries(e.Key, value)
		if err != nil {
			return nil, err
		}
		for _, entry := range list {
			for _, u := range entry.Refs {
				ids = append(ids, u.Old, u.New)
			}
		}
	}
	return ids, nil
}

// newLoose takes over large objects that came since, and gives what they lead to.
func (c *compaction) newLoose(l *look, w *sweeper) (leading []objects.ID, err error) {
	for e, err := range l.ascend(objectsBucket, nil) {
		if err != nil {
			return nil, err
		}
		id := objects.ID(e.Key)
		n, known := w.at[id]
		buried := known && w.nodes[n].erased
		old := known && w.nodes[n].seen && w.nodes[n].pack == 0 && !buried
		if again := buried && w.erase[id] == nil; old || !again && !w.keeps(id) {
			continue
		}
		value, err := e.Value()
		if err != nil {
			return nil, err
		}
		if isTombstone(value) {
			continue // copied already
		}
		o, err := decodeObject(id, value)
		if err == nil {
			o, err = checked(o)
		}
		if err != nil {
			return nil, err
		}
		if buried {
			w.alive[n] = fateKept // it is put again here, and need not be once more
		}
		leading = append(append(leading, o.Parents...), o.Links...)
		if err := c.add(setKey(objectsBucket, bytes.Clone(e.Key), closeRecord(bytes.Clone(value)))); err != nil {
			return nil, err
		}
	}
	return leading, nil
}

// copyRefs takes over the refs as they are now.
func (c *compaction) copyRefs(l *look, _ *sweeper) error {
	for e, err := range l.ascend(refsBucket, nil) {
		var value []byte
		if err == nil {
			value, err = e.Value()
		}
		if err != nil {
			return err
		}
		r, err := decodeRef(string(e.Key), value)
		if err != nil {
			return err
		}
		if err := c.add(setKey(refsBucket, bytes.Clone(e.Key), bytes.Clone(value)), setKey(recentBucket, recentKey(r.Ref), []byte{})); err != nil {
			return err
		}
	}
	return nil
}

// finish writes the index and what the file says of itself, and makes it durable.
func (c *compaction) finish(bound journal.Binding) error {
	list, all := encodeRun(c.entries)
	list = append(list, setKey(metaBucket, runsKey, all.encode()), setKey(metaBucket, journalKey, encodeBinding(bound)))
	if c.packs > 0 {
		list = append(list, setKey(metaBucket, foldsKey, encodeFolds([]folded{{c.packs, uint64(max(time.Now().UnixMilli(), 0))}})))
	}
	if err := errors.Join(c.add(list...), c.write()); err != nil {
		return err
	}
	db := c.db
	c.db = nil
	return protect(func() error { return errors.Join(db.Sync(), db.Close()) })
}
