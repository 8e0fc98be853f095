package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/memtable"
	"github.com/tract-vcs/tract/objects/bolt/internal/page"
)

// watchInterval is how often a watch reads the ref, which another process may have moved.
const watchInterval = 50 * time.Millisecond

// ref reads one ref; one that does not exist has a zero target.
func (l *snapshot) ref(name string) (refRecord, error) {
	value, err := l.get(refsBucket, []byte(name))
	if err == nil && value == nil {
		err = l.checkAbsentInLog(name)
	}
	if err != nil || value == nil {
		return refRecord{Ref: objects.Ref{Name: name}}, err
	}
	return decodeRef(name, value)
}

// checkAbsentInLog checks a ref that was not found against the log: if the log does not say that it
// was deleted or never created, its name or its page is damaged.
func (l *snapshot) checkAbsentInLog(name string) error {
	e, err := l.newestEntry(name)
	if err != nil {
		return err
	}
	for _, u := range e.Refs {
		if u.Name == name && !u.New.IsZero() {
			return fmt.Errorf("ref %q is not there; the log says %s", name, u.New.Short())
		}
	}
	return nil
}

// newestEntry returns the newest entry that moves a ref, or of all when name is empty; the
// zero one if there is none.
func (l *snapshot) newestEntry(name string) (objects.LogEntry, error) {
	for e, err := range l.log(name, math.MaxUint64) {
		return e, err
	}
	return objects.LogEntry{}, nil
}

// GetRefs is objects.RefReader.
func (s *store) GetRefs(ctx context.Context, names ...string) (refs []objects.Ref, err error) {
	err = s.view(ctx, "read", func(l *snapshot) error {
		for _, name := range names {
			if name == "" {
				continue
			}
			r, err := l.ref(name)
			if err != nil {
				return err
			}
			if !r.Target.IsZero() {
				refs = append(refs, r.Ref)
			}
		}
		return nil
	})
	return refs, err
}

// Refs is objects.RefReader.
func (s *store) Refs(ctx context.Context, q objects.RefQuery) (refs []objects.Ref, err error) {
	err = s.view(ctx, "list refs of", func(l *snapshot) error {
		list := l.refsByName(q.Prefix, q.After)
		if q.Newest {
			list = l.refsByTime()
		}
		for r, err := range list {
			if err != nil {
				return err
			}
			if r.Name <= q.After || !strings.HasPrefix(r.Name, q.Prefix) {
				continue
			}
			if refs = append(refs, r); q.Limit > 0 && len(refs) == q.Limit {
				return nil
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return refs, nil
}

// refsByName yields the refs whose names begin with a prefix, by name, from the name from on.
func (l *snapshot) refsByName(prefix, from string) iter.Seq2[objects.Ref, error] {
	return func(yield func(objects.Ref, error) bool) {
		decode := func(name, value []byte) (refRecord, error) { return decodeRef(string(name), value) }
		for r, err := range decoded(l.ascend(refsBucket, []byte(max(prefix, from))), decode) {
			if err == nil && !strings.HasPrefix(r.Name, prefix) || !yield(r.Ref, err) {
				return
			}
		}
	}
}

// refsByTime yields all refs, the newest first.
func (l *snapshot) refsByTime() iter.Seq2[objects.Ref, error] {
	return func(yield func(objects.Ref, error) bool) {
		for e, err := range l.ascend(recentBucket, nil) {
			var r refRecord
			if err == nil && len(e.Key) <= 8 {
				err = errors.New("a key without the name of a ref")
			}
			if err == nil {
				r, err = l.ref(string(e.Key[8:]))
			}
			if err == nil && (r.Target.IsZero() || !bytes.Equal(recentKey(r.Ref), e.Key)) {
				err = fmt.Errorf("ref %q is not where its time says", r.Name)
			}
			if !yield(r.Ref, err) {
				return
			}
		}
	}
}

// Log is objects.RefReader. Entries never change, so pages read from the newest downwards are
// consistent.
func (s *store) Log(ctx context.Context, name string, before uint64, limit int) (entries []objects.LogEntry, err error) {
	if before == 0 {
		before = math.MaxUint64
	}
	for more := true; more; {
		page := viewKeys
		if limit > 0 {
			page = min(page, limit-len(entries))
		}
		err := s.view(ctx, "read the log of", func(l *snapshot) error {
			had := len(entries)
			for e, err := range l.log(name, before) {
				if err != nil {
					return err
				}
				if entries = append(entries, e); len(entries)-had == page {
					break
				}
			}
			more = len(entries)-had == page && len(entries) != limit
			return nil
		})
		if err != nil {
			return nil, err
		}
		if len(entries) > 0 {
			before = entries[len(entries)-1].Seq
		}
	}
	return entries, nil
}

// log yields the entries below a sequence number, of one ref or of all, the newest first. An
// error is the last element.
func (l *snapshot) log(name string, before uint64) iter.Seq2[objects.LogEntry, error] {
	var lists iter.Seq2[[]objects.LogEntry, error]
	if name == "" {
		lists = decoded(l.descend(logBucket, logKey(before)), decodeEntries)
	} else {
		lists = l.logValuesOf(name, before)
	}
	return func(yield func(objects.LogEntry, error) bool) {
		for list, err := range lists {
			if err != nil {
				yield(objects.LogEntry{}, err)
				return
			}
			for _, e := range slices.Backward(list) {
				if e.Seq < before && (name == "" || movesRef(e, name)) && !yield(e, nil) {
					return
				}
			}
		}
	}
}

// logValuesOf yields the entries of one value at a time, of the values that have a move of a ref.
func (l *snapshot) logValuesOf(name string, before uint64) iter.Seq2[[]objects.LogEntry, error] {
	return func(yield func([]objects.LogEntry, error) bool) {
		for found, err := range l.descendMoves(name, before) {
			var list []objects.LogEntry
			if err == nil {
				seq, ok := parseMovesKey(name, found.Key)
				if !ok {
					return // the moves of another ref
				}
				list, err = l.readLogEntries(seq)
				if err == nil && !slices.ContainsFunc(list, func(e objects.LogEntry) bool { return movesRef(e, name) }) {
					err = fmt.Errorf("log entry %d does not move %q", seq, name)
				}
			}
			if !yield(list, err) {
				return
			}
		}
	}
}

// descendMoves yields the entries of the moves bucket below that of a move of a ref, in descending order.
// Of the journal it sorts only those of the ref: a writer asks for each ref that is new to it.
func (l *snapshot) descendMoves(name string, before uint64) iter.Seq2[page.Entry, error] {
	key := movesKey(name, before)
	var journaled []memtable.Entry
	if l.mem != nil {
		journaled = l.mem.SortedWithPrefix(movesBucket, key[:len(key)-8], l.mark)
	}
	return l.merged(movesBucket, key, true, journaled)
}

func movesRef(e objects.LogEntry, name string) bool {
	return slices.ContainsFunc(e.Refs, func(u objects.RefUpdate) bool { return u.Name == name })
}

// readLogEntries reads the entries of the value under a sequence number.
func (l *snapshot) readLogEntries(seq uint64) ([]objects.LogEntry, error) {
	value, err := l.get(logBucket, logKey(seq))
	if err == nil && value == nil {
		err = fmt.Errorf("log entry %d is not there", seq)
	}
	if err != nil {
		return nil, err
	}
	return decodeEntries(logKey(seq), value)
}

// Watch is objects.Watcher. It reads the ref now and then; a move by this process wakes it at
// once.
func (s *store) Watch(ctx context.Context, name string) iter.Seq2[objects.Ref, error] {
	return func(yield func(objects.Ref, error) bool) {
		tick := time.NewTicker(watchInterval)
		defer tick.Stop()
		var last objects.Ref
		for first := true; ; first = false {
			s.mu.Lock()
			moved := s.moved
			s.mu.Unlock()
			now, err := objects.ReadRef(ctx, s, name)
			if err != nil {
				yield(objects.Ref{Name: name}, err)
				return
			}
			if first || now != last {
				if !yield(now, nil) {
					return
				}
				last = now
			}
			select {
			case <-ctx.Done(): // the next reading returns the error
			case <-moved:
			case <-tick.C:
			}
		}
	}
}
