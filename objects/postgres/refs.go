package postgres

import (
	"context"
	"errors"
	"slices"
	"strings"
	"unicode"

	"github.com/jackc/pgx/v5"
	"github.com/tract-vcs/tract/objects"
)

const refColumns = `name, target, line, gen, owns_line, version, updated, seq, newest`

// scanRef reads refColumns, and further columns into more.
func scanRef(row pgx.CollectableRow, more ...any) (name string, r refState, err error) {
	err = row.Scan(append([]any{&name, idColumn{&r.target}, &r.at.line, &r.at.gen, &r.ownsLine, &r.version, &r.updated, &r.seq, idColumn{&r.newest}}, more...)...)
	return name, r, err
}

// states reads refs, and with them, whether objects were purged.
func (s *store) states(ctx context.Context, q querier, names []string) (map[string]refState, error) {
	got := map[string]refState{}
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !isText(name) })
	err := q.query(ctx, func(row pgx.CollectableRow) error {
		var purges uint64
		name, r, err := scanRef(row, &purges)
		if err == nil {
			got[name] = r
			s.setPurges(purges)
			s.cacheRef(name, r)
		}
		return err
	}, `select `+refColumns+`, (select purges from tract_repo where id = $1) from tract_ref where repo = $1 and name = any($2::text[])`, s.repo, names)
	return got, err
}

// GetRefs is objects.RefReader.
func (s *store) GetRefs(ctx context.Context, names ...string) (refs []objects.Ref, err error) {
	if err := s.checkUsable(ctx); err != nil || len(names) == 0 {
		return nil, err
	}
	got, err := s.states(ctx, s, names)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if r, ok := got[name]; ok && !r.target.IsZero() {
			refs = append(refs, r.toRef(name))
		}
	}
	return refs, nil
}

// Refs is objects.RefReader.
func (s *store) Refs(ctx context.Context, q objects.RefQuery) (refs []objects.Ref, err error) {
	if err := s.checkUsable(ctx); err != nil {
		return nil, err
	}
	if !isText(q.Prefix) {
		return nil, nil
	}
	if !isText(q.After) {
		all := q
		all.After, all.Limit = "", 0
		refs, err = s.Refs(ctx, all)
		refs = slices.DeleteFunc(refs, func(r objects.Ref) bool { return r.Name <= q.After })
		if q.Limit > 0 {
			refs = refs[:min(q.Limit, len(refs))]
		}
		return refs, err
	}
	order := "name"
	if q.Newest {
		order = "updated desc, name"
	}
	return collect(ctx, s, func(row pgx.CollectableRow) (objects.Ref, error) {
		name, r, err := scanRef(row)
		s.cachePosition(r.target, r.at)
		return r.toRef(name), err
	}, `select `+refColumns+` from tract_ref where repo = $1 and name > $2 and name >= $3 and name < $4
and target is not null order by `+order+` limit nullif($5::bigint, 0)`, s.repo, q.After, q.Prefix, q.Prefix+string(unicode.MaxRune), int64(q.Limit))
}

// isText reports whether the database takes a string as text.
func isText(s string) bool { return strings.ToValidUTF8(s, "") == s && !strings.Contains(s, "\x00") }

// Log is objects.RefReader.
func (s *store) Log(ctx context.Context, name string, before uint64, limit int) (entries []objects.LogEntry, err error) {
	if err := s.checkUsable(ctx); err != nil {
		return nil, err
	}
	if before == 0 || before > 1<<62 {
		before = 1 << 62
	}
	if !isText(name) {
		return nil, nil
	}
	sql := `select seq, record from tract_log where repo = $1 and seq < $2 and $3 = '' and record is not null order by seq desc limit nullif($4::bigint, 0)`
	if name != "" {
		sql = `select e.seq, e.record from tract_log l join tract_log e on e.repo = l.repo and e.seq = l.seq and e.record is not null
where l.repo = $1 and l.seq < $2 and l.name = $3 order by l.seq desc limit nullif($4::bigint, 0)`
	}
	return collect(ctx, s, scanEntry, sql, s.repo, int64(before), name, int64(limit))
}

func scanEntry(row pgx.CollectableRow) (e objects.LogEntry, err error) {
	var seq uint64
	var record []byte
	if err := row.Scan(&seq, &record); err != nil {
		return e, err
	}
	return parseEntry(seq, record)
}

func parseEntry(seq uint64, record []byte) (objects.LogEntry, error) {
	e, err := objects.ParseLogEntry(record)
	if err == nil && e.Seq != seq {
		err = &objects.CorruptError{Cause: errors.New("a log entry is under another number")}
	}
	return e, err
}
