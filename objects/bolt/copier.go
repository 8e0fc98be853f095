package bolt

import (
	"bytes"
	"maps"
	"slices"

	"github.com/tract-vcs/tract/objects"
)

// A copier copies a store into a new file while others write to it: for gc what is marked, packed
// closely; for a backup everything, as it is stored. It copies in rounds: the first copies all there
// is, each of the next what was written meanwhile, which is less each time, and the last one what is
// left when the caller holds the lock of the store. Packs and log entries never change, so they are
// copied in the order of their numbers; refs are copied again when they have moved. A tombstone
// goes when its object is put again, so that only the last round copies tombstones.
type copier struct {
	kept int   // objects in the new file
	size int64 // bytes of packs that the last round has read

	src   *source
	out   *newFile
	marks *marks // nil: everything is kept as it is

	lastPack  uint32           // the last pack of the source that was copied
	lastEntry uint64           // the last log entry that was
	moved     map[string]bool  // refs that were moved since they were copied; nil: they were not copied yet
	referred  []objects.ID     // by what was written since the marks were made
	pending   []objects.Object // for the next packs
	bytes     int              // of their data
	arena     arena            // for the pack that is open
}

const (
	roundBytes   = 4 << 20 // what a round may read of packs while the store is locked
	maxRounds    = 10
	pendingBytes = 2 << 20 // how much data is packed together
	pendingCount = 1 << 14
	restoreCount = 1 << 8  // how many objects are looked for in one view
	refCount     = 1 << 10 // how many refs are read in one
)

// copyRounds copies until little is left for the round under the lock.
func (c *copier) copyRounds() error {
	for range maxRounds {
		if err := c.copyRound(); err != nil {
			return err
		}
		if c.size < roundBytes {
			break
		}
	}
	return nil
}

// copyRound copies what was written since the last round.
func (c *copier) copyRound() error {
	c.size = 0
	return runInOrder(
		func() error { return c.src.packs(c.lastPack, c.copyPack) },
		c.copyLogEntries, c.copyReferred, c.copyTombstones, c.flush, c.copyAllOrMovedRefs, c.out.write)
}

// runInOrder calls functions until one returns an error.
func runInOrder(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// copyPack copies a pack, or what is kept of it. One that was written since the marks were made
// is kept as it is, with what it refers to.
func (c *copier) copyPack(raw rawPack) error {
	c.lastPack = raw.n
	c.size += int64(len(raw.head) + len(raw.body))
	if c.marks == nil {
		return c.out.addPack(raw)
	}
	c.arena.reset()
	p, data, sound, err := openPack(&c.arena, raw)
	if err != nil {
		return err
	}
	_, marked := c.marks.findPack(p.n)
	list, edgeBuf := make([]objects.Object, 0, p.Len()), make([]objects.ID, 0, 2*p.Len())
	for i := range p.Len() {
		if !p.isPurged(i) && c.marks.keeps(p.n, i) {
			list = append(list, p.objectWith(i, data, &edgeBuf))
		}
	}
	for k := p.Len(); !marked && k < p.idCount(); k++ {
		c.referred = append(c.referred, *p.ID(k))
	}
	isDense := len(list) == p.Len() && (2*p.BodySize() >= denseLimits.bytes || p.Len() == 1 && p.BodySize() >= largeSize) && codec(raw.body[8]) == codecZstd
	if sound && (!marked || isDense) {
		return c.copyWholePack(raw, list)
	}
	for _, one := range list {
		one.Data = bytes.Clone(one.Data) // the pack does not stay in memory
		if err := c.put(one); err != nil {
			return err
		}
	}
	return nil
}

// copyWholePack copies a pack, which has these objects, as it is.
func (c *copier) copyWholePack(raw rawPack, list []objects.Object) error {
	if err := c.flush(); err != nil {
		return err
	}
	if err := checkObjects(list); err != nil {
		return err
	}
	c.kept += len(list)
	return c.out.addPack(raw)
}

// checkObjects compares objects with their ids: the checksum of their pack will stand for that.
func checkObjects(list []objects.Object) error {
	for i := range list {
		if err := list[i].Check(); err != nil {
			return err
		}
	}
	return nil
}

// put adds an object to the next packs. These end with a commit, so that a commit has its content
// beside it, unless none comes for long.
func (c *copier) put(o objects.Object) error {
	c.pending, c.bytes, c.kept = append(c.pending, o), c.bytes+len(o.Data), c.kept+1
	full := max(c.bytes/pendingBytes, len(c.pending)/pendingCount)
	if full > 1 || full == 1 && o.Kind == objects.KindCommit {
		return c.flush()
	}
	return nil
}

// flush makes packs of the objects that were put.
func (c *copier) flush() error {
	if len(c.pending) == 0 {
		return nil
	}
	err := checkObjects(c.pending)
	if err == nil {
		err = c.out.addObjects(c.pending)
	}
	c.pending, c.bytes = c.pending[:0], 0
	return err
}

// copyLogEntries copies the log entries behind the last one, and notes which refs they move.
func (c *copier) copyLogEntries() error {
	err := c.src.logEntries(c.lastEntry, func(e objects.LogEntry) error {
		for _, u := range e.Refs {
			if c.moved != nil {
				c.moved[u.Name] = true
			}
			if c.marks != nil && e.Seq > c.marks.lastEntry {
				c.referred = append(c.referred, u.Old, u.New)
			}
		}
		c.lastEntry = e.Seq
		return c.out.add(c.out.log.add(e)...)
	})
	if err != nil {
		return err
	}
	return c.out.add(c.out.log.flush()...)
}

// copyReferred copies objects that were left out, and to which objects refer that were written since
// the marks were made: a writer put them again while they still existed. Tombstones among them are
// marked, so that copyTombstones copies them.
func (c *copier) copyReferred() error {
	for len(c.referred) > 0 {
		var found []objects.Object
		err := c.src.view(func(l *snapshot) error {
			for n := 0; n < restoreCount && len(c.referred) > 0; n++ {
				id := c.referred[len(c.referred)-1]
				c.referred = c.referred[:len(c.referred)-1]
				edges, newInPack, err := c.marks.markNew(l, id)
				if err != nil {
					return err
				}
				if newInPack {
					o, err := l.object(id)
					if err != nil {
						return err
					}
					found, edges = append(found, o), slices.Concat(edges, o.Parents, o.Links)
				}
				c.referred = append(c.referred, edges...)
			}
			return nil
		})
		if err != nil {
			return err
		}
		for _, o := range found {
			if err := c.put(o); err != nil {
				return err
			}
		}
	}
	return nil
}

// copyTombstones copies the tombstones, in the last round.
func (c *copier) copyTombstones() error {
	if c.src.lockedSnapshot == nil {
		return nil
	}
	return c.src.records(func(id objects.ID, value []byte) error {
		if c.marks != nil && c.marks.removesTombstone(id) {
			return nil
		}
		return c.out.add(setKey(objectsBucket, id[:], value))
	})
}

// copyAllOrMovedRefs copies all refs the first time, and then those that were moved since. A ref that moves
// while refs are read is copied again in the next round.
func (c *copier) copyAllOrMovedRefs() error {
	if c.moved == nil {
		c.moved = map[string]bool{}
		return c.src.refs(func(name string, _ objects.ID, value []byte) error { return c.out.setOrDeleteRef(name, value) })
	}
	names := slices.Sorted(maps.Keys(c.moved))
	clear(c.moved)
	for some := range slices.Chunk(names, refCount) {
		err := c.src.view(func(l *snapshot) error {
			for _, name := range some {
				value, err := l.get(refsBucket, []byte(name))
				if err == nil {
					err = c.out.setOrDeleteRef(name, value)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
