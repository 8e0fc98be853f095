package postgres

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A group of batches is written by a list of statements that are sent together, in one round trip. They are
// one transaction, as the protocol has it for all statements up to a Sync message. An append of one
// commit is one statement: appendSQL. More commits, blobs, and lines that begin take a statement each.
//
// gc and purge lock the repo and the rows of its refs, so that they miss no insert. A group that only moves
// refs waits for these rows. Every other group begins with lockSQL, so that its later statements see what gc
// and purge have done, unless transactions are repeatable read by default.
//
// A ref that was deleted keeps its row. newRefSQL makes the row of a ref that never was. The swap compares
// the hash of the newest log entry, which no two states of a ref share. Each statement after the moves tests
// whether the first ref of its batch was moved, so that a batch that has lost inserts nothing.
const (
	lockSQL = `select pg_advisory_xact_lock_shared($1::int, $2::int)`

	newRefSQL = `insert into tract_ref (repo, name, line, gen, version, updated, seq, newest) values ($1, $2, 0, 0, 0, 0, 0, '') on conflict do nothing`

	// moveSQL moves a ref and writes the log entry, unless the ref has moved; then it affects no row.
	moveSQL = swapSQL + logSQL

	// appendSQL is moveSQL, and inserts the commit that the ref comes to.
	appendSQL = swapSQL + `, put as (
	insert into tract_tail (repo, line, gen, id, head, content, body, put)
	select $1, $5, $6, $4, $12::bytea, $13::bytea, $14::bytea, $15::bigint from moved
)` + logSQL

	swapSQL = `with moved as (
	update tract_ref set target = $4, line = $5, gen = $6, owns_line = $11, version = version + 1, updated = $7, seq = $8, newest = $9
	where repo = $1 and name = $2 and newest = $3 returning 1
)`
	logSQL = ` insert into tract_log (repo, seq, name, record) select $1, $8, $2, $10 from moved`

	// togetherSQL fails, by a division by zero, if some of the refs of a batch were moved and others not.
	togetherSQL = `select 1 / (count(*) in (0, cardinality($2::text[])))::int from tract_ref where repo = $1 and name = any($2) and newest = $3`

	// wonSQL is the condition of the statements that follow the moves. $2 is null for a batch without refs.
	wonSQL = `($2::text is null or exists (select from tract_ref where repo = $1 and name = $2 and newest = $3))`

	lineSQL = `insert into tract_line (repo, line, first, from_line, from_gen, sealed)
select $1::bigint, $4::bigint, $5::bigint, $6::bigint, $7::bigint, $5::bigint where ` + wonSQL

	commitSQL = `insert into tract_tail (repo, line, gen, id, head, content, body, put)
select $1::bigint, $4::bigint, $5::bigint, $6::bytea, $7::bytea, $8::bytea,
	case when $10::bool and exists (select from tract_tombstone t where t.repo = $1 and t.id = $8) then null else $9::bytea end, $11::bigint
where ` + wonSQL

	blobSQL = `insert into tract_blob as o (repo, id, kind, codec, data, put)
select $1::bigint, $4::bytea, $5::smallint, $6::smallint, $7::bytea, $8::bigint
where ` + wonSQL + ` and not ($9::bool and exists (select from tract_tombstone t where t.repo = $1 and t.id = $4))
on conflict (repo, id) do update set put = excluded.put where o.put < excluded.put - 3600000`
)

const (
	maxWorkers    = 4       // groups at a time
	maxGroup      = 256     // batches of one
	maxGroupBytes = 4 << 20 // about how many bytes of one
)

// queue groups the writes of this process that come while others are being written.
type queue struct {
	slots chan struct{} // has an element for each group that is being written

	mu      sync.Mutex
	waiting []*request
}

// request is a write that waits for its outcome.
type request struct {
	write *write
	done  chan struct{} // closed when the outcome is known
	won   bool
	err   error
}

// submit writes a batch, perhaps with others. It has not won when a ref has moved. When ctx
// ends the outcome is unknown, unless the write had not begun.
func (s *store) submit(ctx context.Context, w *write) (won bool, err error) {
	r := &request{write: w, done: make(chan struct{})}
	q := &s.queue
	q.mu.Lock()
	q.waiting = append(q.waiting, r)
	q.mu.Unlock()
	slots := q.slots // nil: another caller writes it
	for {
		select {
		case <-r.done:
			return r.won, r.err
		case <-ctx.Done():
			if q.remove(r) {
				return false, errors.Join(errNotSent, ctx.Err())
			}
			return false, ctx.Err()
		case slots <- struct{}{}:
		}
		switch group := q.takeGroup(); {
		case len(group) == 0:
			<-q.slots
			slots = nil
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

var errNotSent = errors.New("the write was not sent")

// takeGroup returns the requests of the next group, if any waits.
func (q *queue) takeGroup() (group []*request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	names, size := map[string]bool{}, 0
	rest := q.waiting[:0:0]
	for _, r := range q.waiting {
		full := len(group) > 0 && (len(group) == maxGroup || size+r.write.size > maxGroupBytes)
		if full || slices.ContainsFunc(r.write.refs, func(ref refRow) bool { return names[ref.name] }) {
			rest = append(rest, r)
			continue
		}
		for i := range r.write.refs {
			names[r.write.refs[i].name] = true
		}
		group, size = append(group, r), size+r.write.size
	}
	q.waiting = rest
	return group
}

// writeGroup writes a group, and reports the outcome to each of its requests.
func (s *store) writeGroup(ctx context.Context, group []*request) {
	statements := s.statements(group)
	err := s.attempt(ctx, statementTime, func(ctx context.Context) error {
		return s.pool.AcquireFunc(ctx, func(c *pgxpool.Conn) error { return sendAndMarkLost(ctx, c.Conn(), statements) })
	})
	if err != nil && len(group) > 1 && isUndone(err) {
		for _, r := range group { // one of them failed
			r.write.lost = false
			s.writeGroup(ctx, []*request{r})
		}
		return
	}
	for _, r := range group {
		r.won, r.err = err == nil && !r.write.lost, err
		close(r.done)
	}
}

// statement is one of those that write a group.
type statement struct {
	sql   string
	args  []any
	write *write // whose ref it moves; nil: it is another statement
}

// sendAndMarkLost runs statements, in one transaction. It sets lost of each write whose ref has moved
// meanwhile.
func sendAndMarkLost(ctx context.Context, conn *pgx.Conn, list []statement) error {
	if len(list) == 1 { // the move of a ref; as a batch it takes 3 us longer
		tag, err := conn.Exec(ctx, list[0].sql, list[0].args...)
		list[0].write.lost = tag.RowsAffected() == 0
		return err
	}
	batch := &pgx.Batch{}
	for _, st := range list {
		q := batch.Queue(st.sql, st.args...)
		if st.write != nil {
			q.Exec(func(tag pgconn.CommandTag) error {
				st.write.lost = st.write.lost || tag.RowsAffected() == 0
				return nil
			})
		}
	}
	return conn.SendBatch(ctx, batch).Close()
}

// batchRow is a row, and the batch that it is of.
type batchRow[T any] struct {
	write *write
	row   *T
}

// sortedRows returns rows of all batches in the order of their keys.
func sortedRows[T any](group []*request, rows func(*write) []T, compare func(a, b *T) int) (list []batchRow[T]) {
	for _, r := range group {
		own := rows(r.write)
		for k := range own {
			list = append(list, batchRow[T]{r.write, &own[k]})
		}
	}
	slices.SortStableFunc(list, func(a, b batchRow[T]) int { return compare(a.row, b.row) })
	return list
}

// statements returns the statements that write a group. Rows come in the order of their keys, so that two
// groups do not deadlock.
func (s *store) statements(group []*request) (list []statement) {
	now := time.Now().UnixMilli()
	moves := sortedRows(group, func(w *write) []refRow { return w.refs }, func(a, b *refRow) int { return strings.Compare(a.name, b.name) })
	for _, r := range moves {
		list = s.appendMove(list, r, now)
	}
	add := func(w *write, sql string, args ...any) {
		var name, newest any
		if len(w.refs) > 0 {
			name, newest = w.refs[0].name, w.refs[0].state.newest[:]
		}
		list = append(list, statement{sql: sql, args: append([]any{s.repo, name, newest}, args...)})
	}
	for _, r := range group {
		if refs := r.write.refs; len(refs) > 1 {
			names := make([]string, len(refs))
			for i := range refs {
				names[i] = refs[i].name
			}
			list = append(list, statement{sql: togetherSQL, args: []any{s.repo, names, refs[0].state.newest[:]}})
		}
	}
	for _, c := range sortedRows(group, func(w *write) []commitRow { return w.commits }, func(a, b *commitRow) int { return a.at.compare(b.at) }) {
		if from := c.row.from; from.line >= 0 {
			add(c.write, lineSQL, c.row.at.line, c.row.at.gen, from.line, from.gen)
		}
		if c.row != c.write.commitOfMove() {
			add(c.write, commitSQL, c.row.at.line, c.row.at.gen, c.row.id[:], c.row.head, idOrNull(c.row.content), c.row.body, c.write.copies, now)
		}
	}
	for _, b := range sortedRows(group, func(w *write) []blobRow { return w.blobs }, func(a, b *blobRow) int { return a.id.Compare(b.id) }) {
		add(b.write, blobSQL, b.row.id[:], int16(b.row.kind), b.row.codec, b.row.data, now, b.write.copies)
	}
	if len(list) > len(moves) { // not all of them are moves
		list = slices.Insert(list, 0, statement{sql: lockSQL, args: []any{lockClass, s.lockKey()}})
	}
	return list
}

// appendMove appends the statements that move a ref.
func (s *store) appendMove(list []statement, r batchRow[refRow], now int64) []statement {
	to, newest := &r.row.state, r.row.before.newest[:]
	if r.row.before.newest.IsZero() {
		list, newest = append(list, statement{sql: newRefSQL, args: []any{s.repo, r.row.name}}), []byte{}
	}
	st := statement{sql: moveSQL, write: r.write, args: []any{
		s.repo, r.row.name, newest, idOrNull(to.target), to.at.line, to.at.gen, to.updated, int64(to.seq), to.newest[:], r.row.record, to.ownsLine,
	}}
	if c := r.write.commitOfMove(); c != nil && r.row == &r.write.refs[0] {
		st.sql, st.args = appendSQL, append(st.args, c.head, idOrNull(c.content), c.body, now)
	}
	return append(list, st)
}

// commitOfMove returns the commit that appendSQL inserts together with the move of the first ref to it; nil:
// there is none.
func (w *write) commitOfMove() *commitRow {
	if len(w.refs) == 0 || len(w.commits) == 0 || w.copies {
		return nil
	}
	if c := &w.commits[len(w.commits)-1]; c.id == w.refs[0].state.target {
		return c
	}
	return nil
}
