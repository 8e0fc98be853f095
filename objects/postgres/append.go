package postgres

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"
)

// appendSQL writes a group of batches: append.sql says how.
const appendSQL = `select tract_append($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`

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
	for {
		select {
		case <-r.done:
			return r.won, r.err
		case <-ctx.Done():
			if q.remove(r) {
				return false, errors.Join(errNotSent, ctx.Err())
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

var errNotSent = errors.New("the write was not sent")

// take returns the requests of the next statement, if any waits.
func (q *queue) take() (group []*request) {
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

// writeGroup writes a group and tells each of its requests the outcome.
func (s *store) writeGroup(ctx context.Context, group []*request) {
	var versions []int64
	args, refs := s.appendArgs(group)
	err := s.attempt(ctx, statementTime, func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, appendSQL, args...).Scan(&versions)
	})
	if err != nil && len(group) > 1 && isUndone(err) {
		for _, r := range group { // one of them is to blame
			s.writeGroup(ctx, []*request{r})
		}
		return
	}
	for _, r := range group {
		r.won, r.err = err == nil, err
	}
	for i, v := range versions {
		refs[i].row.state.version = uint64(v)
		if v == 0 {
			group[refs[i].batch-1].won = false
		}
	}
	for _, r := range group {
		close(r.done)
	}
}

// numbered is a row of a batch of a group. The first batch has the number 1.
type numbered[T any] struct {
	batch int64
	row   *T
}

// sorted returns rows of all batches in the order of their keys.
func sorted[T any](group []*request, rows func(*write) []T, compare func(a, b *T) int) (list []numbered[T]) {
	for i, r := range group {
		of := rows(r.write)
		for k := range of {
			list = append(list, numbered[T]{int64(i + 1), &of[k]})
		}
	}
	slices.SortStableFunc(list, func(a, b numbered[T]) int { return compare(a.row, b.row) })
	return list
}

// appendArgs returns the parameters of appendSQL for a group, and the refs in their order there.
func (s *store) appendArgs(group []*request) (args []any, refs []numbered[refRow]) {
	var copies []bool
	var names []string
	var refNumbers, commits, blobs []int64
	var refBytes, commitBytes, blobBytes [][]byte
	refs = sorted(group, func(w *write) []refRow { return w.refs }, func(a, b *refRow) int { return strings.Compare(a.name, b.name) })
	for _, r := range refs {
		to := &r.row.state
		names = append(names, r.row.name)
		refNumbers = append(refNumbers, r.batch, to.at.line, to.at.gen, to.updated, int64(to.seq))
		refBytes = append(refBytes, idOrNull(to.target), to.newest[:], idOrNull(r.row.prev), r.row.record)
	}
	for _, r := range group {
		copies = append(copies, r.write.copies)
	}
	for _, c := range sorted(group, func(w *write) []commitRow { return w.commits }, func(a, b *commitRow) int { return a.at.compare(b.at) }) {
		commits = append(commits, c.batch, c.row.at.line, c.row.at.gen, c.row.from.line, c.row.from.gen)
		commitBytes = append(commitBytes, c.row.id[:], c.row.head, idOrNull(c.row.content), c.row.body)
	}
	for _, b := range sorted(group, func(w *write) []blobRow { return w.blobs }, func(a, b *blobRow) int { return a.id.Compare(b.id) }) {
		blobs = append(blobs, b.batch, int64(b.row.kind), int64(b.row.codec))
		blobBytes = append(blobBytes, b.row.id[:], b.row.data)
	}
	return []any{s.repo, time.Now().UnixMilli(), lockClass, s.lockKey(), copies, names, refNumbers, refBytes, commits, commitBytes, blobs, blobBytes}, refs
}
