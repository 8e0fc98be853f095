package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/tract-vcs/tract/objects"
)

// loadPage is how many contents Load reads with one statement.
const loadPage = 512

// Load is objects.BulkReader: it reads the contents that are stored with their commits.
func (s *store) Load(ctx context.Context, w objects.LoadRequest) (rest []int, err error) {
	if err := s.checkUsable(ctx); err != nil {
		return nil, err
	}
	type wanted struct {
		i  int
		id objects.ID
		at position
	}
	var list []wanted
	for i := range w.Len {
		id, locator := w.At(i)
		if o, ok := s.recent.get(id); ok {
			o = o.Clone()
			if err := w.Give(i, &o, nil); err != nil {
				return nil, err
			}
			continue
		}
		if locator == (objects.Locator{}) {
			rest = append(rest, i)
			continue
		}
		list = append(list, wanted{i, id, position{int64(locator[0]), int64(locator[1]) - 1}})
	}
	slices.SortFunc(list, func(a, b wanted) int { return a.at.compare(b.at) })
	for len(list) > 0 {
		n := 1
		for n < min(len(list), loadPage) && list[n].at.line == list[0].at.line && list[n].at.gen-list[0].at.gen < loadPage {
			n++
		}
		contents, err := s.contentsOf(ctx, list[0].at.line, list[0].at.gen, list[n-1].at.gen)
		if err != nil {
			return nil, err
		}
		for _, at := range list[:n] {
			c, ok := contents[at.id]
			if !ok {
				rest = append(rest, at.i)
				continue
			}
			o, err := c()
			if err := w.Give(at.i, &o, err); err != nil {
				return nil, err
			}
		}
		if err := s.checkUsable(ctx); err != nil {
			return nil, err
		}
		list = list[n:]
	}
	return rest, nil
}

// contentsOf reads the contents that are stored with commits of a line. The functions decode and verify them.
func (s *store) contentsOf(ctx context.Context, line, low, high int64) (map[objects.ID]func() (objects.Object, error), error) {
	contents := map[objects.ID]func() (objects.Object, error){}
	rows, err := collect(ctx, s, func(row pgx.CollectableRow) (segmentRow, error) { return scanSegment(row) },
		`select 0, line, gen, 1, content, put, ''::bytea, body from tract_tail
where repo = $1 and line = $2 and gen between $3 and $4 and body is not null
union all
select `+segmentColumns+` from tract_seg where repo = $1 and line = $2 and gen0 between $3 - $5 and $4`,
		s.repo, line, low, high, int64(segmentSize))
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		if r.number == tailNumber {
			contents[r.tip] = func() (objects.Object, error) { return readContent(r.tip, r.bodies) }
			continue
		}
		seg, err := decodeSegment(r)
		if err != nil {
			continue // each of its contents is then read by its id, and says so
		}
		for i := range seg.table.Len() {
			if seg.table.Kind(i) == objects.KindContent {
				contents[*seg.table.ID(i)] = func() (objects.Object, error) { return seg.contentAt(i) }
			}
		}
	}
	return contents, nil
}
