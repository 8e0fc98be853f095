package bolt

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/index"
	"github.com/tract-vcs/tract/objects/bolt/internal/page"
)

// Find is objects.Reader. It searches the journal, then the large objects, then the packs: an
// object that a checkpoint moves meanwhile is found twice rather than not at all.
func (s *store) Find(ctx context.Context, kind objects.Kind, prefix string, limit int) (ids []objects.ID, err error) {
	prefix = strings.ToLower(prefix)
	if len(prefix) > 2*idSize {
		return nil, ctx.Err()
	}
	even := prefix
	if len(prefix)%2 == 1 {
		even += "0"
	}
	from, err := hex.DecodeString(even)
	if err != nil {
		return nil, err
	}
	q := search{kind: kind, prefix: prefix, limit: limit}
	for _, part := range []func(*snapshot, []byte) ([]byte, error){q.alone, q.packed} {
		q.found = 0
		for next := from; next != nil; {
			err = s.view(ctx, "search", func(l *snapshot) (err error) {
				next, err = part(l, next)
				return err
			})
			if err != nil {
				return nil, err
			}
		}
	}
	q.cut()
	return q.ids, nil
}

// search is the state of one Find. Each part returns the key to continue from, if any.
type search struct {
	kind   objects.Kind
	prefix string
	limit  int
	ids    []objects.ID
	found  int // by this part
}

func (q *search) add(id objects.ID) (full bool) {
	q.ids = append(q.ids, id)
	q.found++
	return q.found == q.limit
}

// alone searches what is in no pack.
func (q *search) alone(l *snapshot, from []byte) ([]byte, error) {
	seen := 0
	for e, err := range l.ascend(objectsBucket, from) {
		if err != nil {
			return nil, err
		}
		if len(e.Key) != idSize {
			return nil, errors.New("an object whose key is no id")
		}
		id := objects.ID(e.Key)
		if !strings.HasPrefix(id.String(), q.prefix) {
			return nil, nil
		}
		if seen++; seen > pageKeys {
			return bytes.Clone(e.Key), nil
		}
		if q.kind != 0 {
			kind, err := kindOf(e)
			if err != nil {
				return nil, err
			}
			if kind != q.kind {
				continue
			}
		}
		if q.add(id) {
			return nil, nil
		}
	}
	return nil, nil
}

// kindOf reads the kind of an object that is in no pack, purged ones included; zero: the record
// is empty.
func kindOf(e page.Entry) (objects.Kind, error) {
	first, err := e.Part(0, min(1, e.ValueSize))
	if err == nil && len(first) > 0 && first[0] == tombstone {
		first, err = kindOfPurged(e)
	}
	if err != nil || len(first) == 0 {
		return 0, err
	}
	return recordKind(first[0]), nil
}

// packed searches the packs: by the index, or all of them if most would be read anyway.
func (q *search) packed(l *snapshot, from []byte) ([]byte, error) {
	if len(q.prefix) < 3 && (q.limit == 0 || q.kind != 0) {
		return nil, q.all(l)
	}
	all, err := l.runs()
	if err != nil {
		return nil, err
	}
	for _, r := range all.List {
		q.found = 0
		if err := q.inRun(l, r, index.Prefix(from)); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func (q *search) inRun(l *snapshot, r index.Run, from uint32) error {
	digits := q.prefix[:min(len(q.prefix), 8)]
	for entries, err := range l.chunks(r, from) {
		if err != nil {
			return err
		}
		for _, e := range entries[index.Search(entries, from):] {
			if !strings.HasPrefix(fmt.Sprintf("%08x", e.Prefix), digits) {
				return nil
			}
			at := placeOf(e)
			p, err := l.pack(at.pack)
			if err != nil {
				return err
			}
			if at.slot >= p.Len() {
				return fmt.Errorf("pack %d: %w: object %d of %d", at.pack, errPack, at.slot, p.Len())
			}
			if q.match(p, at.slot) && q.add(p.id(at.slot)) {
				return nil
			}
		}
	}
	return nil
}

// all searches every pack, in their order.
func (q *search) all(l *snapshot) error {
	for e, err := range l.ascend(headsBucket, nil) {
		if err != nil {
			return err
		}
		b, err := e.Value()
		if err != nil || len(e.Key) != 4 {
			return fmt.Errorf("a pack with the key %x: %w", e.Key, cmp.Or(err, errPack))
		}
		p, err := parsePack(binary.BigEndian.Uint32(e.Key), b)
		if err != nil {
			return err
		}
		for i := range p.Len() {
			if q.match(p, i) {
				q.add(p.id(i))
			}
		}
		if q.limit > 0 && len(q.ids) > pageKeys+2*q.limit {
			q.cut()
		}
	}
	return nil
}

// cut keeps the smallest ids, as many as were asked for.
func (q *search) cut() {
	slices.SortFunc(q.ids, objects.ID.Compare)
	q.ids = slices.Compact(q.ids)
	if q.limit > 0 && len(q.ids) > q.limit {
		q.ids = q.ids[:q.limit]
	}
}

func (q *search) match(p *pack, slot int) bool {
	id := p.id(slot)
	return !p.isPurged(slot) && (q.kind == 0 || p.Kind(slot) == q.kind) && strings.HasPrefix(id.String(), q.prefix)
}
