package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/memtable"
	"github.com/tract-vcs/tract/objects/bolt/internal/page"
)

// keepPacks is how many heads of packs a snapshot keeps.
const keepPacks = 8

// journalRecord returns the record of an object of the journal, or of a group that is planned; nil:
// there is none.
func (l *snapshot) journalRecord(id objects.ID) []byte {
	if l.mem == nil {
		return nil
	}
	value, _ := l.mem.Get(objectsBucket, id[:], memtable.Newest)
	return value
}

// object reads one object, of a group that is planned too. The object has the id, or the error is a
// *CorruptError; a missing one is a *NotFoundError.
func (l *snapshot) object(id objects.ID) (objects.Object, error) {
	if value := l.journalRecord(id); value != nil {
		return decodeObject(id, value) // it was hashed when it came
	}
	at, ok, err := l.locate(id)
	if err != nil {
		return objects.Object{}, err
	}
	if ok {
		return l.objectAt(located{at, id})
	}
	value, err := l.get(objectsBucket, id[:])
	if err != nil {
		return objects.Object{}, err
	}
	if value == nil {
		return objects.Object{}, &objects.NotFoundError{ID: id}
	}
	return objects.Object{ID: id}, purgedError(id, value)
}

// wrapPackError returns err, or, if it is damage of a pack, the error of an object in the pack.
func wrapPackError(id objects.ID, err error) error {
	if errors.Is(err, errPack) {
		return &objects.CorruptError{ID: id, Cause: err}
	}
	return err
}

// isStoredOrPurged reports whether an object is stored, or was purged, without reading it. One that is
// planned counts as missing.
func (l *snapshot) isStoredOrPurged(id objects.ID) (bool, error) {
	if _, ok := l.journalValue(objectsBucket, id[:]); ok {
		return true, nil
	}
	if _, ok, err := l.locate(id); ok || err != nil {
		return ok, err
	}
	_, ok, err := l.findInFile(objectsBucket, id[:])
	return ok, err
}

// packPart returns the head or the body of a pack.
func (l *snapshot) packPart(bucket int, n uint32) (page.Entry, error) {
	e, ok, err := l.findInFile(bucket, packKey(n))
	if err == nil && !ok {
		err = fmt.Errorf("pack %d: %w: it is not in %s", n, errPack, buckets[bucket])
	}
	return e, err
}

// headAdvice is what a walk has told the system that it will read: the file from an offset up to the last
// head. Heads are read from the newest; those of one checkpoint lie together, its bodies between them and
// the next ones.
type headAdvice struct{ from int64 }

const (
	adviceStep  = 4 << 20        // bytes of one request
	adviceAhead = 4 * adviceStep // bytes that are requested before the walk comes there
)

// request asks the system for the next part of a file, if the walk has come near it or has jumped. p has the head that
// is read now.
func (a *headAdvice) request(f *os.File, p *page.Page) {
	to := a.from
	if a.from == 0 || p.Offset < a.from || p.Offset > a.from+2*adviceAhead {
		to = p.Offset + int64(p.Size)
	} else if p.Offset > a.from+adviceAhead || a.from == page.MinSize {
		return
	}
	a.from = max(min(p.Offset, to)-adviceStep, page.MinSize)
	adviseWillNeed(f, a.from, to-a.from)
}

// pack reads the head of a pack.
func (l *snapshot) pack(n uint32) (*pack, error) {
	if p := l.packs[n]; p != nil {
		return p, nil
	}
	e, err := l.packPart(headsBucket, n)
	if err != nil {
		return nil, err
	}
	if f, isFile := l.pages.File.(*os.File); isFile && l.advice != nil {
		l.advice.request(f, e.Page())
	}
	b, err := e.ValueIn(l.arena.pageArena())
	if err != nil {
		return nil, err
	}
	p, err := parsePack(l.arena, n, b)
	if err != nil {
		return nil, err
	}
	if len(l.packs) >= keepPacks || l.packs == nil {
		l.packs = map[uint32]*pack{}
	}
	l.packs[n] = p
	return p, nil
}

// readPacked reads one object of a pack and checks its hash.
func (l *snapshot) readPacked(p *pack, row int) (objects.Object, error) {
	var edgeBuf []objects.ID
	o := p.Object(row, &edgeBuf)
	if o.Kind != objects.KindCommit {
		var err error
		if o.Data, err = l.objectData(p, row); err != nil {
			return objects.Object{ID: o.ID}, wrapPackError(o.ID, err)
		}
	}
	o.Data = bytes.Clone(o.Data)
	return verified(o)
}

// objectData reads the data of one object of a body.
func (l *snapshot) objectData(p *pack, row int) ([]byte, error) {
	from, size := p.Data(row)
	e, err := l.packPart(bodiesBucket, p.n)
	if err != nil {
		return nil, err
	}
	begin, err := e.Part(0, min(bodyStart, e.ValueSize))
	if err != nil {
		return nil, err
	}
	if len(begin) == bodyStart && codec(begin[8]) == codecRaw && e.ValueSize == bodyStart+p.BodySize() {
		return e.Part(bodyStart+from, size)
	}
	one, ok := l.bodies.get(p.n, begin)
	if !ok {
		compressed, err := l.rawBody(p.n)
		if err != nil {
			return nil, err
		}
		one.data, _, one.err = decodeBody(nil, p, compressed) // it is kept
		l.bodies.put(p.n, begin, one)
	}
	data := one.data
	if one.err != nil {
		return nil, one.err
	}
	if from+size > len(data) {
		return nil, fmt.Errorf("pack %d: %w: a body of %d bytes, not %d", p.n, errPack, len(data), p.BodySize())
	}
	return data[from : from+size], nil
}

// verified returns an object if its hash is its id.
func verified(o objects.Object) (objects.Object, error) {
	if err := o.Check(); err != nil {
		return objects.Object{ID: o.ID}, err
	}
	return o, nil
}

// version returns the format version of the store.
func (l *snapshot) version() (uint64, error) {
	value, err := l.get(metaBucket, formatKey)
	if err == nil && value == nil {
		err = fmt.Errorf("%w: no format in %q", page.ErrNoBucket, buckets[metaBucket])
	}
	if err != nil {
		return 0, err
	}
	n, err := decodeFormat(value)
	if err != nil {
		err = fmt.Errorf("format: %w", err)
	}
	return n, err
}

// rawBody reads the body of a pack as it is stored.
func (l *snapshot) rawBody(n uint32) ([]byte, error) {
	e, err := l.packPart(bodiesBucket, n)
	if err != nil {
		return nil, err
	}
	return e.ValueIn(l.arena.pageArena())
}
