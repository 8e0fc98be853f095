package postgres

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/tract-vcs/tract/objects"
)

// found is what a lookup finds of an object.
type found struct {
	at     position // of a commit, or of the commit that the content is stored with
	object objects.Object
	err    error // a *objects.CorruptError of this object, or its *objects.ErrPurged
}

// Sources of a row of lookupSQL.
const (
	inTail = iota
	inTailBody
	inBlob
	inTombstones
	inIndex
)

// lookupSQL finds objects by id, all of them at one moment: an object that moves from the
// tail to a segment is in one of both. Of segments it finds candidates.
const lookupSQL = `
select 0, line, gen, 0::smallint, id, head from tract_tail where repo = $1 and id = any($2::bytea[])
union all
select 1, line, gen, 0::smallint, content, body from tract_tail where repo = $1 and content = any($2::bytea[]) and body is not null
union all
select 2, 0, 0, codec, id, data from tract_blob where repo = $1 and id = any($2::bytea[])
union all
select 3, 0, 0, 0::smallint, id, record from tract_tombstone where repo = $1 and id = any($2::bytea[])
union all
select 4, number, 0, 0::smallint, null, data from tract_index where repo = $1 and part = any($4::smallint[])
	and exists (select from unnest($3::bytea[]) h where get_byte(h, 0) >> 4 = part and position(h in data) > 0)`

const (
	lookupIDs   = 64      // most ids of one lookup
	lookupBytes = 8 << 20 // maxBytes of a lookup for Get
	lookupAll   = 0
)

// lookup is what is known of some objects after lookupSQL.
type lookup struct {
	objects    map[objects.ID]found
	tombstones map[objects.ID]error
	candidates map[int32][]objects.ID // ids that may be in a segment, by its number
	size       int
	maxBytes   int  // about how many bytes of rows are read; lookupAll: all
	cut        bool // there were more
}

var errCut = errors.New("enough was read")

// lookup looks up ids, at most lookupIDs of them.
func (s *store) lookup(ctx context.Context, q querier, ids []objects.ID, maxBytes int) (*lookup, error) {
	l := &lookup{maxBytes: maxBytes, objects: map[objects.ID]found{}, tombstones: map[objects.ID]error{}, candidates: map[int32][]objects.ID{}}
	hints, parts := make([][]byte, len(ids)), []int16{}
	wanted := map[[hintSize]byte][]objects.ID{} // by their hint
	for i := range ids {
		hints[i] = hintOf(ids[i])
		h := [hintSize]byte(hints[i])
		wanted[h] = append(wanted[h], ids[i])
		if p := indexPart(ids[i][0]); !slices.Contains(parts, p) {
			parts = append(parts, p)
		}
	}
	err := q.query(ctx, func(row pgx.CollectableRow) error {
		var source, codec int16
		var at position
		var id objects.ID
		var data []byte
		if err := row.Scan(&source, &at.line, &at.gen, &codec, idColumn{&id}, &data); err != nil {
			return err
		}
		if source != inIndex {
			return l.add(int(source), id, at, codec, data)
		}
		for h := range indexHints(data, "") {
			if ids := wanted[h]; len(ids) > 0 {
				number := int32(at.line)
				l.candidates[number] = append(l.candidates[number], ids...)
			}
		}
		return nil
	}, lookupSQL, s.repo, idBytes(ids), hints, parts)
	if errors.Is(err, errCut) {
		l.cut, err = true, nil
	}
	return l, err
}

// add takes an object from a row.
func (l *lookup) add(source int, id objects.ID, at position, codec int16, data []byte) error {
	f := found{at: at}
	switch source {
	case inTail:
		f.object, f.err = readObject(id, data)
	case inTailBody:
		f.object, f.err = readContent(id, data)
	case inBlob:
		f.object, f.err = readBlob(id, codec, data)
	case inTombstones:
		t, err := objects.ParseTombstone(id, data)
		if err == nil {
			err = &objects.PurgedError{Tombstone: t}
		}
		l.tombstones[id] = err
		return nil
	}
	if have, ok := l.objects[id]; !ok || have.err != nil {
		l.objects[id] = f
	}
	if l.size += len(data); l.size > l.maxBytes && l.maxBytes != lookupAll {
		return errCut
	}
	return nil
}

// find looks up ids until it knows of each whether it exists, and calls give with those that do, without a
// connection unless q has one. withoutData says that data of contents in segments is not wanted.
func (s *store) find(ctx context.Context, q querier, ids []objects.ID, withoutData bool, give func(objects.ID, found) error) error {
	for len(ids) > 0 {
		n := min(len(ids), lookupIDs)
		l, err := s.lookup(ctx, q, ids[:n], lookupBytes)
		if err != nil {
			return err
		}
		if err := s.findInSegments(ctx, q, l, withoutData); err != nil {
			return err
		}
		var open []objects.ID // to be looked up again
		for _, id := range ids[:n] {
			f, ok := l.objects[id]
			purged, isPurged := l.tombstones[id]
			switch {
			case ok:
				err = give(id, f)
			case l.cut:
				open = append(open, id)
			case isPurged:
				err = give(id, found{object: objects.Object{ID: id}, err: purged})
			}
			if err != nil {
				return err
			}
		}
		ids = append(open, ids[n:]...)
	}
	return nil
}

// findInSegments looks for the candidates of a lookup that were not found intact elsewhere.
func (s *store) findInSegments(ctx context.Context, q querier, l *lookup, withoutData bool) error {
	for number, ids := range l.candidates {
		ids = slices.DeleteFunc(ids, func(id objects.ID) bool { f, ok := l.objects[id]; return ok && f.err == nil })
		if len(ids) == 0 {
			continue
		}
		seg, err := s.segment(ctx, q, number, !withoutData)
		if err != nil && !errors.Is(err, objects.ErrCorrupt) {
			return err
		}
		for _, id := range ids {
			if err != nil {
				l.objects[id] = found{object: objects.Object{ID: id}, err: &objects.CorruptError{ID: id, Cause: withoutCorruptError(err)}}
			} else if f, ok := seg.lookup(id, withoutData); ok {
				l.objects[id] = f
			}
		}
	}
	return nil
}

// withoutCorruptError returns the cause of a CorruptError, and any other error as it is.
func withoutCorruptError(err error) error {
	var c *objects.CorruptError
	if errors.As(err, &c) {
		return c.Cause
	}
	return err
}
