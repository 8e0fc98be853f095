package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/page"
)

// row looks at one key of a bucket.
func (a *auditor) row(bucket int, p *page.Page, i int, key []byte) error {
	e := p.Entry(i, key)
	n := node{id: p.ID, bucket: bucket}
	if e.Flags != 0 {
		return a.spoilt(n, fmt.Errorf("key %x: a bucket in the place of a value", key))
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
		return a.spoilt(n, err)
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
	case bytes.Equal(key, purgeKey):
		if _, err = decodePurge(value); err == nil {
			return a.blemish("meta bucket", "a purge was interrupted", "the next write completes it; until then, content that was to be purged may be there")
		}
	default:
		_, err = unseal(key, value)
	}
	if err != nil {
		return fmt.Errorf("%q: %w", key, err)
	}
	return nil
}

// erased passes on a tombstone, unless the journal has the object again.
func (a *auditor) erased(t objects.Tombstone) error {
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

// packRow notes where a body lies, or has the pack looked at whose head it is. The
// values themselves are read beside others.
func (a *auditor) packRow(n node, e page.Entry) error {
	if len(e.Key) != 4 {
		return a.spoilt(n, fmt.Errorf("the key of a pack has %d bytes", len(e.Key)))
	}
	x := extent{at: e.Offset(), size: int64(e.ValueSize)}
	if e.Page().Offset == 0 {
		value, err := e.Raw(nil)
		if err != nil {
			return a.spoilt(n, err)
		}
		x.value = value
	} else if e.ValueSize > e.Page().Size || e.ValueAt > e.Page().Size-e.ValueSize {
		return nil // the check has told
	}
	number := binary.BigEndian.Uint32(e.Key)
	if n.bucket == headsBucket {
		a.heads = append(a.heads, foundHead{n, number, x})
		return nil
	}
	a.bodies[number] = x
	return nil
}

// valueIn reads a value in any goroutine, into memory of a room.
func (a *auditor) valueIn(room *arena, x extent) ([]byte, error) {
	if x.value != nil {
		return x.value, nil
	}
	b := room.takeBytes(int(x.size))
	_, err := a.files.beside(b, x.at)
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
