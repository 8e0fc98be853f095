package bolt

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/page"
)

// value is a key with its value, as the second part of an audit reads them.
type value struct {
	key, data []byte
	pack      uint32 // of a head
	body      []byte // of the same pack
	bodyErr   error
}

// forEach calls visit with the keys and values of a bucket that were there at the moment of the
// snapshot. It reads some of them at a time in a view, and visits them while others write. A value
// is valid until visit returns.
func (a *checker) forEach(bucket int, visit func(v value)) {
	for from := []byte{}; from != nil && a.stop == nil; {
		a.valueArena.reset()
		var list []value
		err := a.snapshot.view(func(m page.Meta) error {
			list, from = a.readSome(m, bucket, from)
			return nil
		})
		a.stop = cmp.Or(a.stop, err)
		for i := 0; i < len(list) && a.stop == nil; i++ {
			visit(list[i])
		}
	}
}

// checkBytes is about how many bytes an audit reads while writers wait.
const checkBytes = 1 << 20

// errPause ends a walk that goes on later.
var errPause = errors.New("enough was read")

// readSome reads keys and values from a key on. next is the key to go on from; nil: there are
// no more.
func (a *checker) readSome(m page.Meta, bucket int, from []byte) (list []value, next []byte) {
	a.walker.Reset(m)
	t, ok := a.trees()[buckets[bucket]]
	if !ok {
		return nil, nil // it was reported
	}
	size, pages := 0, newSnapshot(a.snapshot, m).withArena(&a.valueArena)
	a.walk(bucket, t, from, func(e page.Entry) (err error) {
		if bytes.Compare(e.Key, a.lastKeys[bucket]) > 0 {
			return errPause // it was written meanwhile
		}
		v := value{key: bytes.Clone(e.Key)}
		if size >= checkBytes {
			next = v.key
			return errPause
		}
		if v.data, err = e.ValueIn(a.valueArena.pageArena()); err == nil && bucket == headsBucket {
			if v.pack, err = packNumber(v.key); err == nil {
				v.body, v.bodyErr = pages.rawBody(v.pack)
			}
		}
		if err != nil {
			a.reportPage(bucket, e.Page().ID, err)
			return a.stop
		}
		list, size = append(list, v), size+len(v.key)+len(v.data)+len(v.body)
		return nil
	})
	return list, next
}

// checkPack hashes every object of a pack.
func (a *checker) checkPack(v value) {
	n, where := v.pack, fmt.Sprintf("pack %d", v.pack)
	a.intact[n] = false
	a.packArena.reset()
	p, err := parsePack(&a.packArena, n, v.data)
	if err != nil {
		a.reportDamage(where, err, "its objects cannot be read; tract recover saves those that are whole")
		return
	}
	for i := range p.Len() {
		a.index.countEntry(newIndexEntry(*p.ID(i), place{n, i}), -1)
	}
	var body []byte
	sound, bodyErr := false, v.bodyErr
	if a.stopIfInterrupted(bodyErr) {
		return
	}
	if bodyErr == nil {
		body, sound, bodyErr = decodeBody(&a.packArena, p, v.body)
	}
	if bodyErr != nil {
		a.reportDamage(where, bodyErr, "the content of its commits is lost")
	}
	sound = sound && p.sound
	list := a.packArena.newObjectList(p.Len())
	var edgeBuf []objects.ID
	for i := range p.Len() {
		if p.isPurged(i) {
			continue
		}
		o, err := objects.Object{}, bodyErr
		if err == nil || p.Kind(i) == objects.KindCommit {
			o, err = verified(p.objectWith(i, body, &edgeBuf))
		}
		if err == nil {
			list = append(list, o)
		} else {
			a.reportObject(where, *p.ID(i), wrapPackError(*p.ID(i), err))
		}
	}
	a.intact[n] = len(list) == p.Len()-len(p.purged) && bodyErr == nil
	if a.intact[n] && !sound {
		a.reportDamage(where, errors.New("a checksum of it is wrong"), "nothing is lost: its objects match their ids")
	}
	a.passObjects(list)
}

// reportBodiesWithoutHead reports the bodies without a head.
func (a *checker) reportBodiesWithoutHead() {
	for _, n := range slices.Sorted(maps.Keys(a.bodies)) {
		if _, ok := a.intact[n]; !ok {
			a.reportDamage(fmt.Sprintf("pack %d", n), errors.New("its head is not there, or cannot be parsed"), "its commits are lost")
		}
	}
}

// checkObject checks a tombstone, or the record of an object of the journal.
func (a *checker) checkObject(where string, key, record []byte) {
	if len(key) != idSize {
		a.reportDamage(where, errors.New("an object whose key is no id"), "an object cannot be found by its id")
		return
	}
	var edgeBuf []objects.ID
	o, err := decodeShared(objects.ID(key), record, &edgeBuf)
	if err == nil {
		err = o.Check()
	}
	switch {
	case err == nil:
		a.passObjects([]objects.Object{o})
	case errors.Is(err, objects.ErrPurged):
		a.passOnlyTombstone(err)
	default:
		a.reportObject(where, objects.ID(key), err)
	}
}

// passObjects passes intact objects to the callback.
func (a *checker) passObjects(list []objects.Object) {
	if a.stop == nil && a.audit.Objects != nil && len(list) > 0 {
		a.stop = a.audit.Objects(list)
	}
}

// passOnlyTombstone passes on the tombstone of an *objects.PurgedError, unless the journal has the
// object. It ignores other errors.
func (a *checker) passOnlyTombstone(err error) {
	e := (*objects.PurgedError)(nil)
	if a.stop != nil || a.audit.Tombstone == nil || !errors.As(err, &e) {
		return
	}
	if a.mem != nil {
		if _, again := a.mem.Get(objectsBucket, e.ID[:], a.mem.Mark()); again {
			return
		}
	}
	a.stop = a.audit.Tombstone(e.Tombstone)
}

// checkMetaRecord checks a record of the meta bucket.
func (a *checker) checkMetaRecord(key, record []byte) error {
	var err error
	switch {
	case bytes.Equal(key, formatKey):
		_, err = decodeFormat(record)
	case bytes.Equal(key, journalKey):
		return nil // checked by binding
	case bytes.Equal(key, runsKey):
		a.index.runs, err = decodeRuns(record)
	case bytes.Equal(key, agesKey):
		_, err = decodeAges(record)
	case bytes.Equal(key, purgeKey):
		if err = decodeRecord(key, record, purgeRecordFields(new([]objects.Tombstone))); err == nil {
			a.reportHarmless("meta bucket", "a purge was interrupted", "the next write completes it; until then, content that was to be purged may be there")
		}
	default:
		_, err = verifyChecksum(key, record)
	}
	if err != nil {
		return fmt.Errorf("%q: %w", key, err)
	}
	return nil
}
