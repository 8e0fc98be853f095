package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/tract-vcs/tract/objects"
)

// Audit is objects.Maintainer, in one transaction that only reads. After transient trouble
// it begins again.
func (s *store) Audit(ctx context.Context, a objects.Audit) error {
	var stop error
	err := s.inTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, longTime, func(ctx context.Context, tx pgx.Tx) error {
		w := &auditor{
			s: s, q: txQuerier{tx}, to: a, refs: map[string]refState{}, newest: map[string]move{},
			at: map[position]objects.ID{}, lines: map[int64]*lineState{}, forks: map[position][]objects.ID{},
		}
		err := w.run(ctx)
		if w.stop != nil {
			stop = w.stop
			return errStopped
		}
		return err
	})
	if stop != nil {
		return stop
	}
	return err
}

var errStopped = errors.New("the caller has ended the audit")

// auditor is one Audit. Its memory grows with the number of refs and lines, not with that of
// commits.
type auditor struct {
	s    *store
	q    querier
	to   objects.Audit
	stop error // of the caller

	refs   map[string]refState
	newest map[string]move           // of each ref: its newest entry and where that moved it
	at     map[position]objects.ID   // commits at places that refs and forks name; zero: not seen
	lines  map[int64]*lineState      // by number
	forks  map[position][]objects.ID // by place: commits that must be there
	list   []objects.Object          // for the caller
	done   int64
	total  int64
}

// move is the newest log entry of a ref.
type move struct {
	hash   objects.ID
	target objects.ID
}

// lineState is how far a line has been read.
type lineState struct {
	first, sealed int64
	from          position
	next          int64      // gen of the next commit
	last          objects.ID // the commit before it
}

func (w *auditor) run(ctx context.Context) error {
	for _, part := range []func(context.Context) error{
		w.begin, w.readRefs, w.readLog, w.readLines, w.readSegments, w.readTail, w.readBlobs, w.readTombstones,
		w.checkForks, w.checkRefs, w.checkIndex,
	} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// call keeps the error of the caller.
func (w *auditor) call(err error) error {
	if err != nil {
		w.stop = err
	}
	return err
}

func (w *auditor) damage(d objects.Damage) error {
	if w.to.Damage == nil {
		return nil
	}
	return w.call(w.to.Damage(d))
}

func (w *auditor) wrong(where, what, means string) error {
	return w.damage(objects.Damage{Where: where, What: what, Means: means})
}

// object takes an object that was read from a row.
func (w *auditor) object(where string, o objects.Object, err error) error {
	if err != nil {
		return w.damage(objects.Damage{ID: o.ID, Where: where, What: cause(err).Error()})
	}
	const most = 256
	w.done++
	if w.list = append(w.list, o); len(w.list) < most {
		return nil
	}
	return w.flush()
}

func (w *auditor) flush() error {
	list := w.list
	w.list = w.list[:0]
	if w.to.Progress != nil {
		w.to.Progress(min(w.done, w.total), w.total)
	}
	if len(list) == 0 || w.to.Objects == nil {
		return nil
	}
	return w.call(w.to.Objects(list))
}

func (w *auditor) begin(ctx context.Context) error {
	err := w.q.query(ctx, func(row pgx.Rows) error { return row.Scan(&w.total) },
		`select (2 * (select count(*) from tract_tail where repo = $1) + 2 * (select coalesce(sum(n), 0) from tract_seg where repo = $1)
+ (select count(*) from tract_blob where repo = $1))::bigint`, w.s.repo)
	if err == nil && w.to.Begin != nil {
		err = w.call(w.to.Begin(int(w.total)))
	}
	return err
}

func (w *auditor) readRefs(ctx context.Context) error {
	return w.q.query(ctx, func(row pgx.Rows) error {
		name, r, err := scanRef(row)
		if err != nil {
			return err
		}
		if err := objects.CheckRefName(name); err != nil {
			return w.wrong("tract_ref", err.Error(), "the ref cannot be read")
		}
		w.refs[name] = r
		if r.at.line != 0 {
			w.at[r.at] = objects.ID{}
		}
		if r.target.IsZero() || w.to.Ref == nil {
			return nil
		}
		return w.call(w.to.Ref(r.ref(name)))
	}, `select `+refColumns+` from tract_ref where repo = $1 order by name`, w.s.repo)
}

// readLog reads the entries, the oldest first, and follows the chain of every ref.
func (w *auditor) readLog(ctx context.Context) error {
	var entry objects.LogEntry
	names := map[string]bool{} // of the rows of the entry
	check := func() error {
		for _, u := range entry.Refs {
			if !names[u.Name] {
				return w.wrong(fmt.Sprintf("log entry %d", entry.Seq), fmt.Sprintf("it is not in the log of ref %q", u.Name), "a move of the ref is not shown")
			}
		}
		return nil
	}
	err := w.q.query(ctx, func(row pgx.Rows) error {
		var seq int64
		var name string
		var record []byte
		if err := row.Scan(&seq, &name, &record); err != nil {
			return err
		}
		if record == nil {
			names[name] = true
			return nil
		}
		if err := check(); err != nil {
			return err
		}
		clear(names)
		names[name] = true
		e, err := objects.ParseLogEntry(record)
		if entry = e; err == nil && e.Seq != uint64(seq) {
			err = errSeq
		}
		if err != nil {
			entry.Refs = nil
			return w.wrong(fmt.Sprintf("log entry %d", seq), cause(err).Error(), "what it says of its refs is lost")
		}
		return w.entry(e)
	}, `select seq, name, record from tract_log where repo = $1 order by seq, record is null, name`, w.s.repo)
	if err != nil {
		return err
	}
	return check()
}

func (w *auditor) entry(e objects.LogEntry) error {
	for _, u := range e.Refs {
		if have := w.newest[u.Name]; u.Prev != have.hash {
			err := w.wrong(fmt.Sprintf("log entry %d", e.Seq), fmt.Sprintf("it does not follow the entry before it of ref %q", u.Name), "entries of the ref log were removed or changed")
			if err != nil {
				return err
			}
		}
		w.newest[u.Name] = move{e.Hash, u.New}
	}
	if w.to.Entry == nil {
		return nil
	}
	return w.call(w.to.Entry(e))
}

func (w *auditor) readLines(ctx context.Context) error {
	return w.q.query(ctx, func(row pgx.Rows) error {
		var line int64
		l := &lineState{}
		err := row.Scan(&line, &l.first, &l.from.line, &l.from.gen, &l.sealed)
		w.lines[line], l.next = l, l.first
		if l.from.line != 0 {
			w.at[l.from] = objects.ID{}
		}
		return err
	}, `select line, first, from_line, from_gen, sealed from tract_line where repo = $1`, w.s.repo)
}

// commit takes the next commit of a line.
func (w *auditor) commit(at position, o objects.Object) error {
	l := w.lines[at.line]
	if l == nil {
		l = &lineState{first: at.gen, next: at.gen}
		w.lines[at.line] = l
		if err := w.wrong(fmt.Sprintf("line %d", at.line), "it has no row in tract_line", "walks end where the line begins"); err != nil {
			return err
		}
	}
	if _, named := w.at[at]; named {
		w.at[at] = o.ID
	}
	parent := objects.ID{}
	if len(o.Parents) > 0 {
		parent = o.Parents[0]
	}
	var err error
	switch {
	case at.gen != l.next:
		err = w.wrong(fmt.Sprintf("line %d", at.line), fmt.Sprintf("commits %d to %d are not there", l.next, at.gen-1), "")
	case at.gen > l.first && parent != l.last:
		err = w.wrong(fmt.Sprintf("line %d", at.line), fmt.Sprintf("commit %d does not follow the one before it", at.gen), "walks take longer, and lose nothing")
	case at.gen == l.first && l.from.line != 0:
		w.forks[l.from] = append(w.forks[l.from], parent)
	}
	l.next, l.last = at.gen+1, o.ID
	return err
}

func (w *auditor) readSegments(ctx context.Context) error {
	return w.q.query(ctx, func(row pgx.Rows) error {
		r, err := scanSegment(row)
		if err != nil {
			return err
		}
		seg, err := decodeSegment(r)
		if err != nil {
			if l := w.lines[r.line]; l != nil { // it is told once
				l.next, l.last = r.gen0+int64(r.n), r.tip
			}
			return w.wrong(fmt.Sprintf("segment %d of line %d", r.gen0, r.line), cause(err).Error(), fmt.Sprintf("%d commits are lost", r.n))
		}
		where := fmt.Sprintf("segment %d of line %d", r.gen0, r.line)
		for i := range seg.table.Len() {
			if seg.table.Kind(i) != objects.KindContent {
				continue
			}
			o, err := seg.contentAt(i)
			if err := w.object(where, o, err); err != nil {
				return err
			}
		}
		for i, c := range seg.commits {
			if err := errors.Join(w.commit(position{r.line, r.gen0 + int64(i)}, c), w.object(where, c, nil)); err != nil {
				return err
			}
		}
		return w.flush()
	}, `select `+segmentColumns+` from tract_seg where repo = $1 order by line, gen0`, w.s.repo)
}

func (w *auditor) readTail(ctx context.Context) error {
	err := w.q.query(ctx, func(row pgx.Rows) error {
		var at position
		var id, content objects.ID
		var head, body []byte
		if err := row.Scan(&at.line, &at.gen, idColumn{&id}, &head, idColumn{&content}, &body); err != nil {
			return err
		}
		where := fmt.Sprintf("commit %d of line %d", at.gen, at.line)
		if body != nil {
			o, err := readContent(content, body)
			if err := w.object(where, o, err); err != nil {
				return err
			}
		}
		o, err := readObject(id, head)
		if err := w.object(where, o, err); err != nil {
			return err
		}
		if err != nil {
			if l := w.lines[at.line]; l != nil {
				l.next, l.last = at.gen+1, id
			}
			return nil
		}
		return w.commit(at, o)
	}, `select line, gen, id, head, content, body from tract_tail where repo = $1 order by line, gen`, w.s.repo)
	if err != nil {
		return err
	}
	return w.flush()
}

func (w *auditor) readBlobs(ctx context.Context) error {
	err := w.q.query(ctx, func(row pgx.Rows) error {
		var id objects.ID
		var data []byte
		var codec int16
		if err := row.Scan(idColumn{&id}, &codec, &data); err != nil {
			return err
		}
		o, err := readBlob(id, codec, data)
		return w.object("tract_blob", o, err)
	}, `select id, codec, data from tract_blob where repo = $1 order by id`, w.s.repo)
	if err != nil {
		return err
	}
	return w.flush()
}

func (w *auditor) readTombstones(ctx context.Context) error {
	return w.q.query(ctx, func(row pgx.Rows) error {
		var id objects.ID
		var record []byte
		if err := row.Scan(idColumn{&id}, &record); err != nil {
			return err
		}
		t, err := objects.ParseTombstone(id, record)
		if err != nil {
			return w.damage(objects.Damage{ID: id, Where: "tract_tombstone", What: cause(err).Error()})
		}
		if w.to.Tombstone == nil {
			return nil
		}
		return w.call(w.to.Tombstone(t))
	}, `select id, record from tract_tombstone where repo = $1 order by id`, w.s.repo)
}

func (w *auditor) checkForks(context.Context) error {
	for at, parents := range w.forks {
		for _, parent := range parents {
			if w.at[at] == parent {
				continue
			}
			err := w.wrong(fmt.Sprintf("line %d", at.line), fmt.Sprintf("a fork does not begin at commit %d", at.gen), "walks take longer, and lose nothing")
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *auditor) checkRefs(context.Context) error {
	for name, r := range w.refs {
		what := ""
		switch have := w.newest[name]; {
		case r.newest != have.hash:
			what = "its newest log entry is not there"
		case r.target != have.target:
			what = "it is not where its newest log entry moved it"
		case r.at.line != 0 && w.at[r.at] != r.target:
			what = "its commit is at another position"
		default:
			continue
		}
		if err := w.wrong(fmt.Sprintf("ref %q", name), what, "its row was changed, or entries of the ref log were removed"); err != nil {
			return err
		}
	}
	for name := range w.newest {
		if _, ok := w.refs[name]; ok {
			continue
		}
		if err := w.wrong(fmt.Sprintf("ref %q", name), "it has log entries and no row", "the ref is lost; its log has where it was"); err != nil {
			return err
		}
	}
	return nil
}

// checkIndex checks that the index has every object of the segments, one run of the index after
// the other.
func (w *auditor) checkIndex(ctx context.Context) error {
	var segments int
	err := w.q.query(ctx, func(row pgx.Rows) error { return row.Scan(&segments) }, `select count(*) from tract_seg where repo = $1`, w.s.repo)
	if err != nil {
		return err
	}
	type run struct {
		level  int16
		number int64
	}
	var runs []run
	err = w.q.query(ctx, func(row pgx.Rows) error {
		var r run
		err := row.Scan(&r.level, &r.number)
		runs = append(runs, r)
		return err
	}, `select distinct level, run from tract_index where repo = $1`, w.s.repo)
	if err != nil {
		return err
	}
	lost := 0
	for _, r := range runs {
		hints := map[int32]map[[hintSize]byte]bool{} // by the number of a segment
		err := w.q.query(ctx, func(row pgx.Rows) error {
			var data []byte
			err := row.Scan(&data)
			for h, segment := range indexEntries(data, "") {
				if hints[segment] == nil {
					hints[segment] = map[[hintSize]byte]bool{}
				}
				hints[segment][h] = true
			}
			return err
		}, `select data from tract_index where repo = $1 and level = $2 and run = $3`, w.s.repo, r.level, r.number)
		if err != nil {
			return err
		}
		for number, known := range hints {
			seg, err := w.s.segment(ctx, w.q, number, false)
			switch {
			case errors.Is(err, objects.ErrCorrupt): // it was told before
				segments--
				continue
			case err != nil:
				return err
			case seg == nil:
				continue
			}
			segments--
			for i := range seg.table.Len() {
				if !known[[hintSize]byte(hint(*seg.table.ID(i)))] {
					lost++
				}
			}
		}
	}
	if segments <= 0 && lost == 0 {
		return nil
	}
	return w.wrong("tract_index", fmt.Sprintf("%d segments and %d objects of others are not in it", max(0, segments), lost),
		"they are read by walks, but not found by their ids")
}
