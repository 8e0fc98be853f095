package compaction

import (
	"bytes"
	"maps"
	"slices"

	"github.com/tract-vcs/tract/objects"
)

// A Copier copies a store into a new file.
type Copier struct {
	Kept int   // objects and tombstones in the new file
	Size int64 // bytes of packs that the last round has read

	src   Source
	out   Target
	marks *Marks // nil: everything is kept as it is

	round    int
	pack     uint32                // the last pack of the source that was copied
	entry    uint64                // the last log entry that was
	records  map[objects.ID]copied // that were copied
	moved    map[string]bool       // refs that were moved since they were copied; nil: they were not copied yet
	referred []objects.ID          // by what was written since the marks were made
	pending  []objects.Object      // for the next packs
	size     int                   // of their data
}

// copied is a record in the new file.
type copied struct {
	tombstone bool
	round     int // that has seen it last
}

// New returns a Copier. Without marks everything is kept as it is.
func New(src Source, out Target, marks *Marks) *Copier {
	return &Copier{src: src, out: out, marks: marks, records: map[objects.ID]copied{}}
}

const (
	roundBytes   = 4 << 20 // what a round may read of packs while the store is locked
	mostRounds   = 10
	pendingBytes = 2 << 20 // how much data is packed together
	pendingCount = 1 << 14
	restoreCount = 1 << 8  // how many objects are looked for in one view
	refCount     = 1 << 10 // how many refs are read in one
)

// Rounds copies until little is left for the round under the lock.
func (c *Copier) Rounds() error {
	for range mostRounds {
		if err := c.Round(); err != nil {
			return err
		}
		if c.Size < roundBytes {
			break
		}
	}
	return nil
}

// Round copies what was written since the last round.
func (c *Copier) Round() error {
	c.Size = 0
	c.round++
	for _, step := range []func() error{
		func() error { return c.src.Packs(c.pack, c.copyPack) },
		c.copyEntries, c.copyRecords, c.flush, c.copyRefs, c.out.Write,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// copyPack copies a pack, or what is kept of it. One that was written since the marks were made
// is kept as it is, with what it refers to.
func (c *Copier) copyPack(p Pack) error {
	c.pack = p.Number
	c.Size += int64(len(p.Head) + len(p.Body))
	if c.marks == nil {
		return c.out.AddPack(p)
	}
	o, err := c.src.Open(p)
	if err != nil {
		return err
	}
	_, marked := c.marks.pack(p.Number)
	list := make([]objects.Object, 0, o.Len())
	for i := range o.Len() {
		if !o.isPurged(i) && c.marks.keeps(p.Number, i) {
			list = append(list, o.Object(i))
		}
	}
	for k := 0; !marked && k < o.Others; k++ {
		c.referred = append(c.referred, *o.ID(o.Len() + k))
	}
	if o.Sound && (!marked || o.Dense && len(list) == o.Len()) {
		return c.addPack(p, list)
	}
	for _, one := range list {
		one.Data = bytes.Clone(one.Data) // the pack does not stay in memory
		if err := c.put(one); err != nil {
			return err
		}
	}
	return nil
}

// addPack adds a pack with these objects as it is.
func (c *Copier) addPack(p Pack, list []objects.Object) error {
	if err := c.flush(); err != nil {
		return err
	}
	if err := check(list); err != nil {
		return err
	}
	c.Kept += len(list)
	return c.out.AddPack(p)
}

// check compares objects with their ids: the checksum of their pack will stand for that.
func check(list []objects.Object) error {
	for i := range list {
		if err := list[i].Check(); err != nil {
			return err
		}
	}
	return nil
}

// put adds an object to the next packs.
func (c *Copier) put(o objects.Object) error {
	c.pending, c.size, c.Kept = append(c.pending, o), c.size+len(o.Data), c.Kept+1
	if c.size < pendingBytes && len(c.pending) < pendingCount {
		return nil
	}
	return c.flush()
}

// flush makes packs of the objects that were put.
func (c *Copier) flush() error {
	if len(c.pending) == 0 {
		return nil
	}
	err := check(c.pending)
	if err == nil {
		err = c.out.AddObjects(c.pending)
	}
	c.pending, c.size = c.pending[:0], 0
	return err
}

// copyEntries copies the log entries behind the last one, and notes what they move.
func (c *Copier) copyEntries() error {
	return c.src.Entries(c.entry, func(e objects.LogEntry) error {
		for _, u := range e.Refs {
			if c.moved != nil {
				c.moved[u.Name] = true
			}
			if c.marks != nil && e.Seq > c.marks.last {
				c.referred = append(c.referred, u.Old, u.New)
			}
		}
		c.entry = e.Seq
		return c.out.AddEntry(e)
	})
}

// copyRecords copies the records that were not copied yet, and what was left out that is
// referred to by now.
func (c *Copier) copyRecords() error {
	for again := true; again; again = len(c.referred) > 0 {
		if err := c.copyReferred(); err != nil {
			return err
		}
		if err := c.copyNewRecords(); err != nil {
			return err
		}
	}
	return nil
}

// copyReferred copies objects that were left out, and to which objects refer that were written since
// the marks were made: a writer put them again while they still existed. Records among them are
// copied by the next copyNewRecords.
func (c *Copier) copyReferred() error {
	for len(c.referred) > 0 {
		var found []objects.Object
		err := c.src.View(func(v View) error {
			for n := 0; n < restoreCount && len(c.referred) > 0; n++ {
				id := c.referred[len(c.referred)-1]
				c.referred = c.referred[:len(c.referred)-1]
				edges, packed, err := c.marks.visit(v, id)
				if err != nil {
					return err
				}
				if packed {
					o, err := v.Object(id)
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

// copyNewRecords copies the records that were not copied yet, and deletes the tombstones of
// objects that were put again and are in a pack by now.
func (c *Copier) copyNewRecords() error {
	wanted := func(id objects.ID, tombstone bool) bool {
		was, seen := c.records[id]
		if seen {
			c.records[id] = copied{was.tombstone, c.round}
			return was.tombstone && !tombstone
		}
		return c.marks == nil || !c.marks.removes(id, tombstone)
	}
	err := c.src.Records(wanted, func(r Record) error {
		if c.marks != nil && c.marks.isNew(r) {
			o, err := c.src.Decode(r)
			if err != nil {
				return err
			}
			c.referred = append(append(c.referred, o.Parents...), o.Links...)
		}
		if _, seen := c.records[r.ID]; !seen {
			c.Kept++
		}
		c.records[r.ID] = copied{r.Tombstone, c.round}
		return c.out.SetRecord(r)
	})
	for id, was := range c.records {
		if err == nil && was.tombstone && was.round < c.round {
			delete(c.records, id)
			c.Kept--
			err = c.out.DeleteRecord(id)
		}
	}
	return err
}

// copyRefs copies all refs, or those that were moved since. What moves while they are read is
// copied again in the next round.
func (c *Copier) copyRefs() error {
	if c.moved == nil {
		c.moved = map[string]bool{}
		return c.src.Refs(func(name string, _ objects.ID, value []byte) error { return c.out.SetRef(name, value) })
	}
	names := slices.Sorted(maps.Keys(c.moved))
	clear(c.moved)
	for some := range slices.Chunk(names, refCount) {
		err := c.src.View(func(v View) error {
			for _, name := range some {
				value, err := v.Ref(name)
				if err == nil {
					err = c.out.SetRef(name, value)
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
