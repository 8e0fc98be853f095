package bolt

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/index"
	"github.com/tract-vcs/tract/objects/bolt/internal/page"
)

// Find is objects.Reader.
func (s *store) Find(ctx context.Context, kind objects.Kind, prefix string, limit int) (ids []objects.ID, err error) {
	prefix = strings.ToLower(prefix)
	if len(prefix) > 2*idSize {
		return nil, ctx.Err()
	}
	from, err := hex.DecodeString(prefix + "0"[:len(prefix)%2])
	if err != nil {
		return nil, err
	}
	q := search{kind: kind, prefix: prefix, limit: limit}
	err = s.view(ctx, "search", func(l *snapshot) error {
		if err := q.searchRecords(l, from); err != nil {
			return err
		}
		if len(prefix) < 3 && (limit == 0 || kind != 0) {
			return q.searchPacks(l) // most packs would be read anyway
		}
		all, err := l.runs()
		for i := 0; err == nil && i < len(all.List); i++ {
			err = q.searchRun(l, all.List[i], index.Prefix(from))
		}
		return err
	})
	q.keepSmallest()
	return q.ids, err
}

// search is the state of one Find.
type search struct {
	kind   objects.Kind
	prefix string
	limit  int // the smallest so many ids are wanted; 0: all
	ids    []objects.ID
}

// reachedLimitSince reports whether the wanted number of ids was found since there were start of them.
func (q *search) reachedLimitSince(start int) bool { return q.limit > 0 && len(q.ids) == start+q.limit }

// searchRecords adds the matching objects that are in no pack.
func (q *search) searchRecords(l *snapshot, from []byte) error {
	for e, err := range l.ascend(objectsBucket, from) {
		if err != nil {
			return err
		}
		if len(e.Key) != idSize {
			return invalidKeyError(objectsBucket, e.Key)
		}
		id := objects.ID(e.Key)
		if !strings.HasPrefix(id.String(), q.prefix) || q.reachedLimitSince(0) {
			return nil
		}
		kind := q.kind
		if q.kind != 0 {
			if kind, err = kindOf(e); err != nil {
				return err
			}
		}
		if kind == q.kind {
			q.ids = append(q.ids, id)
		}
	}
	return nil
}

// kindOf reads the kind of an object of the journal, or of a purged one; zero: the record is empty.
func kindOf(e page.Entry) (objects.Kind, error) {
	value, err := e.Value()
	if err != nil || len(value) == 0 {
		return 0, err
	}
	if !isTombstone(value) {
		return objects.Kind(value[0]), nil
	}
	t, err := decodeTombstone(objects.ID(e.Key), value)
	return t.Kind, err
}

// searchRun adds the matching objects that a run of the index has.
func (q *search) searchRun(l *snapshot, r index.Run, from uint32) error {
	n, digits := len(q.ids), q.prefix[:min(len(q.prefix), 8)]
	for entries, err := range l.chunksFrom(r, from) {
		if err != nil {
			return err
		}
		for _, e := range entries[index.Search(entries, from):] {
			if !strings.HasPrefix(fmt.Sprintf("%08x", e.Prefix), digits) || q.reachedLimitSince(n) {
				return nil
			}
			at := placeOf(e)
			p, err := l.pack(at.pack)
			if err != nil {
				return err
			}
			if at.row >= p.Len() {
				return fmt.Errorf("pack %d: %w: object %d of %d", at.pack, errPack, at.row, p.Len())
			}
			q.addIfKindAndPrefixMatch(p, at.row)
		}
	}
	return nil
}

// searchPacks adds the matching objects of every pack, in the order of the packs.
func (q *search) searchPacks(l *snapshot) error {
	for e, err := range l.ascend(headsBucket, nil) {
		if err != nil {
			return err
		}
		n, err := packNumber(e.Key)
		if err != nil {
			return err
		}
		p, err := l.pack(n)
		if err != nil {
			return err
		}
		for i := range p.Len() {
			q.addIfKindAndPrefixMatch(p, i)
		}
		if q.limit > 0 && len(q.ids) > viewKeys+2*q.limit {
			q.keepSmallest()
		}
	}
	return nil
}

// addIfKindAndPrefixMatch adds the id of an object of a pack if kind and id match the search, unless it is purged.
func (q *search) addIfKindAndPrefixMatch(p *pack, row int) {
	id := *p.ID(row)
	if !p.isPurged(row) && (q.kind == 0 || p.Kind(row) == q.kind) && strings.HasPrefix(id.String(), q.prefix) {
		q.ids = append(q.ids, id)
	}
}

// keepSmallest keeps the smallest ids, as many as are wanted.
func (q *search) keepSmallest() {
	slices.SortFunc(q.ids, objects.ID.Compare)
	q.ids = slices.Compact(q.ids)
	if q.limit > 0 && len(q.ids) > q.limit {
		q.ids = q.ids[:q.limit]
	}
}
