package postgres

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/tract-vcs/tract/internal/compression"
	"github.com/tract-vcs/tract/internal/pack"
	"github.com/tract-vcs/tract/objects"
)

// segmentSize is how many commits a segment has.
const segmentSize = 256

// position is where a commit is.
type position struct {
	line, gen int64 // line 0: unknown
}

func (p position) compare(q position) int {
	return cmp.Or(cmp.Compare(p.line, q.line), cmp.Compare(p.gen, q.gen))
}

// entry is a commit and its content, if that is stored with it.
type entry struct {
	commit  objects.Object
	content objects.Object // zero: it is elsewhere
}

// segmentRow is a row of tract_seg.
type segmentRow struct {
	number        int32
	line, gen0    int64
	n             int
	tip           objects.ID
	heads, bodies []byte // bodies nil: not read
	put           int64
}

// Columns of tract_seg for scanSegment.
const (
	segmentColumns = `number, line, gen0, n, tip, put, heads, bodies`
	headColumns    = `number, line, gen0, n, tip, put, heads, null::bytea`
)

// scanSegment reads these columns, and further ones into more.
func scanSegment(row pgx.CollectableRow, more ...any) (r segmentRow, err error) {
	err = row.Scan(append([]any{&r.number, &r.line, &r.gen0, &r.n, idColumn{&r.tip}, &r.put, &r.heads, &r.bodies}, more...)...)
	return r, err
}

// encodeSegment encodes successive commits of a line. The heads are the number of objects,
// the size of the ids that follow, these ids, and a compressed pack table. The ids are those
// of the contents and then of objects elsewhere that the commits refer to: the id of a commit
// is the hash of its bytes, which a reader computes anyway.
func encodeSegment(line, gen0 int64, list []entry, put int64) (row segmentRow, hints [][]byte) {
	all := make([]objects.Object, 0, 2*len(list))
	seen := map[objects.ID]bool{}
	for i := range list {
		if c := &list[i].content; c.Kind != 0 && !seen[c.ID] {
			seen[c.ID] = true
			all = append(all, *c)
		}
		all = append(all, list[i].commit)
	}
	ids, table, body := pack.EncodeTable(all, 0)
	stored := make([]byte, 0, len(ids))
	for i := range all {
		if all[i].Kind != objects.KindCommit {
			stored = append(stored, all[i].ID[:]...)
		}
		hints = append(hints, hintOf(all[i].ID))
	}
	stored = append(stored, ids[len(all)*int(idSize):]...)
	heads := binary.AppendUvarint(nil, uint64(len(all)))
	heads = binary.AppendUvarint(heads, uint64(len(stored)))
	heads = compression.CompressBest(append(heads, stored...), table)
	return segmentRow{
		line: line, gen0: gen0, n: len(list), tip: list[len(list)-1].commit.ID, put: put,
		heads: heads, bodies: compression.CompressBest([]byte{}, body),
	}, hints
}

// segment is a decoded segment.
type segment struct {
	segmentRow
	table   *pack.Table
	commits []objects.Object // by gen
	rows    []int            // of the commits in the table
	body    []byte           // nil: not read
}

var errSegment = errors.New("invalid segment")

// decodeSegment decodes a row, computes the ids of its commits and verifies them against the
// id of the last. Contents are verified when they are read.
func decodeSegment(row segmentRow) (*segment, error) {
	wrong := func(cause error) error {
		return &objects.CorruptError{Cause: fmt.Errorf("segment %d of line %d: %w", row.gen0, row.line, cause)}
	}
	n, b, ok := readUvarint(row.heads, pack.MaxObjects)
	if !ok {
		return nil, wrong(errSegment)
	}
	size, b, ok := readUvarint(b, uint64(len(b)))
	// There are as many ids as objects and objects elsewhere; those of commits come below.
	commits := uint64(row.n)
	if !ok || size > uint64(len(b)) || size%idSize != 0 || row.n <= 0 || commits > n || (n-commits)*idSize > size {
		return nil, wrong(errSegment)
	}
	stored := b[:size]
	raw, err := compression.Append(nil, b[size:])
	if err != nil {
		return nil, wrong(err)
	}
	ids := make([]byte, size+commits*idSize)
	copy(ids[n*idSize:], stored[(n-commits)*idSize:])
	s := &segment{segmentRow: row}
	if s.table, err = pack.ParseTable(int(n), ids, raw, nil); err != nil {
		return nil, wrong(err)
	}
	var room []objects.ID
	for i := range s.table.Len() {
		id := ids[uint64(i)*idSize:][:idSize]
		if s.table.Kind(i) != objects.KindCommit {
			if uint64(len(stored)) < idSize {
				return nil, wrong(errSegment)
			}
			copy(id, stored)
			stored = stored[idSize:]
			continue
		}
		o := s.table.Object(i, &room)
		o.ID = o.Sum()
		copy(id, o.ID[:])
		s.commits, s.rows = append(s.commits, o), append(s.rows, i)
	}
	if len(s.commits) != row.n || s.commits[row.n-1].ID != row.tip {
		return nil, wrong(errors.New("its commits are not those that were sealed"))
	}
	if row.bodies != nil {
		if s.body, err = compression.Append(make([]byte, 0, s.table.BodySize()), row.bodies); err != nil || len(s.body) != s.table.BodySize() {
			return nil, wrong(fmt.Errorf("%w: %d bytes of bodies", errSegment, len(s.body)))
		}
	}
	return s, nil
}

func readUvarint(b []byte, limit uint64) (v uint64, rest []byte, ok bool) {
	v, size := binary.Uvarint(b)
	if size <= 0 || v > limit {
		return 0, nil, false
	}
	return v, b[size:], true
}

func (s *segment) contentAt(row int) (objects.Object, error) {
	from, size := s.table.Data(row)
	return readContent(*s.table.ID(row), append([]byte(nil), s.body[from:from+size]...))
}

// lookup finds an object; nil has none. withoutData says that data of contents is not wanted.
func (s *segment) lookup(id objects.ID, withoutData bool) (f found, ok bool) {
	if s == nil {
		return f, false
	}
	for row := range s.table.Len() {
		if *s.table.ID(row) != id {
			continue
		}
		if i := slices.Index(s.rows, row); i >= 0 {
			return found{object: s.commits[i], at: position{s.line, s.gen0 + int64(i)}}, true
		}
		if withoutData {
			return found{object: objects.Object{ID: id, Kind: s.table.Kind(row)}}, true
		}
		f.object, f.err = s.contentAt(row)
		return f, true
	}
	return f, false
}

// entries returns everything that the segment has, as it was sealed.
func (s *segment) entries() (list []entry, err error) {
	for i, c := range s.commits {
		e := entry{commit: c}
		if row := s.table.Link(s.rows[i]); row >= 0 && s.table.Kind(row) == objects.KindContent {
			e.content, err = s.contentAt(row)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return list, nil
}

// segment reads a segment; nil: there is none.
func (s *store) segment(ctx context.Context, q querier, number int32, bodies bool) (seg *segment, err error) {
	columns := headColumns
	if bodies {
		columns = segmentColumns
	}
	var row segmentRow
	err = q.query(ctx, func(r pgx.CollectableRow) (err error) { row, err = scanSegment(r); return err },
		`select `+columns+` from tract_seg where repo = $1 and number = $2`, s.repo, number)
	if err != nil || row.number == 0 {
		return nil, err
	}
	return decodeSegment(row)
}

// rewrite replaces a segment by one with other entries.
func (s *segment) rewrite(batch *pgx.Batch, repo int64, list []entry) {
	row, _ := encodeSegment(s.line, s.gen0, list, s.put)
	batch.Queue(`update tract_seg set n = $3, tip = $4, heads = $5, bodies = $6 where repo = $1 and number = $2`,
		repo, s.number, row.n, row.tip[:], row.heads, row.bodies)
}
