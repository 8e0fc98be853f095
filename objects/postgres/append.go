package postgres

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"
)

// appendSQL is one statement, and so one transaction, that writes several batches. Each wins
// or loses the compare-and-swap of its own ref; one that loses inserts nothing. Rows are
// inserted in the order of their keys, so that two of these statements do not deadlock. It
// holds the lock of the repo, so that gc and purge do not miss what it inserts.
//
// A position that another commit has, in a segment or in the tail, gives a null for the generation, and so
// an error: the writer did not know of that commit, and begins a line of its own.
//
// "offset 0" has exists look up one key. Without it a generic plan may read all rows of the repo
// into a hash table, for every append.
//
// A ref that was deleted keeps its row, so a new row is that of a ref which never was. The
// swap compares the hash of the newest log entry, which no two states of a ref share.
const appendSQL = `with held as materialized (
	select pg_advisory_xact_lock_shared($3::int, $4::int)
), move as (
	select * from unnest($5::int[], $6::text[], $7::bytea[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bytea[], $13::bytea[], $14::bytea[])
		as m (g, name, target, line, gen, updated, seq, newest, prev, record)
), moved as (
	insert into tract_ref as r (repo, name, target, line, gen, version, updated, seq, newest, prev)
	select $1, name, target, line, gen, 1, updated, seq, newest, prev from move, held
	where prev is null or exists (select from tract_ref x where x.repo = $1 and x.name = move.name offset 0)
	order by name
	on conflict (repo, name) do update set target = excluded.target, line = excluded.line, gen = excluded.gen, version = r.version + 1,
		updated = excluded.updated, seq = excluded.seq, newest = excluded.newest, prev = excluded.prev
	where r.newest is not distinct from excluded.prev
	returning r.name, r.version
), won as (
	select m.g from move m join moved using (name) union all select g from unnest($15::int[]) f (g), held
), logged as (
	insert into tract_log (repo, seq, name, record)
	select $1, seq, name, record from move where name in (select name from moved)
), begun as (
	insert into tract_line (repo, line, first, from_line, from_gen, sealed)
	select $1, line, first, from_line, from_gen, first
	from unnest($16::int[], $17::bigint[], $18::bigint[], $19::bigint[], $20::bigint[]) l (g, line, first, from_line, from_gen)
	where g in (table won) order by line
), tail as (
	insert into tract_tail (repo, line, gen, id, head, content, body, put)
	select $1, line,
		case when exists (select from tract_line s where s.repo = $1 and s.line = t.line and s.sealed > t.gen offset 0)
			or exists (select from tract_tail s where s.repo = $1 and s.line = t.line and s.gen = t.gen offset 0) then null else gen end,
		id, head, content,
		case when copies and exists (select from tract_tombstone e where e.repo = $1 and e.id = content offset 0) then null else body end, $2::bigint
	from unnest($21::int[], $22::bigint[], $23::bigint[], $24::bytea[], $25::bytea[], $26::bytea[], $27::bytea[], $28::bool[])
		t (g, line, gen, id, head, content, body, copies)
	where g in (table won) order by line, gen
), blob as (
	insert into tract_blob as b (repo, id, kind, codec, data, put)
	select distinct on (id) $1, id, kind, codec, data, $2::bigint
	from unnest($29::int[], $30::bytea[], $31::smallint[], $32::smallint[], $33::bytea[], $34::bool[]) n (g, id, kind, codec, data, copies)
	where g in (table won) and not (copies and exists (select from tract_tombstone e where e.repo = $1 and e.id = n.id offset 0))
	order by id
	on conflict (repo, id) do update set put = excluded.put where b.put < excluded.put - 3600000
) select name, version from moved`

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
		args := s.appendArgs(group)
		if len(group[0].write.refs) <= 1 {
			return direct{s.pool}.query(ctx, scanMoved(moved), appendSQL, args...)
		}
		// All refs of a batch move or none: that takes a transaction.
		return s.writeAll(ctx, moved, len(group[0].write.refs), args)
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

func (s *store) writeAll(ctx context.Context, moved map[string]uint64, want int, args []any) error {
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if err := (direct{tx}).query(ctx, scanMoved(moved), appendSQL, args...); err != nil {
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

func scanMoved(moved map[string]uint64) func(pgx.CollectableRow) error {
	return func(row pgx.CollectableRow) error {
		var name string
		var version int64
		err := row.Scan(&name, &version)
		moved[name] = uint64(version)
		return err
	}
}

// appendArgs returns the parameters of appendSQL for a group.
func (s *store) appendArgs(group []*request) []any {
	refs, loose, lines, commits, blobs := make(columns, 10), make(columns, 1), make(columns, 5), make(columns, 8), make(columns, 6)
	for i, r := range group {
		g, copies := int32(i), r.write.copies
		if len(r.write.refs) == 0 {
			loose.add(g)
		}
		for k := range r.write.refs {
			ref := &r.write.refs[k]
			to := &ref.state
			refs.add(g, ref.name, idBytes(to.target), to.at.line, to.at.gen, to.updated, int64(to.seq), to.newest[:], idBytes(ref.prev), ref.record)
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
	return slices.Concat([]any{s.repo, nowMillis(), lockClass, s.lockKey()}, refs, loose, lines, commits, blobs)
}

// columns are rows as the arrays of a statement, one for each column: an array of rows would
// need types of its own in the database. The array of a column without rows is nil.
type columns []any

func (c columns) add(row ...any) {
	for i, v := range row {
		value := reflect.ValueOf(v)
		if c[i] == nil {
			c[i] = reflect.Zero(reflect.SliceOf(value.Type())).Interface()
		}
		c[i] = reflect.Append(reflect.ValueOf(c[i]), value).Interface()
	}
}
