package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/tract-vcs/tract/objects"
)

// row looks at one key of a bucket.
func (a *auditor) row(bucket int, p *page, i int, key []byte) error {
	e := entry{key: key, page: p, element: p.element(i)}
	n := node{id: p.id, bucket: bucket}
	if e.flags != 0 {
		return a.spoilt(n, fmt.Errorf("key %x: a bucket in the place of a value", key))
	}
	if buckets[bucket] == bodiesBucket {
		return a.noteBody(n, e)
	}
	value, err := e.bytes()
	if err != nil {
		return a.spoilt(n, err)
	}
	switch buckets[bucket] {
	case metaBucket:
		err = a.metaRow(key, value)
	case headsBucket:
		if len(key) != 4 {
			return a.spoilt(n, fmt.Errorf("the key of a pack has %d bytes", len(key)))
		}
		return a.pack(binary.BigEndian.Uint32(key), value)
	case indexBucket:
		err = a.indexRow(key, value)
	case objectsBucket:
		return a.loose(n.where(), key, value)
	default:
		return a.nameRow(bucket, key, value)
	}
	if err != nil && !foreign(err) {
		return a.spoilt(n, err)
	}
	return err
}

func (a *auditor) metaRow(key, value []byte) error {
	var err error
	switch {
	case bytes.Equal(key, formatKey):
		_, err = decodeFormat(value)
	case bytes.Equal(key, journalKey):
		return nil // binding has looked at it
	case bytes.Equal(key, runsKey):
		a.index.runs, err = decodeRuns(value)
		a.index.known = err == nil
	case bytes.Equal(key, foldsKey):
		_, err = decodeFolds(value)
	default:
		_, err = unseal(key, value)
	}
	if err != nil {
		return fmt.Errorf("%q: %w", key, err)
	}
	return nil
}

// loose looks at an object that lies for itself.
func (a *auditor) loose(where string, key, value []byte) error {
	if len(key) != idSize {
		return a.damage(where, errors.New("an object whose key is no id"), "an object cannot be found by its id")
	}
	o, err := decodeObject(objects.ID(key), value)
	if e, ok := errors.AsType[*objects.ErasedError](err); ok {
		return a.erased(e.Tombstone)
	}
	if err == nil {
		err = o.Check()
	}
	return a.object(where, o, err)
}

// erased passes on a tombstone, unless the journal has the object again.
func (a *auditor) erased(t objects.Tombstone) error {
	if a.to.Erased == nil {
		return nil
	}
	if a.over != nil {
		now := a.over.now()
		if _, again := a.over.get(bucketNumber(objectsBucket), t.ID[:], &now); again {
			return nil
		}
	}
	return a.to.Erased(t)
}

// object passes on an object, or the damage to it.
func (a *auditor) object(where string, o objects.Object, err error) error {
	if err == nil {
		if a.to.Object == nil {
			return nil
		}
		return a.to.Object(o)
	}
	if c, ok := errors.AsType[*objects.CorruptError](err); ok {
		err = c.Cause
	}
	return a.tell(objects.Damage{ID: o.ID, Where: where, What: err.Error()})
}

func (a *auditor) noteBody(n node, e entry) error {
	if len(e.key) != 4 {
		return a.spoilt(n, fmt.Errorf("the key of a pack has %d bytes", len(e.key)))
	}
	x := extent{at: e.page.at + int64(e.element.value), size: int64(e.valueSize)}
	if e.page.at == 0 {
		value, err := e.bytes()
		if err != nil {
			return a.spoilt(n, err)
		}
		x.value = value
	} else if e.element.value > e.page.size-e.valueSize {
		return nil // the check has told
	}
	a.bodies[binary.BigEndian.Uint32(e.key)] = x
	return nil
}

// bodyOf reads the body of a pack, once.
func (a *auditor) bodyOf(n uint32) ([]byte, error) {
	x, ok := a.bodies[n]
	if !ok {
		return nil, errors.New("its body is not there")
	}
	delete(a.bodies, n)
	if x.value != nil {
		return x.value, nil
	}
	b := make([]byte, x.size)
	_, err := a.files.ReadAt(b, x.at)
	return b, err
}

// bodyWithoutHead tells of bodies that no head asked for.
func (a *auditor) bodyWithoutHead() error {
	for n, x := range a.bodies {
		a.scrapBody(n, x)
		if err := a.damage(fmt.Sprintf("pack %d", n), errors.New("its head is not there, or makes no sense"), "its commits are lost"); err != nil {
			return err
		}
	}
	return nil
}

// indexAudit holds the index to the packs.
type indexAudit struct {
	runs  runs
	known bool
	packs map[uint32]*indexedPack
	count map[uint64]uint64 // entries of a run
}

type indexedPack struct {
	begins []uint64 // the first 8 bytes of each id
	found  []bool   // the index has it
}

func (x *indexAudit) add(n uint32, p *pack) {
	if x.packs == nil {
		x.packs = map[uint32]*indexedPack{}
	}
	one := &indexedPack{make([]uint64, len(p.slots)), make([]bool, len(p.slots))}
	for i := range p.slots {
		id := p.id(i)
		one.begins[i] = binary.BigEndian.Uint64(id[:])
	}
	x.packs[n] = one
}

func (a *auditor) indexRow(key, value []byte) error {
	if len(key) != 1+4+indexPrefix {
		return fmt.Errorf("the key of a piece of the index has %d bytes", len(key))
	}
	entries, err := parseChunk(key, value)
	if err != nil {
		return err
	}
	unknown := 64 - 8*run{level: uint64(key[0])}.prefix() // bits of the beginning of an id
	if a.index.count == nil {
		a.index.count = map[uint64]uint64{}
	}
	level, number := uint64(key[0]), uint64(binary.BigEndian.Uint32(key[1:]))
	a.index.count[level<<32|number] += uint64(len(entries) / entrySize)
	if !bytes.Equal(key[5:], entries[:indexPrefix]) {
		return fmt.Errorf("the piece %x of the index begins with another id", key)
	}
	var last indexEntry
	for ; len(entries) > 0; entries = entries[entrySize:] {
		e := indexEntry(entries)
		at := e.place()
		p := a.index.packs[at.pack]
		switch {
		case bytes.Compare(last[:], e[:]) > 0:
			return fmt.Errorf("the piece %x of the index is out of order", key)
		case p == nil && (a.hurt[bucketNumber(headsBucket)] || a.harm > 0):
			continue // the damage to the pack is told
		case p == nil || at.slot >= len(p.begins) || p.begins[at.slot]>>unknown != binary.BigEndian.Uint64(e[:])>>unknown:
			return fmt.Errorf("the piece %x of the index leads to object %d of pack %d, which is another or none", key, at.slot, at.pack)
		}
		p.found[at.slot] = true
		last = e
	}
	return nil
}

// settleIndex tells what the index has not.
func (a *auditor) settleIndex() error {
	number := bucketNumber(indexBucket)
	if a.hurt[number] || !a.index.known || a.harm > 0 {
		return nil
	}
	for _, r := range a.index.runs.list {
		if have := a.index.count[r.level<<32|r.number]; have != r.entries {
			return a.damage("index", fmt.Errorf("run %d has %d entries of %d", r.number, have, r.entries), "objects are not found although they are there; tract recover makes a store with a new index")
		}
	}
	missing := 0
	for n := uint32(1); n <= a.index.runs.bare; n++ {
		if a.index.packs[n] == nil {
			return a.damage(fmt.Sprintf("pack %d", n), errors.New("it is not there"), "its commits are lost")
		}
	}
	for n, p := range a.index.packs {
		if n <= a.index.runs.bare {
			continue // it is to be in no run
		}
		for _, found := range p.found {
			if !found {
				missing++
			}
		}
	}
	if missing > 0 {
		return a.damage("index", fmt.Errorf("%d objects are not in it", missing), "they are not found although they are there; tract recover makes a store with a new index")
	}
	return nil
}
