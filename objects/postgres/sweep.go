package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/tract-vcs/tract/objects"
)

// Sweep is objects.Maintainer. It finds out what is unreachable while others go on. If
// something is, it looks again with the repo locked against writers, and removes it in the same
// transaction. Then it seals what can be sealed.
func (s *store) Sweep(ctx context.Context, o objects.Sweep) (done objects.Swept, err error) {
	if s.readOnly && !o.Dry {
		return done, fmt.Errorf("clean store %s: %w", s.name, objects.ErrReadOnly)
	}
	_, before, err := s.Size(ctx)
	if err != nil {
		return done, err
	}
	err = s.inTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, longTime, func(ctx context.Context, tx pgx.Tx) error {
		done, err = s.sweep(ctx, tx, o, false)
		return err
	})
	if err == nil && done.Removed > 0 && !o.Dry {
		err = s.inTx(ctx, pgx.TxOptions{}, longTime, func(ctx context.Context, tx pgx.Tx) error {
			if err := s.lockRepo(ctx, tx); err != nil {
				return err
			}
			done, err = s.sweep(ctx, tx, o, true)
			return err
		})
	}
	s.recent.forget()
	if err == nil && !o.Dry {
		err = s.sealLongTails(ctx)
	}
	done.SizeBefore, done.SizeAfter = before, before
	if err == nil && !o.Dry {
		_, done.SizeAfter, err = s.Size(ctx)
	}
	return done, err
}

// sealLongTails seals every line that has enough commits for a segment.
func (s *store) sealLongTails(ctx context.Context) error {
	lines, err := collect(ctx, s, pgx.RowTo[int64], `select line from tract_tail where repo = $1 group by line having count(*) >= $2 order by line`, s.repo, segmentSize)
	if err != nil {
		return err
	}
	for _, line := range lines {
		if err := s.seal(ctx, line, segmentSize); err != nil {
			return err
		}
	}
	s.vacuum(ctx)
	return nil
}

// A sweep keeps the graph of the store in temporary tables, so that its memory does not grow
// with the store. A commit leads to those before it in its line: what is reached of a line is
// known by the gen of the newest commit that is. A row of tract_blob is a line of its own with
// a negative number. Edges are those that do not lead to the commit before in the line, nor to
// the content that is stored with the commit.
const sweepTables = `
set local work_mem = '64MB';
set local enable_seqscan = on;
create temporary table swept_object (id bytea, line bigint, gen bigint, put bigint, size bigint) on commit drop;
create temporary table swept_edge (line bigint, gen bigint, id bytea) on commit drop;
create temporary table swept_root (id bytea) on commit drop;
create temporary table swept_reach (line bigint primary key, gen bigint, followed bigint) on commit drop`

// sweepIndexes are made when the objects and edges are there.
const sweepIndexes = `
create index on swept_object (id);
create index on swept_edge (line, gen);
create index on swept_reach (line) where followed < gen;
analyze swept_object;
analyze swept_edge`

// reachSQL reaches every copy of the roots, with the commits before it in the line.
const reachSQL = `insert into swept_reach as r (line, gen, followed)
select o.line, max(o.gen), -1 from swept_root join swept_object o using (id) group by o.line
on conflict (line) do update set gen = excluded.gen where r.gen < excluded.gen`

// followSQL makes roots of what was reached and not yet followed leads to.
const followSQL = `insert into swept_root select distinct e.id from swept_reach r join swept_edge e using (line)
where r.followed < r.gen and e.gen > r.followed and e.gen <= r.gen`

// countSQL counts the objects that were reached and the others, and the bytes of these.
const countSQL = `select count(*) filter (where reached), count(*) filter (where not reached), coalesce(sum(size) filter (where not reached), 0)::bigint
from (select max(size) as size, coalesce(bool_or(o.gen <= r.gen), false) as reached from swept_object o left join swept_reach r using (line) group by id) x`

// sweeper is one pass of Sweep.
type sweeper struct {
	s        *store
	tx       pgx.Tx
	lines    int64 // of blobs
	done     int64 // objects that were read
	total    int64 // about
	progress func(done, total int64)

	objectIDs, edgeIDs, rootIDs [][]byte   // that are not in the tables yet
	objects                     [4][]int64 // their columns: line, gen, put, size
	edges                       [2][]int64 // line, gen

	line int64 // of the commits that are read
	last objects.ID
	gen  int64               // of last
	seen map[objects.ID]bool // some of the targets of edges of the line
}

func (s *store) sweep(ctx context.Context, tx pgx.Tx, o objects.Sweep, remove bool) (done objects.Swept, err error) {
	w := &sweeper{s: s, tx: tx, progress: o.Progress}
	if err := tx.QueryRow(ctx, totalSQL, s.repo).Scan(&w.total); err != nil {
		return done, err
	}
	if _, err := tx.Exec(ctx, sweepTables); err != nil {
		return done, err
	}
	for _, read := range []func(context.Context) error{w.readCommits, w.addBlobs, w.readRoots} {
		if err := read(ctx); err != nil {
			return done, err
		}
	}
	if _, err := tx.Exec(ctx, sweepIndexes); err != nil {
		return done, err
	}
	if err := w.markReachable(ctx, []any{&done.Kept, nil, nil}, `insert into swept_root select * from unnest($1::bytea[])`, idBytes(o.Keep)); err != nil {
		return done, err
	}
	err = w.markReachable(ctx, []any{&done.Young, &done.Removed, &done.RemovedBytes},
		`insert into swept_root select distinct id from swept_object where $1 or put >= $2`, o.Before.IsZero(), o.Before.UnixMilli())
	if err != nil {
		return done, err
	}
	done.Young -= done.Kept
	if done.Removed == 0 {
		return done, nil
	}
	const most = 10 // of the list for people
	err = direct{w.tx}.query(ctx, func(row pgx.CollectableRow) error {
		var id objects.ID
		err := row.Scan(idColumn{&id})
		done.Examples = append(done.Examples, id)
		return err
	}, `select id from swept_object o left join swept_reach r using (line) group by id having not coalesce(bool_or(o.gen <= r.gen), false) limit $1`, most)
	if err != nil || !remove {
		return done, err
	}
	return done, w.deleteUnreached(ctx)
}

// collectRows calls scan for every row of a query, and writes what it has added to the tables. Each
// query has a cursor of its own, since a statement with the same text must have the same columns.
func (w *sweeper) collectRows(ctx context.Context, name string, page int, scan func(pgx.CollectableRow) error, sql string) error {
	cursor := "swept_" + name
	if _, err := w.tx.Exec(ctx, `declare `+cursor+` no scroll cursor for `+sql, w.s.repo); err != nil {
		return err
	}
	w.line, w.gen, w.last = 0, 0, objects.ID{}
	for rows := page; rows == page; {
		rows = 0
		err := direct{w.tx}.query(ctx, func(row pgx.CollectableRow) error { rows++; return scan(row) }, fmt.Sprintf(`fetch %d from %s`, page, cursor))
		if err != nil {
			return err
		}
		if err := w.flushToTempTables(ctx); err != nil {
			return err
		}
	}
	_, err := w.tx.Exec(ctx, `close `+cursor)
	return err
}

// flushToTempTables writes the collected objects, edges and roots to the temporary tables.
func (w *sweeper) flushToTempTables(ctx context.Context) error {
	batch := &pgx.Batch{}
	batch.Queue(`insert into swept_object select * from unnest($1::bytea[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[])`,
		w.objectIDs, w.objects[0], w.objects[1], w.objects[2], w.objects[3])
	batch.Queue(`insert into swept_edge select * from unnest($1::bigint[], $2::bigint[], $3::bytea[])`, w.edges[0], w.edges[1], w.edgeIDs)
	batch.Queue(`insert into swept_root select * from unnest($1::bytea[])`, w.rootIDs)
	w.objectIDs, w.edgeIDs, w.rootIDs, w.objects, w.edges = nil, nil, nil, [4][]int64{}, [2][]int64{}
	if w.progress != nil {
		w.progress(min(w.done, w.total), w.total)
	}
	return w.tx.SendBatch(ctx, batch).Close()
}

// collectObject adds an object.
func (w *sweeper) collectObject(id objects.ID, at position, put, size int64) {
	w.done++
	w.objectIDs = append(w.objectIDs, id[:])
	for i, v := range [4]int64{at.line, at.gen, put, size} {
		w.objects[i] = append(w.objects[i], v)
	}
}

// collectCommit adds a commit, and its edges: content is the one that is stored with it.
func (w *sweeper) collectCommit(o *objects.Object, content objects.ID, at position, put int64) {
	const most = 1 << 12 // targets that are remembered
	if w.line != at.line || at.gen <= w.gen || len(w.seen) > most {
		w.seen = map[objects.ID]bool{}
	}
	if w.line != at.line {
		w.line, w.last = at.line, objects.ID{}
	}
	w.collectObject(o.ID, at, put, int64(len(o.Data)))
	for _, ids := range [2][]objects.ID{o.Parents, o.Links} {
		for _, id := range ids {
			// An older commit of the line that has the same edge is reached as well.
			if id != w.last && id != content && !w.seen[id] {
				w.seen[id] = true
				w.edgeIDs = append(w.edgeIDs, id[:])
				w.edges[0], w.edges[1] = append(w.edges[0], at.line), append(w.edges[1], at.gen)
			}
		}
	}
	w.last, w.gen = o.ID, at.gen
}

// readCommits reads one line after the other, each from its first commit on.
func (w *sweeper) readCommits(ctx context.Context) error {
	return w.collectRows(ctx, "commits", 16, func(row pgx.CollectableRow) error {
		var content objects.ID
		var size int64 // of the content that is stored with a commit of the tail; -1: none is
		r, err := scanSegment(row, idColumn{&content}, &size)
		if err != nil {
			return err
		}
		at := position{r.line, r.gen0}
		if r.number == tailNumber {
			o, err := readObject(r.tip, r.heads)
			if size < 0 {
				content = objects.ID{}
			} else {
				w.collectObject(content, at, r.put, size)
			}
			w.collectCommit(&o, content, at, r.put)
			return err
		}
		seg, err := decodeSegment(r)
		if err != nil {
			return err
		}
		for i := range seg.commits {
			content = objects.ID{}
			if k := seg.table.Link(seg.rows[i]); k >= 0 && seg.table.Kind(k) == objects.KindContent {
				_, size := seg.table.Data(k)
				content = *seg.table.ID(k)
				w.collectObject(content, at, r.put, int64(size))
			}
			w.collectCommit(&seg.commits[i], content, at, r.put)
			at.gen++
		}
		return nil
	}, `select `+headColumns+`, null::bytea, -1 from tract_seg where repo = $1
union all select 0, line, gen, 1, id, put, head, null, content, coalesce(length(body), -1) from tract_tail where repo = $1
order by 2, 3`)
}

func (w *sweeper) addBlobs(ctx context.Context) error {
	return w.collectRows(ctx, "blobs", 1024, func(row pgx.CollectableRow) error {
		var id objects.ID
		var data []byte
		var codec int16
		var put int64
		if err := row.Scan(idColumn{&id}, &codec, &data, &put); err != nil {
			return err
		}
		o, err := readBlob(id, codec, data)
		w.lines--
		w.collectCommit(&o, objects.ID{}, position{w.lines, 0}, put)
		return err
	}, `select id, codec, data, put from tract_blob where repo = $1`)
}

// readRoots reads what refs and the ref log name.
func (w *sweeper) readRoots(ctx context.Context) error {
	err := w.collectRows(ctx, "log", 1024, func(row pgx.CollectableRow) error {
		e, err := scanEntry(row)
		for _, u := range e.Refs {
			w.rootIDs = append(w.rootIDs, u.Old[:], u.New[:])
		}
		return err
	}, `select seq, record from tract_log where repo = $1 and record is not null`)
	if err != nil {
		return err
	}
	_, err = w.tx.Exec(ctx, `insert into swept_root select target from tract_ref where repo = $1 and target is not null`, w.s.repo)
	return err
}

// markReachable adds the roots that a statement inserts, reaches everything that the roots lead to, and scans
// the row of countSQL into count.
func (w *sweeper) markReachable(ctx context.Context, count []any, insertRoots string, args ...any) error {
	if _, err := w.tx.Exec(ctx, insertRoots, args...); err != nil {
		return err
	}
	for {
		reached, err := w.tx.Exec(ctx, reachSQL)
		if err != nil {
			return err
		}
		if reached.RowsAffected() == 0 {
			return w.tx.QueryRow(ctx, countSQL).Scan(count...)
		}
		batch := &pgx.Batch{}
		batch.Queue(`delete from swept_root`)
		batch.Queue(followSQL)
		batch.Queue(`update swept_reach set followed = gen where followed < gen`)
		if err := w.tx.SendBatch(ctx, batch).Close(); err != nil {
			return err
		}
	}
}

// deleteUnreached deletes what was not reached: rows of blobs, and the newest commits of lines.
func (w *sweeper) deleteUnreached(ctx context.Context) error {
	type part struct {
		Number int32
		N      int64 // commits that stay
	}
	rows, _ := w.tx.Query(ctx, `select g.number, coalesce(r.gen, -1) + 1 - g.gen0 from tract_seg g left join swept_reach r using (line)
where g.repo = $1 and g.gen0 + g.n > coalesce(r.gen, -1) + 1`, w.s.repo)
	segments, err := pgx.CollectRows(rows, pgx.RowToStructByPos[part])
	if err != nil {
		return err
	}
	batch := &pgx.Batch{}
	for _, p := range segments {
		if err := w.truncateSegment(ctx, batch, p.Number, p.N); err != nil {
			return err
		}
	}
	for _, sql := range []string{
		`delete from tract_blob b using swept_object o left join swept_reach r using (line) where b.repo = $1 and b.id = o.id and o.line < 0 and r.line is null`,
		`delete from tract_tail t where repo = $1 and gen > coalesce((select r.gen from swept_reach r where r.line = t.line), -1)`,
		`delete from tract_index i where repo = $1 and not exists (select from tract_seg g where g.repo = $1 and g.number = i.number)`,
		`update tract_line l set sealed = r.gen + 1 from swept_reach r where l.repo = $1 and l.line = r.line and l.sealed > r.gen + 1`,
		`delete from tract_line l where repo = $1 and not exists (select from tract_tail t where t.repo = $1 and t.line = l.line)
and not exists (select from tract_seg g where g.repo = $1 and g.line = l.line)`,
	} {
		batch.Queue(sql, w.s.repo)
	}
	return w.tx.SendBatch(ctx, batch).Close()
}

// truncateSegment leaves the first keep commits of a segment; 0 or less: none.
func (w *sweeper) truncateSegment(ctx context.Context, batch *pgx.Batch, number int32, keep int64) error {
	if keep <= 0 {
		batch.Queue(`delete from tract_seg where repo = $1 and number = $2`, w.s.repo, number)
		return nil
	}
	seg, err := w.s.segment(ctx, direct{w.tx}, number, true)
	if err != nil {
		return err
	}
	list, err := seg.entries()
	if err != nil {
		return err
	}
	seg.rewrite(batch, w.s.repo, list[:keep])
	return nil
}
