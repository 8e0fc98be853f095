package postgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/tract-vcs/tract/objects"
)

// Purge is objects.Maintainer, in a transaction in which others cannot write to the repo: no copy
// of an object may come or move while it is looked for. The server keeps the bytes of deleted
// rows until it has vacuumed them.
//
// A write that waits for the transaction does not see its tombstones if it is repeatable read. Had it copies
// of purged objects, then the second transaction, which begins after it, removes them.
func (s *store) Purge(ctx context.Context, list []objects.Tombstone, progress func(done, total int64)) (purged int, err error) {
	if s.readOnly {
		return 0, fmt.Errorf("purge store %s: %w", s.name, objects.ErrReadOnly)
	}
	p, err := s.purgeInTx(ctx, list, progress)
	if err != nil || len(p.tombstones) == 0 {
		return 0, err
	}
	if _, err := s.purgeInTx(ctx, p.tombstones, nil); err != nil {
		return len(p.tombstones), err // the first transaction stands
	}
	s.vacuum(ctx)
	return len(p.tombstones), nil
}

// purgeInTx purges objects in one transaction, while it holds the lock of the repo.
func (s *store) purgeInTx(ctx context.Context, list []objects.Tombstone, progress func(done, total int64)) (p *purge, err error) {
	var version uint64
	err = s.inTx(ctx, pgx.TxOptions{}, longTime, func(ctx context.Context, tx pgx.Tx) error {
		p = &purge{s: s, q: direct{tx}, segments: map[int32]map[objects.ID]bool{}}
		if err := s.lockRepo(ctx, tx); err != nil {
			return err
		}
		done := 0
		for part := range slices.Chunk(list, purgeIDs) {
			if err := p.find(ctx, part); err != nil {
				return err
			}
			if done += len(part); progress != nil {
				progress(int64(done), int64(2*len(list)))
			}
		}
		if err := p.replaceByTombstones(ctx, tx); err != nil {
			return err
		}
		return tx.QueryRow(ctx, `update tract_repo set purges = purges + $2 where id = $1 returning purges`, s.repo, min(len(p.tombstones), 1)).Scan(&version)
	})
	if err == nil {
		s.setPurges(version)
	}
	return p, err
}

// purgeIDs is how many objects are looked up at a time.
const purgeIDs = 8

// purge is one Purge.
type purge struct {
	s          *store
	q          querier
	tombstones []objects.Tombstone
	segments   map[int32]map[objects.ID]bool // by number: objects to remove
}

// find completes the tombstones of objects, and finds the segments that have them.
func (p *purge) find(ctx context.Context, list []objects.Tombstone) error {
	ids := make([]objects.ID, len(list))
	for i := range list {
		ids[i] = list[i].ID
	}
	l, err := p.s.lookup(ctx, p.q, ids, lookupAll)
	if err != nil {
		return err
	}
	for number, wanted := range l.candidates {
		seg, err := p.s.segment(ctx, p.q, number, true)
		if err != nil {
			return err
		}
		for _, id := range wanted {
			f, ok := seg.lookup(id, false)
			if !ok {
				continue
			}
			l.objects[id] = f
			if p.segments[number] == nil {
				p.segments[number] = map[objects.ID]bool{}
			}
			p.segments[number][id] = true
		}
	}
	for _, t := range list {
		f, there := l.objects[t.ID]
		_, before := l.tombstones[t.ID]
		switch {
		case there && f.err != nil:
			return f.err
		case there:
			if t, err = t.Complete(f.object); err != nil {
				return err
			}
		case before:
			continue
		case t.Kind == 0:
			return &objects.NotFoundError{ID: t.ID}
		}
		p.tombstones = append(p.tombstones, t)
	}
	return nil
}

// replaceByTombstones replaces the objects with their tombstones.
func (p *purge) replaceByTombstones(ctx context.Context, tx pgx.Tx) error {
	var ids, records [][]byte
	for i := range p.tombstones {
		t := &p.tombstones[i]
		ids, records = append(ids, t.ID[:]), append(records, t.Record())
	}
	batch := &pgx.Batch{}
	batch.Queue(`update tract_tail set body = null where repo = $1 and content = any($2::bytea[]) and body is not null`, p.s.repo, ids)
	batch.Queue(`delete from tract_blob where repo = $1 and id = any($2::bytea[])`, p.s.repo, ids)
	batch.Queue(`insert into tract_tombstone (repo, id, record) select $1, * from unnest($2::bytea[], $3::bytea[])
on conflict (repo, id) do update set record = excluded.record`, p.s.repo, ids, records)
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return err
	}
	for number, gone := range p.segments {
		seg, err := p.s.segment(ctx, p.q, number, true)
		if err != nil {
			return err
		}
		list, err := seg.entries()
		if err != nil {
			return err
		}
		for i := range list {
			if gone[list[i].content.ID] {
				list[i].content = objects.Object{}
			}
		}
		batch := &pgx.Batch{}
		seg.rewrite(batch, p.s.repo, list)
		if err := tx.SendBatch(ctx, batch).Close(); err != nil {
			return err
		}
	}
	return nil
}
