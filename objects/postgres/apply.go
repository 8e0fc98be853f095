package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/tract-vcs/tract/objects"
)

// Apply is objects.Writer.
func (s *store) Apply(ctx context.Context, b objects.Batch) error {
	switch {
	case s.closed.Load():
		return objects.ErrClosed
	case ctx.Err() != nil:
		return ctx.Err()
	case len(b.Put) == 0 && len(b.Refs) == 0:
		return nil
	case s.readOnly:
		return fmt.Errorf("store %s: %w", s.name, objects.ErrReadOnly)
	}
	a := apply{s: s, batch: &b}
	err := s.retryWhileTransient(ctx, func() (err error) {
		for done := false; !done && err == nil; {
			done, err = a.try(ctx)
		}
		return err
	})
	if err != nil && a.sent != nil {
		return objects.Unknown(err)
	}
	return err
}

// apply is one Apply.
type apply struct {
	s         *store
	batch     *objects.Batch
	fresh     bool   // refs are read anew, not taken from the cache
	lookUpAll bool   // everything is looked up
	seq       uint64 // of the log entry; 0: not drawn
	sent      *write // whose outcome is unknown
}

// try writes the batch once. It is not done, without an error, when it has to be tried again
// at once: what this process knew of the store is out of date.
func (a *apply) try(ctx context.Context) (done bool, err error) {
	if a.sent != nil {
		// It has happened if its log entry is there; without refs, if all that it put is, as the plan finds out.
		if refs := a.sent.refs; len(refs) > 0 {
			if written, err := a.s.hasEntry(ctx, a.s, refs[0]); err != nil || written {
				return written, err
			}
		}
		a.sent = nil
	}
	refs, someInPlace, err := a.planMoves(ctx)
	if err != nil {
		return false, err
	}
	p, err := a.s.plan(ctx, a.batch, refs, a.lookUpAll || someInPlace)
	if err != nil {
		return false, err
	}
	won, err := a.s.submit(ctx, &p.write)
	switch {
	case err == nil && won:
		a.s.cacheWritten(p)
		a.s.sealFullLines(p.commits)
		return true, nil
	case err == nil, hasCode(err, codeDivisionByZero):
		a.fresh = true
		return false, nil
	case hasCode(err, codeUniqueViolation): // the position is taken
		a.lookUpAll = true
		return false, nil
	case !isUndone(err):
		a.sent, a.fresh, a.lookUpAll = &p.write, true, true
	}
	return false, err
}

// planMoves returns the rows of the refs that the batch moves. someInPlace says that some are already
// where they are to be.
func (a *apply) planMoves(ctx context.Context) (rows []refRow, someInPlace bool, err error) {
	if len(a.batch.Refs) == 0 {
		return nil, false, nil
	}
	states, err := a.states(ctx)
	if err != nil {
		return nil, false, err
	}
	moves, err := objects.PendingUpdates(a.batch.Refs, func(name string) (objects.ID, error) { return states[name].target, nil })
	someInPlace = len(moves) < len(a.batch.Refs)
	if (err != nil || someInPlace) && !a.fresh {
		a.fresh = true
		return a.planMoves(ctx)
	}
	if err != nil || len(moves) == 0 {
		return nil, someInPlace, err
	}
	rows, err = a.newRefRows(ctx, slices.Clone(moves), states)
	return rows, someInPlace, err
}

// states returns the refs of the batch: as they are in the cache at first.
func (a *apply) states(ctx context.Context) (map[string]refState, error) {
	states, names := map[string]refState{}, make([]string, 0, len(a.batch.Refs))
	for _, u := range a.batch.Refs {
		names = append(names, u.Name)
		if r, ok := a.s.refs.get(u.Name); ok && !a.fresh {
			states[u.Name] = r
		}
	}
	if len(states) == len(names) {
		return states, nil
	}
	a.fresh = true
	return a.s.states(ctx, a.s, names)
}

// newRefRows returns the rows of the refs after moves, with their log entry and its number.
func (a *apply) newRefRows(ctx context.Context, moves []objects.RefUpdate, states map[string]refState) ([]refRow, error) {
	last := uint64(0)
	for i := range moves {
		before := states[moves[i].Name]
		moves[i].Prev, last = before.newest, max(last, before.seq)
	}
	if a.seq <= last { // else the one of an earlier try will do
		seq, err := a.s.drawSeq(ctx, last)
		if err != nil {
			return nil, err
		}
		a.seq = seq
	}
	return refRows(objects.LogEntry{Seq: a.seq, Note: a.batch.Note, Refs: moves}, states), nil
}

// refRows are the rows of the refs that an entry moves from states. The first by name has the record.
func refRows(e objects.LogEntry, states map[string]refState) []refRow {
	entry, record := objects.EncodeLogEntry(e.Seq, e.Note, e.Refs)
	rows := make([]refRow, len(entry.Refs))
	for i, u := range entry.Refs {
		before := states[u.Name]
		rows[i] = refRow{name: u.Name, before: before, state: refState{
			target: u.New, version: before.version + 1, updated: entry.Note.Time.UnixMilli(), seq: entry.Seq, newest: entry.Hash,
		}}
	}
	slices.SortFunc(rows, func(a, b refRow) int { return strings.Compare(a.name, b.name) })
	rows[0].record = record
	return rows
}

// hasEntry reports whether the log has the entry that moves a ref.
func (s *store) hasEntry(ctx context.Context, q querier, r refRow) (has bool, err error) {
	err = q.query(ctx, func(pgx.CollectableRow) error { has = true; return nil },
		`select from tract_log where repo = $1 and seq = $2 and name = $3 and record = $4`, s.repo, int64(r.state.seq), r.name, r.record)
	return has, err
}

// cacheWritten puts what was written into the caches.
func (s *store) cacheWritten(p *planner) {
	for i := range p.refs {
		s.cacheRef(p.refs[i].name, p.refs[i].state)
	}
	for _, c := range p.commits[max(0, len(p.commits)-recentBatch):] {
		s.cachePosition(c.id, c.at)
	}
	for end := range p.ends {
		s.ends.put(end, true)
	}
	if len(p.put) <= recentBatch && s.purges.Load() == p.purges {
		for id, o := range p.put {
			if !p.copies && (isCacheable(o) || isInline(o)) {
				s.recent.put(id, o.Clone())
			}
		}
		if s.purges.Load() != p.purges { // it may have been one of these
			s.recent.forget()
		}
	}
}

// sealFullLines starts to seal the lines in which the commits that were written complete a segment.
func (s *store) sealFullLines(written []commitRow) {
	var full []int64 // lines, each once
	for i := range written {
		if at := written[i].at; at.gen%segmentSize == 0 && at.gen > 0 && !slices.Contains(full, at.line) {
			full = append(full, at.line)
			s.sealLater(at.line)
		}
	}
}

// Update is objects.Writer.
func (s *store) Update(ctx context.Context, ref string, f func(tip objects.ID) (objects.Batch, error)) error {
	return s.updates.Run(ctx, s, ref, f)
}
