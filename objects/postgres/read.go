package postgres

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/tract-vcs/tract/objects"
)

// Get is objects.Reader.
func (s *store) Get(ctx context.Context, ids []objects.ID) iter.Seq2[objects.Object, error] {
	return func(yield func(objects.Object, error) bool) {
		stop := errors.New("the loop has ended")
		err := s.checkUsable(ctx)
		rest := slices.DeleteFunc(objects.Unique(ids), func(id objects.ID) bool {
			o, known := s.recent.get(id)
			known = known && err == nil && !o.Kind.Purgeable() // others may have been purged
			if known && !yield(o.Clone(), nil) {
				err = stop
			}
			return known
		})
		if err == nil {
			err = s.find(ctx, s, rest, false, func(_ objects.ID, f found) error {
				err := s.checkUsable(ctx)
				if o := &f.object; err == nil && f.err == nil && isCacheable(o) {
					s.recent.put(o.ID, o.Clone())
				}
				if err == nil && !yield(f.object, f.err) {
					err = stop
				}
				return err
			})
		}
		if err != nil && err != stop {
			yield(objects.Object{}, err)
		}
	}
}

// checkUsable returns the error of a call that needs no connection.
func (s *store) checkUsable(ctx context.Context) error {
	if s.closed.Load() {
		return objects.ErrClosed
	}
	return ctx.Err()
}

// Missing is objects.Reader.
func (s *store) Missing(ctx context.Context, ids []objects.ID) (missing []objects.ID, err error) {
	if err := s.checkUsable(ctx); err != nil {
		return nil, err
	}
	there := map[objects.ID]bool{}
	err = s.find(ctx, s, objects.Unique(ids), true, func(id objects.ID, _ found) error {
		there[id] = true
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if !there[id] {
			missing = append(missing, id)
		}
	}
	return missing, nil
}

// findSQL finds the first ids in a range, and their kinds; 0: of the kind in the record.
const findSQL = `
(select id, 1::smallint, ''::bytea from tract_tail where $5::int in (0, 1) and repo = $1 and id between $2 and $3 order by id limit $4)
union all
(select content, 2, ''::bytea from tract_tail where $5::int in (0, 2) and repo = $1 and body is not null and content between $2 and $3 order by content limit $4)
union all
(select id, kind, ''::bytea from tract_blob where $5::int in (0, kind) and repo = $1 and id between $2 and $3 order by id limit $4)
union all
select id, 0, record from tract_tombstone where repo = $1 and id between $2 and $3`

// Find is objects.Reader.
func (s *store) Find(ctx context.Context, kind objects.Kind, prefix string, limit int) ([]objects.ID, error) {
	if err := s.checkUsable(ctx); err != nil {
		return nil, err
	}
	prefix = strings.ToLower(prefix)
	if len(prefix) > 2*len(objects.ID{}) {
		return nil, nil
	}
	low, high := idBounds(prefix)
	kinds := map[objects.ID]objects.Kind{}
	err := s.query(ctx, func(row pgx.CollectableRow) error {
		var id objects.ID
		var record []byte
		var of int16
		if err := row.Scan(idColumn{&id}, &of, &record); err != nil {
			return err
		}
		if t, err := objects.ParseTombstone(id, record); of == 0 && err == nil {
			of = int16(t.Kind)
		}
		kinds[id] = objects.Kind(of)
		return nil
	}, findSQL, s.repo, low, high, cmp.Or(int64(limit), math.MaxInt64), int(kind))
	if err == nil {
		err = s.findSealed(ctx, kind, prefix, limit, kinds)
	}
	if err != nil {
		return nil, err
	}
	ids := make([]objects.ID, 0, len(kinds))
	for id, of := range kinds {
		if kind == 0 || of == kind {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, objects.ID.Compare)
	if limit > 0 {
		ids = ids[:min(limit, len(ids))]
	}
	return ids, nil
}

// idBounds returns the least id with a hexadecimal prefix, and the greatest.
func idBounds(prefix string) (least, greatest []byte) {
	rest := 2*len(objects.ID{}) - len(prefix)
	least, _ = hex.DecodeString(prefix + strings.Repeat("0", rest))
	greatest, _ = hex.DecodeString(prefix + strings.Repeat("f", rest))
	return least, greatest
}

// candidate is a segment that may have an object with an id that begins with a hint.
type candidate struct {
	hint    [hintSize]byte
	segment int32
}

// findSealed adds the objects of segments whose ids have a prefix: the first of a kind, if
// there is a limit. It reads segments in the order of the ids that they may have.
func (s *store) findSealed(ctx context.Context, kind objects.Kind, prefix string, limit int, kinds map[objects.ID]objects.Kind) error {
	var list []candidate
	low, high := idBounds(prefix)
	err := s.query(ctx, func(row pgx.CollectableRow) error {
		var data []byte
		var number int32
		err := row.Scan(&number, &data)
		for h := range indexHints(data, prefix) {
			list = append(list, candidate{h, number})
		}
		return err
	}, `select number, data from tract_index where repo = $1 and part between $2 and $3`, s.repo, indexPart(low[0]), indexPart(high[0]))
	if err != nil {
		return err
	}
	slices.SortFunc(list, func(a, b candidate) int { return bytes.Compare(a.hint[:], b.hint[:]) })
	read := map[int32]bool{}
	var found []objects.ID // of the kind
	for _, c := range list {
		if read[c.segment] {
			continue
		}
		if limit > 0 && len(found) >= limit { // are enough of them before everything to come?
			slices.SortFunc(found, objects.ID.Compare)
			if bytes.Compare(found[limit-1][:hintSize], c.hint[:]) < 0 {
				return nil
			}
		}
		read[c.segment] = true
		seg, err := s.segment(ctx, s, c.segment, false)
		if err != nil {
			return err
		}
		for i := 0; seg != nil && i < seg.table.Len(); i++ {
			id, of := *seg.table.ID(i), seg.table.Kind(i)
			if !strings.HasPrefix(id.String(), prefix) {
				continue
			}
			kinds[id] = of
			if kind == 0 || of == kind {
				found = append(found, id)
			}
		}
	}
	return nil
}
