package postgres

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/tract-vcs/tract/objects"
)

const (
	// sealAt is from how many commits of a line that are not sealed some are sealed.
	sealAt = 2 * segmentSize

	// closeTime is the longest time that Close goes on sealing. Another process does the
	// rest.
	closeTime = 3 * time.Second
)

// sealer seals lines in the background, one at a time.
type sealer struct {
	turn    sync.Mutex
	running sync.WaitGroup
	off     atomic.Bool     // this role may not delete rows: others seal
	ctx     context.Context //nolint:containedctx // of background work; ends when Close has waited long enough
	stop    context.CancelFunc
}

// sealLater has a line looked at.
func (s *store) sealLater(line int64) {
	z := &s.sealer
	z.running.Go(func() {
		z.turn.Lock()
		defer z.turn.Unlock()
		if z.off.Load() {
			return
		}
		// An error leaves the commits where they are: a later append tries again.
		if err := s.seal(z.ctx, line, sealAt); hasCode(err, codePrivilege) {
			z.off.Store(true)
		}
	})
}

// waitForSeals waits until everything is sealed, or for closeTime.
func (z *sealer) waitForSeals() {
	defer z.stop()
	defer time.AfterFunc(closeTime, z.stop).Stop()
	z.running.Wait()
}

// seal moves commits of a line into segments while there are at least so many that are not sealed.
func (s *store) seal(ctx context.Context, line int64, minCommits int) error {
	for {
		sealed := false
		err := s.inTx(ctx, pgx.TxOptions{}, statementTime, func(ctx context.Context, tx pgx.Tx) (err error) {
			sealed, err = s.sealOne(ctx, tx, line, minCommits)
			return err
		})
		if err != nil || !sealed {
			return err
		}
	}
}

// sealOne seals the oldest commits of a line that are not sealed. A line that another
// process is about to seal is left to it.
func (s *store) sealOne(ctx context.Context, tx pgx.Tx, line int64, minCommits int) (sealed bool, err error) {
	if _, err := tx.Exec(ctx, lockSQL, lockClass, s.lockKey()); err != nil {
		return false, err
	}
	q := direct{tx}
	from := int64(-1)
	err = q.query(ctx, func(row pgx.CollectableRow) error { return row.Scan(&from) },
		`select sealed from tract_line where repo = $1 and line = $2 for update skip locked`, s.repo, line)
	if err != nil || from < 0 {
		return false, err
	}
	// A range of gens that has a hole is not sealed beyond it.
	list, put, err := s.tailEntries(ctx, q, line, from, int64(minCommits))
	if err != nil || len(list) < minCommits {
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
	var parts [indexParts][]byte
	for _, h := range hints {
		part := indexPart(h[0])
		parts[part] = append(parts[part], h...)
	}
	batch := &pgx.Batch{}
	batch.Queue(`insert into tract_index (repo, part, number, data)
select $1, n - 1, $2, data from unnest($3::bytea[]) with ordinality p (data, n) where length(data) > 0`, s.repo, number, parts[:])
	batch.Queue(`delete from tract_tail where repo = $1 and line = $2 and gen >= $3 and gen < $4`, s.repo, line, from, to)
	batch.Queue(`update tract_line set sealed = $3 where repo = $1 and line = $2`, s.repo, line, to)
	return true, tx.SendBatch(ctx, batch).Close()
}

// tailEntries reads and verifies successive commits of a line from a gen on, and returns the
// newest time at which one was put.
func (s *store) tailEntries(ctx context.Context, q querier, line, from, most int64) (list []entry, newestPut int64, err error) {
	err = q.query(ctx, func(row pgx.CollectableRow) error {
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
		list, newestPut = append(list, e), max(newestPut, at)
		return err
	}, `select gen, id, head, content, body, put from tract_tail where repo = $1 and line = $2 and gen >= $3 order by gen limit $4`, s.repo, line, from, most)
	return list, newestPut, err
}
