package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
)

// mergeIndex makes a run of level 1 of the oldest rows of level 0 of tract_index, if there
// are enough.
func (s *store) mergeIndex(ctx context.Context) error {
	for merged := true; merged; {
		err := s.inTx(ctx, pgx.TxOptions{}, statementTime, func(ctx context.Context, tx pgx.Tx) (err error) {
			merged, err = s.mergeRun(ctx, tx)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *store) mergeRun(ctx context.Context, tx pgx.Tx) (merged bool, err error) {
	var segments []position
	var hints [][]byte
	err = txQuerier{tx}.query(ctx, func(row pgx.Rows) error {
		var at position
		var data []byte
		err := row.Scan(&at.line, &at.gen, &data)
		segments, hints = append(segments, at), append(hints, data)
		return err
	}, `select line, gen0, data from tract_index where repo = $1 and level = 0 order by line, gen0 limit $2 for update skip locked`, s.repo, runSize)
	if err != nil || len(segments) < runSize {
		return false, err
	}
	run := newLine()
	list, parts := encodeRun(segments, hints)
	batch := &pgx.Batch{}
	const insert = `insert into tract_index (repo, level, part, line, gen0, data) values ($1, 1, $2, $3, 0, $4)`
	batch.Queue(insert, s.repo, int16(listPart), run, list)
	for part, data := range parts {
		if len(data) > 0 {
			batch.Queue(insert, s.repo, int16(part), run, data)
		}
	}
	var lines, gens []int64
	for _, at := range segments {
		lines, gens = append(lines, at.line), append(gens, at.gen)
	}
	batch.Queue(`delete from tract_index where repo = $1 and level = 0 and (line, gen0) in (select * from unnest($2::bigint[], $3::bigint[]))`, s.repo, lines, gens)
	return true, tx.SendBatch(ctx, batch).Close()
}

// listPart is the part of the row that lists the segments of a run.
const listPart = 256

// encodeRun encodes the hints of segments as a run: the list of the segments, and for each
// first byte of an id, hints and the numbers of their segments.
func encodeRun(segments []position, hints [][]byte) (list []byte, parts [256][]byte) {
	for n, at := range segments {
		list = appendPosition(list, at)
		for h := range slices.Chunk(hints[n], hintSize) {
			if len(h) == hintSize {
				parts[h[0]] = append(append(parts[h[0]], h...), byte(n))
			}
		}
	}
	return list, parts
}
