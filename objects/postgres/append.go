package postgres

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
)

// An append is one statement, and so one transaction, that writes several batches. Each wins
// or loses the compare-and-swap of its own ref; one that loses inserts nothing. Rows are
// inserted in the order of their keys, so that two of these statements do not deadlock. The
// statement has only the parts that the batches need. It holds the lock of the repo, so that
// gc and purge do not miss what it inserts. $1 is the repo, $2 the time; each ? is the next
// parameter.
const (
	// A ref that was deleted keeps its row, so a new row is that of a ref which never was. The
	// swap compares the hash of the newest log entry, which no two states of a ref share.
	movePart = `with held as materialized (
	select pg_advisory_xact_lock_shared(?::int, ?::int)
), move as (
	select * from unnest(?::int[], ?::text[], ?::bytea[], ?::bigint[], ?::bigint[], ?::bigint[], ?::bigint[], ?::bytea[], ?::bytea[], ?::bytea[])
		as m (g, name, target, line, gen, updated, seq, newest, prev, record)
), moved as (
	insert into tract_ref as r (repo, name, target, line, gen, version, updated, seq, newest, prev)
	select $1, name, target, line, gen, 1, updated, seq, newest, prev from move, held
	where prev is null or exists (select from tract_ref x where x.repo = $1 and x.name = move.name)
	order by name
	on conflict (repo, name) do update set target = excluded.target, line = excluded.line, gen = excluded.gen, version = r.version + 1,
		updated = excluded.updated, seq = excluded.seq, newest = excluded.newest, prev = excluded.prev
	where r.newest is not distinct from excluded.prev
	returning r.name, r.version
), won as (
	select m.g from move m join moved using (name) union all select g from unnest(?::int[]) f (g)
), logged as (
	insert into tract_log (repo, seq, name, record)
	select $1, seq, name, record from move where name in (select name from moved)
)`

	loosePart = `with held as materialized (
	select pg_advisory_xact_lock_shared(?::int, ?::int)
), won as (
	select g from unnest(?::int[]) f (g), held
)`

	linePart = `, begun as (
	insert into tract_line (repo, line, first, from_line, from_gen, sealed)
	select $1, line, first, from_line, from_gen, first
	from unnest(?::int[], ?::bigint[], ?::bigint[], ?::bigint[], ?::bigint[]) l (g, line, first, from_line, from_gen)
	where g in (table won) order by line
)`

	commitPart = `, tail as (
	insert into tract_tail (repo, line, gen, id, head, content, body, put)
	select $1, line, gen, id, head, content,
		case when copies and exists (select from tract_tombstone e where e.repo = $1 and e.id = content) then null else body end, $2::bigint
	from unnest(?::int[], ?::bigint[], ?::bigint[], ?::bytea[], ?::bytea[], ?::bytea[], ?::bytea[], ?::bool[])
		t (g, line, gen, id, head, content, body, copies)
	where g in (table won) order by line, gen
)`

	blobPart = `, blob as (
	insert into tract_blob as b (repo, id, kind, codec, data, put)
	select distinct on (id) $1, id, kind, codec, data, $2::bigint
	from unnest(?::int[], ?::bytea[], ?::smallint[], ?::smallint[], ?::bytea[], ?::bool[]) n (g, id, kind, codec, data, copies)
	where g in (table won) and not (copies and exists (select from tract_tombstone e where e.repo = $1 and e.id = n.id))
	order by id
	on conflict (repo, id) do update set put = excluded.put where b.put < excluded.put - 3600000
)`
)

// statement is the text of an append and its parameters.
type statement struct {
	text strings.Builder
	args []any
}

// add appends a part and its parameters.
func (s *statement) add(part string, args ...any) {
	for i := 0; ; i++ {
		before, after, more := strings.Cut(part, "?")
		s.text.WriteString(before)
		if !more {
			return
		}
		s.args = append(s.args, args[i])
		s.text.WriteString("$" + strconv.Itoa(len(s.args)))
		part = after
	}
}

const (
	maxWorkers    = 4       // statements at a time
	maxGroup      = 256     // batches of one
	maxGroupBytes = 4 << 20 // about how many bytes of one
)

// queue groups the writes of this process that come while others are being written.
type queue struct {
	slots chan struct{} // has an element for each statement that runs

	mu      sync.Mutex
	waiting []*request
}

// request is a write that waits for its outcome.
type request struct {
	write *write
	alone bool
	done  chan struct{} // closed when the outcome is known
	won   bool
	err   error
}

// submit writes a batch, perhaps with others. It has not won when a ref has moved. When ctx
// ends the outcome is unknown, unless the write had not begun.
func (s *store) submit(ctx context.Context, w *write, alone bool) (won bool, err error) {
	r := &request{write: w, alone: alone, done: make(chan struct{})}
	q := &s.queue
	q.mu.Lock()
	q.waiting = append(q.waiting, r)
	q.mu.Unlock()
	for {
		select {
		case <-r.done:
			return r.won, r.err
		case <-ctx.Done():
			if q.remove(r) {
				return false, notBegun{ctx.Err()}
			}
			return false, ctx.Err()
		case q.slots <- struct{}{}:
		}
		switch group := q.take(); {
		case len(group) == 0: // another caller writes it
			<-q.slots
			select {
			case <-r.done:
				return r.won, r.err
			case <-ctx.Done():
				return false, ctx.Err()
			}
		case len(group) == 1 && group[0] == r:
			s.writeGroup(ctx, group)
			<-q.slots
		default: // ctx is not that of the others
			go func() {
				s.writeGroup(context.WithoutCancel(ctx), group)
				<-q.slots
			}()
		}
	}
}

// remove takes a request back. It reports false for one that is being written.
func (q *queue) remove(r *request) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting, r)
	if i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
	return i >= 0
}

// notBegun is the error of a write that was not sent.
type notBegun struct{ error }

func (e notBegun) Unwrap() error { return e.error }

// SafeToRetry is asked by pgconn.SafeToRetry.
func (notBegun) SafeToRetry() bool { return true }

// take returns the requests of the next statement, if any waits.
func (q *queue) take() (group []*request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	names, size := map[string]bool{}, 0
	rest := q.waiting[:0:0]
	for _, r := range q.waiting {
		refs := r.write.refs
		full := len(group) > 0 && (group[0].alone || r.alone || len(group) == maxGroup || size+r.write.size > maxGroupBytes)
		if full || len(refs) > 0 && names[refs[0].name] {
			rest = append(rest, r)
			continue
		}
		for i := range refs {
			names[refs[i].name] = true
		}
		group, size = append(group, r), size+r.write.size
	}
	q.waiting = rest
	return group
}

// writeGroup writes a group and tells each of its requests the outcome.
func (s *store) writeGroup(ctx context.Context, group []*request) {
	moved := map[string]uint64{}
	err := s.attempt(ctx, statementTime, func(ctx context.Context) error {
		sql, args := s.appendOf(group)
		if len(group[0].write.refs) <= 1 {
			return s.rowsOnce(ctx, scanMoved(moved), sql, args...)
		}
		// All refs of a batch move or none: that takes a transaction.
		return s.writeAll(ctx, moved, len(group[0].write.refs), sql, args)
	})
	if err != nil && len(group) > 1 && isUndone(err) {
		for _, r := range group { // one of them is to blame
			s.writeGroup(ctx, []*request{r})
		}
		return
	}
	for _, r := range group {
		r.err = err
		r.won = err == nil
		for i := range r.write.refs {
			ref := &r.write.refs[i]
			version, ok := moved[ref.name]
			ref.state.version = version
			r.won = r.won && ok
		}
		close(r.done)
	}
}

var errLost = errors.New("a ref has moved")

func (s *store) writeAll(ctx context.Context, moved map[string]uint64, want int, sql string, args []any) error {
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if err := (txQuerier{tx}).query(ctx, scanMoved(moved), sql, args...); err != nil {
			return err
		}
		if len(moved) < want {
			return errLost
		}
		return nil
	})
	if errors.Is(err, errLost) {
		clear(moved)
		return nil
	}
	return err
}

func scanMoved(moved map[string]uint64) func(pgx.Rows) error {
	return func(row pgx.Rows) error {
		var name string
		var version int64
		err := row.Scan(&name, &version)
		moved[name] = uint64(version)
		return err
	}
}

// appendOf returns the statement that writes a group.
func (s *store) appendOf(group []*request) (sql string, args []any) {
	var refs, loose, lines, commits, blobs columns // loose: batches without refs
	for i, r := range group {
		g, copies := int32(i), r.write.copies
		if len(r.write.refs) == 0 {
			loose.add(g)
		}
		for k := range r.write.refs {
			refs.add(append([]any{g}, r.write.refs[k].values()...)...)
		}
		for _, l := range r.write.lines {
			lines.add(g, l.line, l.first, l.from.line, l.from.gen)
		}
		for k := range r.write.commits {
			c := &r.write.commits[k]
			commits.add(g, c.at.line, c.at.gen, c.id[:], c.head, idBytes(c.content), c.body, copies)
		}
		for k := range r.write.blobs {
			b := &r.write.blobs[k]
			blobs.add(g, b.id[:], int16(b.kind), b.codec, b.data, copies)
		}
	}
	if loose == nil {
		loose = columns{[]int32{}}
	}
	b := statement{args: []any{s.repo, nowMillis()}}
	lock := []any{lockClass, s.lockKey()}
	if refs != nil {
		b.add(movePart, slices.Concat(lock, refs, loose)...)
	} else {
		b.add(loosePart, slices.Concat(lock, loose)...)
	}
	if lines != nil {
		b.add(linePart, lines...)
	}
	if commits != nil {
		b.add(commitPart, commits...)
	}
	if blobs != nil {
		b.add(blobPart, blobs...)
	}
	if refs != nil {
		b.add(` select name, version from moved where $2::bigint > 0`)
	} else {
		b.add(` select '', 0::bigint from won where false and $1::bigint + $2::bigint > 0`) // both must be used
	}
	return b.text.String(), b.args
}

// values are the columns of movePart after g.
func (r *refRow) values() []any {
	to := &r.state
	return []any{r.name, idBytes(to.target), to.at.line, to.at.gen, to.updated, int64(to.seq), to.newest[:], idBytes(r.prev), r.record}
}

// columns are rows as the arrays of a statement, one for each column: an array of rows would
// need types of its own in the database.
type columns []any

func (c *columns) add(row ...any) {
	if *c == nil {
		*c = make(columns, len(row))
	}
	for i, v := range row {
		column := &(*c)[i]
		switch v := v.(type) {
		case bool:
			*column = appendTo(*column, v)
		case int16:
			*column = appendTo(*column, v)
		case int32:
			*column = appendTo(*column, v)
		case int64:
			*column = appendTo(*column, v)
		case string:
			*column = appendTo(*column, v)
		case []byte:
			*column = appendTo(*column, v)
		}
	}
}

// appendTo appends a value to a column; nil is an empty one.
func appendTo[T any](column any, v T) any {
	list, _ := column.([]T)
	return append(list, v)
}
