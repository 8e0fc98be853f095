package postgres

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/tract-vcs/tract/objects"
)

const (
	// sealAt is from how many commits of a line that are not sealed some are sealed.
	sealAt = 2 * segmentSize

	// runSize is how many rows of level 0 of tract_index become a run.
	runSize = 64

	// closeTime is the longest time that Close goes on sealing. Another process does the
	// rest.
	closeTime = 3 * time.Second
)

// sealer seals lines in the background, one at a time.
type sealer struct {
	mu    sync.Mutex
	lines []int64
	on    bool // the goroutine runs
	off   bool // this role may not delete rows: others seal
	ended time.Time
	idle  sync.WaitGroup
}

// add has a line looked at.
func (z *sealer) add(s *store, line int64) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.off || slices.Contains(z.lines, line) {
		return
	}
	z.lines = append(z.lines, line)
	if !z.on {
		z.on = true
		z.idle.Go(func() { z.run(s) })
	}
}

func (z *sealer) run(s *store) {
	for {
		z.mu.Lock()
		if len(z.lines) == 0 || z.off || !z.ended.IsZero() && time.Since(z.ended) > closeTime {
			z.on = false
			z.mu.Unlock()
			return
		}
		line := z.lines[0]
		z.lines = z.lines[1:]
		z.mu.Unlock()
		// An error leaves the commits where they are: a later append tries again.
		if err := s.seal(context.Background(), line, sealAt); hasCode(err, codePrivilege) {
			z.mu.Lock()
			z.off = true
			z.mu.Unlock()
		}
	}
}

// finish waits until everything is sealed, or for closeTime.
func (z *sealer) finish() {
	z.mu.Lock()
	z.ended = time.Now()
	z.mu.Unlock()
	z.idle.Wait()
}

// seal moves commits of a line into segments while there are at least so many that are not
// sealed.
func (s *store) seal(ctx context.Context, line int64, least int) error {
	for n := 1; ; n++ {
		sealed := false
		err := s.inTx(ctx, pgx.TxOptions{}, statementTime, func(ctx context.Context, tx pgx.Tx) (err error) {
			sealed, err = s.sealOne(ctx, tx, line, least)
			return err
		})
		if err != nil || !sealed {
			return err
		}
		if n%runSize == 0 {
			if err := s.mergeIndex(ctx); err != nil {
				return err
			}
		}
	}
}

// sealOne seals the oldest commits of a line that are not sealed. A line that another
// process is about to seal is left to it.
func (s *store) sealOne(ctx context.Context, tx pgx.Tx, line int64, least int) (sealed bool, err error) {
	if err := s.lockShared(ctx, tx); err != nil {
		return false, err
	}
	q := txQuerier{tx}
	from := int64(-1)
	err = q.query(ctx, func(row pgx.Rows) error { return row.Scan(&from) },
		`select sealed from tract_line where repo = $1 and line = $2 for update skip locked`, s.repo, line)
	if err != nil || from < 0 {
		return false, err
	}
	// A range of gens that has a hole is not sealed beyond it.
	list, put, err := s.tailEntries(ctx, q, line, from, int64(least))
	if err != nil || len(list) < least {
		return false, err
	}
	list = list[:segmentSize]
	row, hints := encodeSegment(line, from, list, put)
	if _, err := decodeSegment(row); err != nil {
		return false, err // nothing is deleted that cannot be read back
	}
	to := from + int64(len(list))
	var number int32
	err = tx.QueryRow(ctx, `insert into tract_seg (repo, line, gen0, n, tip, heads, bodies, put) values ($1, $2, $3, $4, $5, $6, $7, $8) returning number`,
		s.repo, line, from, row.n, row.tip[:], row.heads, row.bodies, row.put).Scan(&number)
	if err != nil {
		return false, err
	}
	var data []byte
	for _, h := range hints {
		data = appendEntry(data, h, number)
	}
	batch := &pgx.Batch{}
	batch.Queue(`insert into tract_index (repo, level, part, run, data) values ($1, 0, 0, $2, $3)`, s.repo, int64(number), data)
	batch.Queue(`delete from tract_tail where repo = $1 and line = $2 and gen >= $3 and gen < $4`, s.repo, line, from, to)
	batch.Queue(`update tract_line set sealed = $3 where repo = $1 and line = $2`, s.repo, line, to)
	return true, tx.SendBatch(ctx, batch).Close()
}

// tailEntries reads and verifies successive commits of a line from a gen on, and returns the
// youngest time at which one was put.
func (s *store) tailEntries(ctx context.Context, q querier, line, from, most int64) (list []entry, put int64, err error) {
	err = q.query(ctx, func(row pgx.Rows) error {
		var gen, at int64
		var id, content objects.ID
		var head, body []byte
		err := row.Scan(&gen, idColumn{&id}, &head, idColumn{&content}, &body, &at)
		if err != nil || gen != from+int64(len(list)) {
			return err
		}
		var e entry
		if e.commit, err = readObject(id, head); err == nil && body != nil {
			e.content, err = readContent(content, body)
		}
		list, put = append(list, e), max(put, at)
		return err
	}, `select gen, id, head, content, body, put from tract_tail where repo = $1 and line = $2 and gen >= $3 order by gen limit $4`, s.repo, line, from, most)
	return list, put, err
}
