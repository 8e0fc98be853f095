package bolt

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/memtable"
	"github.com/tract-vcs/tract/objects/bolt/internal/page"
)

// The walk over the trees reads keys, and the values of what changes. Packs, large objects
// and log entries never change: it notes where they are, and they are read when it has let
// go of the lock. A writer may have written over one that it has moved to another page, the
// last ones of a bucket. Then the checksum is wrong, and it is read again where it is now.

// foundHead is the head of a pack.
type foundHead struct {
	page node
	n    uint32
	head extent
}

// foundObject is an object in no pack.
type foundObject struct {
	page  node
	id    objects.ID
	value extent
}

// logLeaf is a leaf with log entries.
type logLeaf struct {
	page  uint64
	first []byte // its first key
}

// logKey notes a key of the log.
func (a *checker) logKey(id uint64, key []byte) error {
	if n := len(a.logLeaves); n == 0 || a.logLeaves[n-1].page != id {
		a.logLeaves = append(a.logLeaves, logLeaf{id, bytes.Clone(key)})
	}
	return nil
}

// movedLeaves is how many leaves at the end of a bucket a writer may rewrite.
const movedLeaves = 2

// readLogTail reads the last leaves of the log.
func (a *checker) readLogTail() error {
	from := max(len(a.logLeaves)-movedLeaves, 0)
	for _, leaf := range a.logLeaves[from:] {
		list, err := a.logValues(leaf)
		if err != nil {
			return err
		}
		a.logTail = append(a.logTail, list...)
	}
	a.logLeaves = a.logLeaves[:from]
	return nil
}

// logValues reads the keys and values of a leaf. What is damaged is told.
func (a *checker) logValues(leaf logLeaf) (list []memtable.Entry, err error) {
	n := node{id: leaf.page, bucket: logBucket}
	p, err := page.Read(a.files, a.meta, leaf.page)
	if err != nil {
		return nil, a.reportPage(n, err)
	}
	for i := range p.Count {
		key, err := p.Key(i)
		if err != nil {
			continue // the check has told
		}
		value, err := p.Entry(i, key).Value()
		if err != nil {
			if err := a.reportPage(n, err); err != nil {
				return nil, err
			}
			continue
		}
		list = append(list, memtable.Entry{Key: key, Value: value})
	}
	return list, nil
}

// values reads what was noted.
func (a *checker) values() error {
	defer a.abandon()
	for _, p := range a.heads {
		if err := a.pack(p.page, p.n, p.head); err != nil {
			return err
		}
	}
	if err := a.finishChecks(); err != nil {
		return err
	}
	if err := a.bodyWithoutHead(); err != nil {
		return err
	}
	if err := a.checkIndex(); err != nil {
		return err
	}
	for _, o := range a.large {
		if err := a.largeObject(o); err != nil {
			return err
		}
	}
	if err := a.finishChecks(); err != nil {
		return err
	}
	for _, leaf := range a.logLeaves {
		if err := a.logLeaf(leaf); err != nil {
			return err
		}
	}
	return a.logRows(a.logTail)
}

// largeObject reads a large object and has it looked at.
func (a *checker) largeObject(o foundObject) error {
	value, err := a.extent(o.value)
	if isStop(err) {
		return err
	}
	if a.files.detached && (err != nil || !isObject(o.id, value)) {
		again := a.files.lookAgain(func(l *snapshot) error {
			now, err := l.get(objectsBucket, o.id[:])
			if now != nil && err == nil {
				value = now
			}
			return err
		})
		if isStop(again) {
			return again
		}
		if again == nil {
			err = nil
		}
	}
	if err != nil {
		return a.reportPage(o.page, err)
	}
	return a.loose(o.page.where(), o.id[:], value)
}

// isObject reports whether a value is the record of an object, or its tombstone.
func isObject(id objects.ID, value []byte) bool {
	o, err := decodeObject(id, value)
	return errors.Is(err, objects.ErrPurged) || err == nil && o.Check() == nil
}

// logLeaf takes in the entries of a leaf of the log.
func (a *checker) logLeaf(leaf logLeaf) error {
	if !a.files.detached {
		list, err := a.logValues(leaf)
		if err != nil {
			return err
		}
		return a.logRows(list)
	}
	p, err := page.Read(a.files, a.meta, leaf.page)
	var list []memtable.Entry
	for i := 0; err == nil && i < p.Count; i++ {
		var e memtable.Entry
		if e.Key, err = p.Key(i); err == nil {
			e.Value, err = p.Entry(i, e.Key).Value()
		}
		if err == nil {
			_, err = decodeEntries(e.Key, e.Value)
		}
		list = append(list, e)
	}
	if err == nil && len(list) > 0 && bytes.Equal(list[0].Key, leaf.first) {
		return a.logRows(list)
	}
	if isStop(err) {
		return err
	}
	// It is damaged, or it was overwritten.
	err = a.files.lookAgain(func(l *snapshot) error {
		if l.pages.Meta.Tx <= a.meta.Tx+1 {
			return nil // nothing that was in use can be overwritten yet
		}
		return stopError{errRewritten}
	})
	if isStop(err) {
		return err
	}
	list, err = a.logValues(leaf)
	if err != nil {
		return err
	}
	return a.logRows(list)
}

func (a *checker) logRows(list []memtable.Entry) error {
	for _, e := range list {
		if err := a.logRow(e.Key, e.Value); err != nil {
			return err
		}
	}
	return nil
}

// readPack reads the values of a pack. body is nil if there is none.
func (c *packCheck) readPack(room *arena) (head, body []byte, err error) {
	if head, err = c.a.valueIn(room, c.head); err == nil && c.found {
		body, c.bodyErr = c.a.valueIn(room, c.body)
	}
	if !c.a.files.detached || err == nil && c.bodyErr == nil && body != nil && isPack(c.n, head, body) {
		return head, body, err
	}
	again := c.a.files.lookAgain(func(l *snapshot) error {
		e, ok, err := l.find(headsBucket, packKey(c.n))
		if err != nil || !ok {
			return err
		}
		now, err := l.rawPack(e)
		if err == nil {
			head, body = now.Head, now.Body
		}
		return err
	})
	if isStop(again) {
		c.stop = again
	} else if again == nil {
		err, c.bodyErr = nil, nil
	}
	return head, body, err
}

// isPack reports whether the checksums of a pack are right.
func isPack(n uint32, head, body []byte) bool {
	return len(head) >= packIDs && len(body) >= bodyStart && hasValidSum(n, head) && hasValidSum(n, body)
}

// errNoBody is why the data of a pack cannot be read.
var errNoBody = errors.New("its body is not there")

func (c *packCheck) where() string { return fmt.Sprintf("pack %d", c.n) }
