package postgres

import (
	"context"
	"errors"
	"iter"

	"github.com/jackc/pgx/v5"
	"github.com/tract-vcs/tract/objects"
)

// Pages of a walk grow from the first of these numbers of commits to the last: a short walk
// reads little, and a long one has few round trips.
const (
	firstPage = 32
	lastPage  = 1024

	maxSegments = 4 // of one page
	recentPage  = 8 // commits of a page that comes from memory: many walks stop at once
)

// step is a commit of a walk.
type step struct {
	commit objects.Object
	at     position // line 0: it is not in a line
}

// walker reads the commits of a first-parent chain in pages.
type walker struct {
	s        *store
	next     objects.ID // zero: the walk is over
	at       position   // of next; line 0: unknown
	page     int
	segments int
}

func (s *store) walk(tip objects.ID) *walker {
	w := &walker{s: s, next: tip, page: firstPage, segments: 1}
	w.at, _ = s.positions.get(tip)
	return w
}

// read returns the next commits, at least one and about limit of them if it is over 0; none
// at the end. An error belongs to the commit next, and the commits before it come first.
func (w *walker) read(ctx context.Context, limit int) (list []step, err error) {
	const most = 8  // a position below its line leads to another line, and a wrong one to a lookup
	var wrong error // of what was at a position instead of next
	for try := 0; !w.next.IsZero(); try++ {
		located := w.at.line == 0
		list, err = w.readOrRelocate(ctx, limit)
		switch {
		case len(list) > 0:
			return list, nil // the next call begins with what is wrong
		case located && errors.Is(err, objects.ErrNotFound) && wrong != nil:
			return nil, wrong
		case !located && errors.Is(err, objects.ErrCorrupt):
			// The cache of positions may be wrong: the commit is only damaged if it is nowhere else.
			wrong, w.at = err, position{}
		case err != nil:
			return nil, err
		}
		if try == most {
			return nil, &objects.CorruptError{ID: w.next, Cause: errors.New("no position leads to it")}
		}
	}
	return nil, nil
}

// readOrRelocate returns nothing when it has found that next is at another position.
func (w *walker) readOrRelocate(ctx context.Context, limit int) (list []step, err error) {
	if list = w.takeRecent(limit); len(list) > 0 {
		return list, nil
	}
	if w.at.line == 0 {
		return w.locate(ctx)
	}
	rows, err := w.readRows(ctx, limit)
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		if r.number == forkNumber {
			w.at = position{r.line, r.gen0}
			return nil, nil
		}
		if !w.isIn(r) {
			break
		}
		commits, err := r.decodeAllCommits(w.next)
		for err == nil && w.isIn(r) {
			commit := commits[w.at.gen-r.gen0]
			if commit.ID != w.next {
				err = &objects.CorruptError{ID: w.next, Cause: errors.New("another commit is in its position")}
				break
			}
			list = w.advance(list, step{commit, w.at})
		}
		if err != nil {
			return list, err
		}
	}
	if len(list) == 0 {
		w.at = position{} // it was swept, or was never there
	}
	return list, nil
}

// isIn reports whether next should be in a row.
func (w *walker) isIn(r segmentRow) bool {
	return !w.next.IsZero() && w.at.line == r.line && w.at.gen >= r.gen0 && w.at.gen < r.gen0+int64(r.n)
}

// decodeAllCommits returns all commits of a row. reached is the commit that the walk has come to: the only
// one of a row of the tail, and the one that an error names if the segment is damaged.
func (r segmentRow) decodeAllCommits(reached objects.ID) (oldestFirst []objects.Object, err error) {
	if r.number == tailNumber {
		o, err := readObject(reached, r.heads)
		return []objects.Object{o}, err
	}
	seg, err := decodeSegment(r)
	if err != nil {
		return nil, &objects.CorruptError{ID: reached, Cause: withoutCorruptError(err)}
	}
	return seg.commits, nil
}

// Numbers of rows that are no segments.
const (
	tailNumber = 0  // a row of tract_tail
	forkNumber = -1 // the position from which a line was forked
)

// rowsSQL reads from a position of a line on towards its beginning: rows of the tail, or segments
// if the position is before the tail. If the line begins after the position it reads where the line
// was forked.
const rowsSQL = `
(select 0, line, gen, 1, id, put, head, null::bytea from tract_tail where repo = $1 and line = $2 and gen <= $3 order by gen desc limit $4)
union all
(select ` + headColumns + ` from tract_seg where repo = $1 and line = $2 and gen0 <= $3
	and not exists (select from tract_tail where repo = $1 and line = $2 and gen = $3) order by gen0 desc limit $5)
union all
select -1, from_line, from_gen, 0, null, 0, null, null from tract_line where repo = $1 and line = $2 and first > $3
order by 3 desc`

// readRows reads some rows, more each time.
func (w *walker) readRows(ctx context.Context, limit int) (rows []segmentRow, err error) {
	page, segments := w.page, w.segments
	w.page, w.segments = min(4*page, lastPage), min(2*segments, maxSegments)
	if limit > 0 {
		page, segments = min(page, limit), min(segments, 1+limit/segmentSize)
	}
	return collect(ctx, w.s, func(row pgx.CollectableRow) (segmentRow, error) { return scanSegment(row) },
		rowsSQL, w.s.repo, w.at.line, w.at.gen, page, segments)
}

// takeRecent returns commits that this process has written lately.
func (w *walker) takeRecent(limit int) (list []step) {
	for len(list) < recentPage && (limit <= 0 || len(list) < limit) {
		commit, ok := w.s.recent.get(w.next)
		at, known := w.s.positions.get(w.next)
		if !ok || !known {
			break
		}
		list = w.advance(list, step{commit.Clone(), at})
	}
	return list
}

// locate finds the position of next, or reads it where it is not in a line.
func (w *walker) locate(ctx context.Context) (list []step, err error) {
	var one found
	err = w.s.find(ctx, w.s, []objects.ID{w.next}, false, func(_ objects.ID, f found) error {
		one = f
		return f.err
	})
	switch {
	case err != nil:
		return nil, err
	case one.object.Kind == 0:
		return nil, &objects.NotFoundError{ID: w.next}
	}
	st := step{commit: one.object}
	if one.object.Kind == objects.KindCommit {
		st.at = one.at
	}
	w.s.cachePosition(st.commit.ID, st.at)
	return w.advance(list, st), nil
}

// advance appends the commit that the walk has reached, and moves to its first parent.
func (w *walker) advance(list []step, st step) []step {
	w.next = st.commit.FirstParent()
	w.at = position{}
	if st.at.line != 0 && !w.next.IsZero() {
		w.at = position{st.at.line, st.at.gen - 1}
	}
	return append(list, st)
}

// Chain is objects.Reader. It walks from the tip and from each stop, and remembers what it has read.
func (s *store) Chain(ctx context.Context, tip objects.ID, o objects.ChainOptions) iter.Seq2[objects.Object, error] {
	most := 0 // commits that are remembered, beside those of a page
	if len(o.Stop) > 0 {
		most = 1 << 15
	}
	known := map[objects.ID]objects.Object{}
	walks := map[objects.ID]*walker{} // by the commit that each reads next
	get := func(id objects.ID) (objects.Object, error) {
		if err := s.checkUsable(ctx); err != nil {
			return objects.Object{}, err
		}
		if obj, ok := known[id]; ok {
			return obj.Clone(), nil
		}
		w := walks[id]
		delete(walks, id)
		if w == nil {
			w = s.walk(id)
		}
		list, err := w.read(ctx, 0)
		if len(list) == 0 {
			return objects.Object{ID: id}, err
		}
		if len(known) > most {
			clear(known)
		}
		for _, st := range list {
			known[st.commit.ID] = st.commit
		}
		walks[w.next] = w
		return known[id].Clone(), nil
	}
	return objects.Walk(ctx, get, tip, o)
}

// ChainRuns is objects.BulkReader. A locator is the position of the commit.
func (s *store) ChainRuns(ctx context.Context, tip objects.ID, limit int) iter.Seq2[objects.CommitRun, error] {
	return func(yield func(objects.CommitRun, error) bool) {
		if err := s.checkUsable(ctx); err != nil {
			yield(objects.CommitRun{}, err)
			return
		}
		w := s.walk(tip)
		for left := limit; limit <= 0 || left > 0; {
			list, err := w.read(ctx, left)
			if err == nil {
				err = s.checkUsable(ctx)
			}
			if err != nil {
				yield(objects.CommitRun{}, err)
				return
			}
			if left > 0 {
				list = list[:min(len(list), left)]
				left -= len(list)
			}
			if len(list) == 0 || !yield(toCommitRun(list), nil) {
				return
			}
		}
	}
}

func toCommitRun(list []step) objects.CommitRun {
	run := objects.CommitRun{Objects: make([]objects.Object, len(list)), Locators: make([]objects.Locator, len(list))}
	for i, st := range list {
		run.Objects[i] = st.commit
		if st.at.line != 0 && len(st.commit.Links) > 0 {
			run.Locators[i] = objects.Locator{uint64(st.at.line), uint64(st.at.gen) + 1}
		}
	}
	return run
}
