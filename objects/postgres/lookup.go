package postgres

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
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
select 4, line, gen0, part, ''::bytea, data from tract_index where repo = $1 and level = 0
	and exists (select from unnest($3::bytea[]) h where position(h in data) > 0)
union all
select 4, i.line, i.gen0, i.part, l.data, i.data from tract_index i join tract_index l
	on l.repo = i.repo and l.level = 1 and l.part = 256 and l.line = i.line and l.gen0 = i.gen0
	where i.repo = $1 and i.level = 1 and i.part = any($4::smallint[])
	and exists (select from unnest($3::bytea[]) h where position(h in i.data) > 0)`

const (
	lookupIDs   = 64      // most ids of one lookup
	lookupBytes = 8 << 20 // the limit of a lookup for Get
	lookupAll   = 0
)

// lookup finds some of the objects: those whose ids it returns as done were looked for, and
// are in the result if they exist. All copies says that every place of an object is wanted.
type lookup struct {
	objects    map[objects.ID]found
	tombstones map[objects.ID]error
	hits       map[position][]objects.ID // candidates by segment
	size       int
	limit      int  // about how many bytes of rows are read; lookupAll: all
	cut        bool // there were more
}

var errCut = errors.New("enough was read")

// lookup looks up ids, at most lookupIDs of them.
func (s *store) lookup(ctx context.Context, q querier, ids []objects.ID, limit int) (*lookup, error) {
	l := &lookup{limit: limit, objects: map[objects.ID]found{}, tombstones: map[objects.ID]error{}, hits: map[position][]objects.ID{}}
	hints, parts := make([][]byte, len(ids)), []int16{}
	for i := range ids {
		hints[i] = hint(ids[i])
		if p := int16(ids[i][0]); !slices.Contains(parts, p) {
			parts = append(parts, p)
		}
	}
	err := q.query(ctx, func(row pgx.Rows) error {
		var source, part int16
		var at position
		var key, data []byte
		if err := row.Scan(&source, &at.line, &at.gen, &part, &key, &data); err != nil {
			return err
		}
		if source == inIndex {
			l.candidates(at, key, data, ids)
			return nil
		}
		id, err := parseID(key)
		if err != nil {
			return err
		}
		return l.add(int(source), id, at, part, data)
	}, lookupSQL, s.repo, allBytes(ids), hints, parts)
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
	if l.size += len(data); l.size > l.limit && l.limit != lookupAll {
		return errCut
	}
	return nil
}

// candidates takes a row of tract_index.
func (l *lookup) candidates(at position, list, data []byte, ids []objects.ID) {
	for _, id := range ids {
		for _, segment := range indexed(at, list, data, hint(id)) {
			if !slices.Contains(l.hits[segment], id) {
				l.hits[segment] = append(l.hits[segment], id)
			}
		}
	}
}

// querier is the pool with its retries, or a transaction.
type querier interface {
	query(ctx context.Context, scan func(pgx.Rows) error, sql string, args ...any) error
}

// query is querier.
func (s *store) query(ctx context.Context, scan func(pgx.Rows) error, sql string, args ...any) error {
	return s.rows(ctx, scan, sql, args...)
}

type txQuerier struct{ tx pgx.Tx }

func (t txQuerier) query(ctx context.Context, scan func(pgx.Rows) error, sql string, args ...any) error {
	rows, err := t.tx.Query(ctx, sql, args...)
	if err != nil {
		return err
	}
	return eachRow(rows, scan)
}

// segmentSQL reads one segment.
const (
	segmentSQL     = `select line, gen0, n, tip, heads, bodies, put from tract_seg where repo = $1 and line = $2 and gen0 = $3`
	segmentHeadSQL = `select line, gen0, n, tip, heads, null::bytea, put from tract_seg where repo = $1 and line = $2 and gen0 = $3`
)

func scanSegment(row pgx.Rows) (r segmentRow, err error) {
	err = row.Scan(&r.line, &r.gen0, &r.n, &r.tip, &r.heads, &r.bodies, &r.put)
	return r, err
}

// segmentAt reads a segment; nil: there is none.
func (s *store) segmentAt(ctx context.Context, q querier, at position, bodies bool) (seg *segment, put int64, err error) {
	sql := segmentHeadSQL
	if bodies {
		sql = segmentSQL
	}
	var row segmentRow
	err = q.query(ctx, func(r pgx.Rows) (err error) { row, err = scanSegment(r); return err }, sql, s.repo, at.line, at.gen)
	if err != nil || row.line == 0 {
		return nil, 0, err
	}
	seg, err = decodeSegment(row)
	return seg, row.put, err
}

// find looks up ids until it knows of each whether it exists, and calls give with those that
// do, without a connection. heads says that data of contents in segments is not wanted.
func (s *store) find(ctx context.Context, ids []objects.ID, heads bool, give func(objects.ID, found) error) error {
	for again := 0; len(ids) > 0; {
		n := min(len(ids), lookupIDs)
		l, err := s.lookup(ctx, s, ids[:n], lookupBytes)
		if err != nil {
			return err
		}
		rest, err := s.findInSegments(ctx, l, heads)
		if err != nil {
			return err
		}
		var open []objects.ID // to be looked up again
		for _, id := range ids[:n] {
			f, ok := l.objects[id]
			purged, isPurged := l.tombstones[id]
			switch {
			case ok:
				err = give(id, f)
			case rest[id] && again == 0, l.cut:
				open = append(open, id)
			case isPurged:
				err = give(id, found{object: objects.Object{ID: id}, err: purged})
			}
			if err != nil {
				return err
			}
		}
		if again = cmp.Compare(len(open), 0); l.cut {
			again = 0
		}
		ids = append(open, ids[n:]...)
	}
	return nil
}

// findInSegments reads the candidates of a lookup. It returns the ids of which a candidate
// was not there any more: a purge or a sweep has just written it again.
func (s *store) findInSegments(ctx context.Context, l *lookup, heads bool) (gone map[objects.ID]bool, err error) {
	gone = map[objects.ID]bool{}
	for at, ids := range l.hits {
		ids = slices.DeleteFunc(ids, func(id objects.ID) bool { return l.objects[id].object.Kind != 0 })
		if len(ids) == 0 {
			continue
		}
		seg, _, err := s.segmentAt(ctx, s, at, !heads)
		if err != nil && !errors.Is(err, objects.ErrCorrupt) {
			return nil, err
		}
		for _, id := range ids {
			switch {
			case err != nil:
				l.objects[id] = found{object: objects.Object{ID: id}, err: &objects.CorruptError{ID: id, Cause: cause(err)}}
			case seg == nil:
				gone[id] = true
			default:
				if f, ok := seg.lookup(id, heads); ok {
					l.objects[id] = f
				}
			}
		}
	}
	return gone, nil
}

// lookup finds an object of the segment.
func (s *segment) lookup(id objects.ID, heads bool) (f found, ok bool) {
	row, gen := s.find(id)
	switch {
	case row < 0:
		return f, false
	case gen >= 0:
		f.object, _ = s.commit(gen)
		f.at = position{s.line, gen}
	case heads:
		f.object = objects.Object{ID: id, Kind: s.table.Kind(row)}
	default:
		f.object, f.err = s.contentAt(row)
	}
	return f, true
}

func cause(err error) error {
	var c *objects.CorruptError
	if errors.As(err, &c) {
		return c.Cause
	}
	return err
}

// indexed returns the segments that a row of tract_index names for a hint. At level 0 the
// row is of one segment. At level 1 it has a hint and the number of a segment for each
// object, and list has the segments.
func indexed(at position, list, data, want []byte) (segments []position) {
	if len(list) == 0 {
		for len(data) >= hintSize {
			if bytes.Equal(data[:hintSize], want) {
				return []position{at}
			}
			data = data[hintSize:]
		}
		return nil
	}
	for ; len(data) >= hintSize+1; data = data[hintSize+1:] {
		if n := int(data[hintSize]); bytes.Equal(data[:hintSize], want) && len(list) >= (n+1)*positionSize {
			segments = append(segments, readPosition(list[n*positionSize:]))
		}
	}
	return segments
}

// positionSize is the size of a segment in the list of a run.
const positionSize = 16

func readPosition(b []byte) position {
	return position{int64(binary.BigEndian.Uint64(b)), int64(binary.BigEndian.Uint64(b[8:]))}
}

func appendPosition(b []byte, p position) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, uint64(p.line)), uint64(p.gen))
}
