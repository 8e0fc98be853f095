package postgres

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"iter"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/tract-vcs/tract/objects"
)

// An entry of tract_index is a hint and the number of a segment.
const (
	hintSize  = 6
	entrySize = hintSize + 4
)

// hint returns what tract_index has of an id. What is found by it is a candidate.
func hint(id objects.ID) []byte { return id[:hintSize] }

// appendEntry appends an entry to a row of tract_index.
func appendEntry(data, hint []byte, segment int32) []byte {
	return binary.BigEndian.AppendUint32(append(data, hint...), uint32(segment))
}

// indexEntries yields the entries of a row of tract_index whose hints may be those of ids with a
// hexadecimal prefix.
func indexEntries(data []byte, prefix string) iter.Seq2[[hintSize]byte, int32] {
	prefix = prefix[:min(len(prefix), 2*hintSize)]
	return func(yield func([hintSize]byte, int32) bool) {
		for ; len(data) >= entrySize; data = data[entrySize:] {
			h := [hintSize]byte(data)
			if prefix != "" && !strings.HasPrefix(hex.EncodeToString(h[:]), prefix) {
				continue
			}
			if !yield(h, int32(binary.BigEndian.Uint32(data[hintSize:]))) {
				return
			}
		}
	}
}

// mergeIndex makes runs of level 1 of the rows of level 0 of tract_index, while there are enough.
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
	var runs []int64
	var parts [256][]byte // by the first byte of the hints
	err = txQuerier{tx}.query(ctx, func(row pgx.Rows) error {
		var run int64
		var data []byte
		err := row.Scan(&run, &data)
		runs = append(runs, run)
		for h, segment := range indexEntries(data, "") {
			parts[h[0]] = appendEntry(parts[h[0]], h[:], segment)
		}
		return err
	}, `select run, data from tract_index where repo = $1 and level = 0 order by run limit $2 for update skip locked`, s.repo, runSize)
	if err != nil || len(runs) < runSize {
		return false, err
	}
	batch := &pgx.Batch{}
	batch.Queue(`insert into tract_index (repo, level, part, run, data)
select $1, 1, n - 1, $2, data from unnest($3::bytea[]) with ordinality p (data, n) where length(data) > 0`, s.repo, runs[0], parts[:])
	batch.Queue(`delete from tract_index where repo = $1 and level = 0 and run = any($2::bigint[])`, s.repo, runs)
	return true, tx.SendBatch(ctx, batch).Close()
}
