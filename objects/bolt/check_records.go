package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/page"
)

// row checks a key of a bucket and its value.
func (a *checker) row(bucket int, p *page.Page, i int, key []byte) error {
	e := p.Entry(i, key)
	n := node{id: p.ID, bucket: bucket}
	if e.Flags != 0 {
		return a.reportPage(n, fmt.Errorf("key %x: a bucket in the place of a value", key))
	}
	if bucket == headsBucket || bucket == bodiesBucket {
		return a.packRow(n, e)
	}
	switch {
	case bucket == logBucket && p.ID != 0:
		return a.logKey(p.ID, key)
	case bucket == objectsBucket && !e.Buffered() && len(key) == idSize && e.ValueSize <= e.Page().Size && e.ValueAt <= e.Page().Size-e.ValueSize:
		a.large = append(a.large, foundObject{n, objects.ID(key), extent{at: e.Offset(), size: int64(e.ValueSize)}})
		return nil
	}
	value, err := e.Raw(nil)
	if err != nil {
		return a.reportPage(n, err)
	}
	switch bucket {
	case metaBucket:
		err = a.metaRow(key, value)
	case indexBucket:
		return a.indexRow(n, key, value)
	case objectsBucket:
		return a.loose(n.where(), key, value)
	default:
		return a.nameRow(bucket, key, value)
	}
	if err != nil && !isStop(err) {
		return a.reportPage(n, err)
	}
	return err
}

func (a *checker) metaRow(key, value []byte) error {
	var err error
	switch {
	case bytes.Equal(key, formatKey):
		_, err = decodeFormat(value)
	case bytes.Equal(key, journalKey):
		return nil // checked by binding
	case bytes.Equal(key, runsKey):
		a.index.runs, err = decodeRuns(value)
		a.index.known = err == nil
	case bytes.Equal(key, agesKey):
		_, err = decodeAges(value)
	case bytes.Equal(key, purgeKey):
		if _, err = decodePurge(value); err == nil {
			return a.reportHarmless("meta bucket", "a purge was interrupted", "the next write completes it; until then, content that was to be purged may be there")
		}
	default:
		_, err = unseal(key, value)
	}
	if err != nil {
		return fmt.Errorf("%q: %w", key, err)
	}
	return nil
}

// erased passes on a tombstone, unless the journal has the object.
func (a *checker) erased(t objects.Tombstone) error {
	if a.to.Tombstone == nil {
		return nil
	}
	if a.mem != nil {
		if _, again := a.mem.Get(objectsBucket, t.ID[:], a.mem.Mark()); again {
			return nil
		}
	}
	return a.to.Tombstone(t)
}

// packRow notes where the head or the body of a pack is.
func (a *checker) packRow(n node, e page.Entry) error {
	if len(e.Key) != 4 {
		return a.reportPage(n, fmt.Errorf("the key of a pack has %d bytes", len(e.Key)))
	}
	x := extent{at: e.Offset(), size: int64(e.ValueSize)}
	if e.Page().Offset == 0 {
		value, err := e.Raw(nil)
		if err != nil {
			return a.reportPage(n, err)
		}
		x.value = value
	} else if e.ValueSize > e.Page().Size || e.ValueAt > e.Page().Size-e.ValueSize {
		return nil // reported by edge
	}
	number := binary.BigEndian.Uint32(e.Key)
	if n.bucket == headsBucket {
		a.heads = append(a.heads, foundHead{n, number, x})
		return nil
	}
	a.bodies[number] = x
	return nil
}

// valueIn reads a value into the memory of an arena. Any goroutine may call it.
func (a *checker) valueIn(room *arena, x extent) ([]byte, error) {
	if x.value != nil {
		return x.value, nil
	}
	b := room.takeBytes(int(x.size))
	_, err := a.files.readConcurrently(b, x.at)
	return b, err
}

// bodyWithoutHead reports bodies without a head.
func (a *checker) bodyWithoutHead() error {
	for n, x := range a.bodies {
		a.addBody(n, x)
		if err := a.reportDamage(fmt.Sprintf("pack %d", n), errors.New("its head is not there, or makes no sense"), "its commits are lost"); err != nil {
			return err
		}
	}
	return nil
}
