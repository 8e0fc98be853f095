package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/tract-vcs/tract/objects"
)

// Audit is objects.Maintainer, in one transaction that only reads. After transient trouble
// it begins again.
func (s *store) Audit(ctx context.Context, a objects.Audit) error {
	var w *auditor
	err := s.inTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, longTime, func(ctx context.Context, tx pgx.Tx) error {
		w = &auditor{s: s, q: direct{tx}, to: a, newest: map[string]move{}, at: map[position]objects.ID{}}
		if err := w.run(ctx); w.stop == nil {
			return err
		}
		return errStopped // the caller's own error may look transient
	})
	if w != nil && w.stop != nil {
		return w.stop
	}
	return err
}

var errStopped = errors.New("the caller stopped the audit")

// auditor is one Audit. Its memory grows with the number of refs and lines, not with that of
// commits.
type auditor struct {
	s    *store
	q    querier
	to   objects.Audit
	stop error // of the caller

	newest map[string]move         // of each ref: its newest log entry
	at     map[position]objects.ID // commits at positions that refs and lines name; zero: not seen
	line   auditedLine             // that is being read
	forks  []step                  // the first commits of lines, each with the position of its first parent
	list   []objects.Object        // for the caller
	done   int64
	total  int64
}

// move is what a log entry does to a ref.
type move struct {
	entry  objects.ID // its hash
	target objects.ID
}

// auditedLine is how far a line has been read.
type auditedLine struct {
	number int64
	from   position
	next   int64      // gen of the next commit
	last   objects.ID // the commit before it
}

func (w *auditor) run(ctx context.Context) error {
	for _, part := range []func(context.Context) error{
		w.reportBegin, w.readLog, w.readNamedPositions, w.readCommits, w.readBlobsAndTombstones, w.auditRefs, w.checkForks,
	} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// call calls a function of the caller, which may be nil, and keeps its error.
func call[T any](w *auditor, f func(T) error, v T) error {
	if f == nil {
		return nil
	}
	err := f(v)
	if err != nil {
		w.stop = err
	}
	return err
}

func (w *auditor) reportDamage(where, what, means string) error {
	return call(w, w.to.Damage, objects.Damage{Where: where, What: what, Means: means})
}

// queueObject queues an object that was read from a row, until flush passes on the list.
func (w *auditor) queueObject(where string, o objects.Object, err error) error {
	if err != nil {
		return call(w, w.to.Damage, objects.Damage{ID: o.ID, Where: where, What: withoutCorruptError(err).Error()})
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
	if len(list) == 0 {
		return nil
	}
	return call(w, w.to.Objects, list)
}

// totalSQL estimates the number of objects: most commits have a content of their own.
const totalSQL = `select (2 * (select count(*) from tract_tail where repo = $1) + 2 * (select coalesce(sum(n), 0) from tract_seg where repo = $1)
+ (select count(*) from tract_blob where repo = $1))::bigint`

func (w *auditor) reportBegin(ctx context.Context) error {
	err := w.q.query(ctx, func(row pgx.CollectableRow) error { return row.Scan(&w.total) }, totalSQL, w.s.repo)
	if err != nil {
		return err
	}
	return call(w, w.to.Begin, int(w.total))
}

// readLog reads the entries, the oldest first, and follows the chain of every ref.
func (w *auditor) readLog(ctx context.Context) error {
	return w.q.query(ctx, func(row pgx.CollectableRow) error {
		var seq uint64
		var record []byte
		var names []string
		if err := row.Scan(&seq, &record, &names); err != nil {
			return err
		}
		where := fmt.Sprintf("log entry %d", seq)
		e, err := parseEntry(seq, record)
		if err != nil {
			return w.reportDamage(where, withoutCorruptError(err).Error(), "what it says of its refs is lost")
		}
		for _, u := range e.Refs {
			if u.Prev != w.newest[u.Name].entry {
				err = w.reportDamage(where, fmt.Sprintf("it does not follow the entry before it of ref %q", u.Name), "entries of the ref log were removed or changed")
			}
			if err == nil && !slices.Contains(names, u.Name) {
				err = w.reportDamage(where, fmt.Sprintf("it is not in the log of ref %q", u.Name), "a move of the ref is not shown")
			}
			if err != nil {
				return err
			}
			w.newest[u.Name] = move{e.Hash, u.New}
		}
		return call(w, w.to.Entry, e)
	}, `select seq, string_agg(record, ''), array_agg(name) from tract_log where repo = $1
group by seq having count(record) > 0 order by seq`, w.s.repo)
}

// readNamedPositions reads the positions that refs and lines name instead of a commit id.
func (w *auditor) readNamedPositions(ctx context.Context) error {
	return w.q.query(ctx, func(row pgx.CollectableRow) error {
		var at position
		err := row.Scan(&at.line, &at.gen)
		w.at[at] = objects.ID{}
		return err
	}, `select line, gen from tract_ref where repo = $1 and line <> 0
union select from_line, from_gen from tract_line where repo = $1 and from_line <> 0`, w.s.repo)
}

// readCommits reads one line after the other, each from its first commit on: segments, and rows
// of the tail as if they were segments of one commit.
func (w *auditor) readCommits(ctx context.Context) error {
	err := w.q.query(ctx, func(row pgx.CollectableRow) error {
		var content objects.ID
		var line auditedLine
		var known bool   // it has a row in tract_line
		var index []byte // the hints of a segment
		r, err := scanSegment(row, idColumn{&content}, &index, &known, &line.next, &line.from.line, &line.from.gen)
		if line.number = r.line; err == nil && line.number != w.line.number {
			if w.line = line; !known {
				err = w.reportDamage(fmt.Sprintf("line %d", line.number), "it has no row in tract_line", "walks end where the line begins")
			}
		}
		switch {
		case err != nil:
			return err
		case r.number > 0:
			err = w.auditSegment(r, index)
		default:
			err = w.auditTailRow(r, content)
		}
		w.line.next, w.line.last = r.gen0+int64(r.n), r.tip // also where they could not be read
		return err
	}, `select c.*, l.line is not null, coalesce(l.first, c.gen0), coalesce(l.from_line, 0), coalesce(l.from_gen, 0) from (
	select `+segmentColumns+`, null::bytea as content, (select string_agg(data, '') from generate_series(0, $2::int - 1) p
		join tract_index i on i.part = p where i.repo = $1 and i.number = g.number) from tract_seg g where repo = $1
	union all select 0, line, gen, 1, id, put, head, body, content, null from tract_tail where repo = $1
) c left join tract_line l on l.repo = $1 and l.line = c.line order by c.line, c.gen0`, w.s.repo, indexParts)
	if err != nil {
		return err
	}
	return w.flush()
}

// auditSegment takes a segment, and the hints of it that the index has.
func (w *auditor) auditSegment(r segmentRow, index []byte) error {
	where := fmt.Sprintf("segment %d of line %d", r.gen0, r.line)
	seg, err := decodeSegment(r)
	if err != nil {
		return w.reportDamage(where, withoutCorruptError(err).Error(), fmt.Sprintf("%d commits are lost", r.n))
	}
	known, lost := map[[hintSize]byte]bool{}, 0
	for h := range indexHints(index, "") {
		known[h] = true
	}
	for i := range seg.table.Len() {
		if !known[[hintSize]byte(hintOf(*seg.table.ID(i)))] {
			lost++
		}
		if seg.table.Kind(i) != objects.KindContent {
			continue
		}
		o, err := seg.contentAt(i)
		if err := w.queueObject(where, o, err); err != nil {
			return err
		}
	}
	if lost > 0 {
		err := w.reportDamage(where, fmt.Sprintf("%d of its objects are not in tract_index", lost), "they are read by walks, but not found by their ids")
		if err != nil {
			return err
		}
	}
	for i, c := range seg.commits {
		if err := w.queueCommit(where, r.gen0+int64(i), c); err != nil {
			return err
		}
	}
	return w.flush() // the objects share memory
}

func (w *auditor) auditTailRow(r segmentRow, content objects.ID) error {
	where := fmt.Sprintf("commit %d of line %d", r.gen0, r.line)
	if r.bodies != nil {
		o, err := readContent(content, r.bodies)
		if err := w.queueObject(where, o, err); err != nil {
			return err
		}
	}
	o, err := readObject(r.tip, r.heads)
	if err != nil {
		return w.queueObject(where, o, err)
	}
	return w.queueCommit(where, r.gen0, o)
}

// queueCommit checks the place of the next commit of the line, and queues it.
func (w *auditor) queueCommit(where string, gen int64, o objects.Object) error {
	l, at := &w.line, position{w.line.number, gen}
	if _, named := w.at[at]; named {
		w.at[at] = o.ID
	}
	parent := o.FirstParent()
	name := fmt.Sprintf("line %d", l.number)
	var err error
	switch {
	case gen != l.next:
		err = w.reportDamage(name, fmt.Sprintf("commits %d to %d are not there", l.next, gen-1), "")
	case !l.last.IsZero() && parent != l.last:
		err = w.reportDamage(name, fmt.Sprintf("commit %d does not follow the one before it", gen), "walks take longer, and lose nothing")
	case l.last.IsZero() && l.from.line != 0:
		w.forks = append(w.forks, step{objects.Object{ID: parent}, l.from})
	}
	l.next, l.last = gen+1, o.ID
	return errors.Join(err, w.queueObject(where, o, nil))
}

// readBlobsAndTombstones reads blobs and tombstones.
func (w *auditor) readBlobsAndTombstones(ctx context.Context) error {
	const tombstone = -1 // in place of a codec
	err := w.q.query(ctx, func(row pgx.CollectableRow) error {
		var id objects.ID
		var data []byte
		var codec int16
		if err := row.Scan(idColumn{&id}, &codec, &data); err != nil {
			return err
		}
		if codec != tombstone {
			o, err := readBlob(id, codec, data)
			return w.queueObject("tract_blob", o, err)
		}
		t, err := objects.ParseTombstone(id, data)
		if err != nil {
			return call(w, w.to.Damage, objects.Damage{ID: id, Where: "tract_tombstone", What: withoutCorruptError(err).Error()})
		}
		return call(w, w.to.Tombstone, t)
	}, `select id, codec, data from tract_blob where repo = $1
union all select id, -1, record from tract_tombstone where repo = $1`, w.s.repo)
	if err != nil {
		return err
	}
	return w.flush()
}

// auditRefs reads the refs, and compares each with its newest log entry and with its commit.
func (w *auditor) auditRefs(ctx context.Context) error {
	const changed = "its row was changed, or entries of the ref log were removed"
	err := w.q.query(ctx, func(row pgx.CollectableRow) error {
		extended := false
		name, r, err := scanRef(row, &extended)
		if err != nil {
			return err
		}
		where, newest := fmt.Sprintf("ref %q", name), w.newest[name]
		delete(w.newest, name)
		if err := objects.CheckRefName(name); err != nil {
			return w.reportDamage("tract_ref", err.Error(), "the ref cannot be read")
		}
		switch {
		case r.newest != newest.entry:
			err = w.reportDamage(where, "its newest log entry is not there", changed)
		case r.target != newest.target:
			err = w.reportDamage(where, "it is not where its newest log entry moved it", changed)
		case r.at.line != 0 && w.at[r.at] != r.target:
			err = w.reportDamage(where, "its commit is at another position", changed)
		case extended:
			err = w.reportDamage(where, "it owns a line that goes on after it", changed)
		}
		if err != nil || r.target.IsZero() {
			return err
		}
		return call(w, w.to.Ref, r.toRef(name))
	}, `select `+refColumns+`, owns_line and (exists (select from tract_tail t where t.repo = $1 and t.line = r.line and t.gen > r.gen)
or exists (select from tract_line l where l.repo = $1 and l.line = r.line and l.sealed > r.gen + 1)) from tract_ref r where repo = $1 order by name`, w.s.repo)
	for name := range w.newest {
		if err == nil {
			err = w.reportDamage(fmt.Sprintf("ref %q", name), "it has log entries and no row", "the ref is lost; its log has where it was")
		}
	}
	return err
}

func (w *auditor) checkForks(context.Context) (err error) {
	for _, first := range w.forks {
		if at := first.at; err == nil && w.at[at] != first.commit.ID {
			err = w.reportDamage(fmt.Sprintf("line %d", at.line), fmt.Sprintf("a fork does not begin at commit %d", at.gen), "walks take longer, and lose nothing")
		}
	}
	return err
}
