package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/tract-vcs/tract/objects"
)

// Sweep is objects.Maintainer. It seals what can be sealed, and finds out what is
// unreachable while others go on. If something is, it looks again with the tables locked
// against writers, and removes it in the same transaction.
func (s *store) Sweep(ctx context.Context, o objects.Sweep) (done objects.Swept, err error) {
	if s.readOnly && !o.Dry {
		return done, fmt.Errorf("clean store %s: %w", s.name, objects.ErrReadOnly)
	}
	_, before, err := s.Size(ctx)
	if err != nil {
		return done, err
	}
	read := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = s.inTx(ctx, read, longTime, func(ctx context.Context, tx pgx.Tx) error {
		done, err = s.sweep(ctx, tx, o, false)
		return err
	})
	if err == nil && done.Removed > 0 && !o.Dry {
		err = s.inTx(ctx, pgx.TxOptions{}, longTime, func(ctx context.Context, tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, lockSQL); err != nil {
				return err
			}
			done, err = s.sweep(ctx, tx, o, true)
			return err
		})
	}
	if err == nil && !o.Dry {
		err = s.repack(ctx)
	}
	done.SizeBefore, done.SizeAfter = before, before
	if err == nil && !o.Dry {
		_, done.SizeAfter, err = s.Size(ctx)
	}
	return done, err
}

// repack seals every line that has enough commits for a segment.
func (s *store) repack(ctx context.Context) error {
	var lines []int64
	err := s.rows(ctx, func(row pgx.Rows) error {
		var line int64
		err := row.Scan(&line)
		lines = append(lines, line)
		return err
	}, `select line from tract_tail where repo = $1 group by line having count(*) >= $2 order by line`, s.repo, segmentSize)
	if err != nil {
		return err
	}
	for _, line := range lines {
		if err := s.seal(ctx, line, segmentSize); err != nil {
			return err
		}
	}
	if err := s.mergeIndex(ctx); err != nil {
		return err
	}
	s.vacuum(ctx)
	return nil
}

// fate is what becomes of an object.
type fate uint8

const (
	fateGone fate = iota
	fateYoung
	fateKept
)

// sweeper decides what is kept. Objects are known by their number in ids.
type sweeper struct {
	s     *store
	q     querier
	o     objects.Sweep
	done  objects.Swept
	ids   []objects.ID         // by number
	known map[objects.ID]int32 // numbers by id
	nodes []swept
	edges []int32
	rows  []sweptRow
	blobs []int32
	roots []objects.ID
}

// swept is one object: its edges end at the number end, and begin where those of the object
// read before it end.
type swept struct {
	seen       bool
	fate       fate
	from, end  int
	put, bytes int64
}

// sweptRow is a commit of a line, and the content that is stored with it; -1: none.
type sweptRow struct {
	at              position
	gen0            int64 // of its segment; -1: it is in the tail
	commit, content int32
}

func (s *store) sweep(ctx context.Context, tx pgx.Tx, o objects.Sweep, remove bool) (objects.Swept, error) {
	w := &sweeper{s: s, q: txQuerier{tx}, o: o, known: map[objects.ID]int32{}, roots: o.Keep}
	for _, part := range []func(context.Context) error{w.readRoots, w.readTail, w.readSegments, w.readBlobs} {
		if err := part(ctx); err != nil {
			return objects.Swept{}, err
		}
	}
	w.mark()
	w.count()
	if !remove {
		return w.done, nil
	}
	return w.done, w.remove(ctx, tx)
}

func (w *sweeper) number(id objects.ID) int32 {
	n, ok := w.known[id]
	if !ok {
		n = int32(len(w.ids))
		w.known[id], w.ids, w.nodes = n, append(w.ids, id), append(w.nodes, swept{})
	}
	return n
}

// add takes an object that was read.
func (w *sweeper) add(o *objects.Object, put int64) int32 {
	n := w.number(o.ID)
	node := swept{seen: true, from: len(w.edges), put: put, bytes: int64(len(o.Data))}
	if have := &w.nodes[n]; have.seen { // a copy
		have.put = max(have.put, put)
		return n
	}
	for _, ids := range [2][]objects.ID{o.Parents, o.Links} {
		for _, id := range ids {
			w.edges = append(w.edges, w.number(id))
		}
	}
	node.end = len(w.edges)
	w.nodes[n] = node
	return n
}

func (w *sweeper) readRoots(ctx context.Context) error {
	err := w.q.query(ctx, func(row pgx.Rows) error {
		_, r, err := scanRef(row)
		w.roots = append(w.roots, r.target)
		return err
	}, `select `+refColumns+` from tract_ref where repo = $1`, w.s.repo)
	if err != nil {
		return err
	}
	return w.q.query(ctx, func(row pgx.Rows) error {
		e, err := scanEntry(row)
		for _, u := range e.Refs {
			w.roots = append(w.roots, u.Old, u.New)
		}
		return err
	}, `select seq, record from tract_log where repo = $1 and record is not null`, w.s.repo)
}

func (w *sweeper) readTail(ctx context.Context) error {
	return w.q.query(ctx, func(row pgx.Rows) error {
		r := sweptRow{gen0: -1, content: -1}
		var key, head, content []byte
		var size, put int64
		if err := row.Scan(&r.at.line, &r.at.gen, &key, &head, &content, &size, &put); err != nil {
			return err
		}
		id, err := parseID(key)
		if err != nil {
			return err
		}
		o, err := readObject(id, head)
		if err != nil {
			return err
		}
		r.commit = w.add(&o, put)
		if size >= 0 {
			of, err := parseID(content)
			if err != nil {
				return err
			}
			r.content = w.add(&objects.Object{ID: of}, put)
			w.nodes[r.content].bytes = size
		}
		w.rows = append(w.rows, r)
		return nil
	}, `select line, gen, id, head, content, coalesce(length(body), -1)::bigint, put from tract_tail where repo = $1 order by line, gen`, w.s.repo)
}

func (w *sweeper) readSegments(ctx context.Context) error {
	return w.q.query(ctx, func(row pgx.Rows) error {
		r, err := scanSegment(row)
		if err != nil {
			return err
		}
		seg, err := decodeSegment(r)
		if err != nil {
			return err
		}
		for i := range seg.commits {
			one := sweptRow{at: position{r.line, r.gen0 + int64(i)}, gen0: r.gen0, content: -1}
			one.commit = w.add(&seg.commits[i], r.put)
			if k := seg.table.Link(seg.rows[i]); k >= 0 && seg.table.Kind(k) == objects.KindContent {
				one.content = w.add(&objects.Object{ID: *seg.table.ID(k)}, r.put)
				_, size := seg.table.Data(k)
				w.nodes[one.content].bytes = int64(size)
			}
			w.rows = append(w.rows, one)
		}
		return nil
	}, `select line, gen0, n, tip, heads, null::bytea, put from tract_seg where repo = $1 order by line, gen0`, w.s.repo)
}

func (w *sweeper) readBlobs(ctx context.Context) error {
	return w.q.query(ctx, func(row pgx.Rows) error {
		var key, data []byte
		var codec int16
		var put int64
		if err := row.Scan(&key, &codec, &data, &put); err != nil {
			return err
		}
		id, err := parseID(key)
		if err != nil {
			return err
		}
		o, err := readBlob(id, codec, data)
		w.blobs = append(w.blobs, w.add(&o, put))
		return err
	}, `select id, codec, data, put from tract_blob where repo = $1 order by id`, w.s.repo)
}

// mark decides the fate of every object.
func (w *sweeper) mark() {
	for _, id := range w.roots {
		if n, ok := w.known[id]; ok {
			w.reach(n, fateKept)
		}
	}
	before := w.o.Before.UnixMilli()
	for n := range w.nodes {
		if w.o.Before.IsZero() || w.nodes[n].put >= before {
			w.reach(int32(n), fateYoung)
		}
	}
	// A row stays as a whole, with what its commit refers to.
	for again := true; again; {
		again = false
		for _, r := range w.rows {
			if r.content >= 0 && w.nodes[r.content].fate > fateGone && w.nodes[r.commit].fate == fateGone {
				w.reach(r.commit, fateYoung)
				again = true
			}
		}
	}
}

// reach gives an object and everything that it refers to a fate, where theirs is worse.
func (w *sweeper) reach(n int32, f fate) {
	for todo := []int32{n}; len(todo) > 0; {
		at := &w.nodes[todo[len(todo)-1]]
		todo = todo[:len(todo)-1]
		if at.fate >= f {
			continue
		}
		at.fate = f
		todo = append(todo, w.edges[at.from:at.end]...)
	}
}

func (w *sweeper) count() {
	const most = 10 // of the list for people
	for n := range w.nodes {
		at := &w.nodes[n]
		switch {
		case !at.seen:
		case at.fate == fateKept:
			w.done.Kept++
		case at.fate == fateYoung:
			w.done.Young++
		default:
			w.done.Removed++
			w.done.RemovedBytes += at.bytes
			if len(w.done.Examples) < most {
				w.done.Examples = append(w.done.Examples, w.ids[n])
			}
		}
	}
}

// remove deletes the rows of objects that are gone. In a line these are the newest commits,
// since every commit refers to the one before it.
func (w *sweeper) remove(ctx context.Context, tx pgx.Tx) error {
	var ids [][]byte
	for _, n := range w.blobs {
		if w.nodes[n].fate == fateGone {
			ids = append(ids, w.ids[n][:])
		}
	}
	var lines, gens []int64     // rows of the tail
	cut := map[position]int64{} // segments: the first gen that is gone
	sealed := map[int64]int64{} // lines whose segments end earlier
	for _, r := range w.rows {
		if w.nodes[r.commit].fate > fateGone {
			continue
		}
		if r.gen0 < 0 {
			lines, gens = append(lines, r.at.line), append(gens, r.at.gen)
			continue
		}
		if _, ok := cut[position{r.at.line, r.gen0}]; !ok {
			cut[position{r.at.line, r.gen0}] = r.at.gen
		}
		if first, ok := sealed[r.at.line]; !ok || r.at.gen < first {
			sealed[r.at.line] = r.at.gen
		}
	}
	batch := &pgx.Batch{}
	batch.Queue(`delete from tract_blob where repo = $1 and id = any($2::bytea[])`, w.s.repo, ids)
	batch.Queue(`delete from tract_tail where repo = $1 and (line, gen) in (select * from unnest($2::bigint[], $3::bigint[]))`, w.s.repo, lines, gens)
	for at, gen := range cut {
		if err := w.cut(ctx, batch, at, gen); err != nil {
			return err
		}
	}
	for line, gen := range sealed {
		batch.Queue(`update tract_line set sealed = $3 where repo = $1 and line = $2`, w.s.repo, line, gen)
	}
	batch.Queue(`delete from tract_line l where repo = $1 and not exists (select from tract_tail t where t.repo = $1 and t.line = l.line)
and not exists (select from tract_seg g where g.repo = $1 and g.line = l.line)`, w.s.repo)
	return tx.SendBatch(ctx, batch).Close()
}

// cut removes the commits of a segment from a gen on.
func (w *sweeper) cut(ctx context.Context, batch *pgx.Batch, at position, gen int64) error {
	if gen == at.gen {
		batch.Queue(`delete from tract_seg where repo = $1 and line = $2 and gen0 = $3`, w.s.repo, at.line, at.gen)
		batch.Queue(`delete from tract_index where repo = $1 and level = 0 and line = $2 and gen0 = $3`, w.s.repo, at.line, at.gen)
		return nil
	}
	seg, put, err := w.s.segmentAt(ctx, w.q, at, true)
	if err != nil {
		return err
	}
	list, err := seg.entries()
	if err != nil {
		return err
	}
	row, _ := encodeSegment(at.line, at.gen, list[:gen-at.gen], put)
	w.s.queueSegment(batch, row, nil)
	return nil
}
