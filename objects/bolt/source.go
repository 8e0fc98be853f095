package bolt

import (
	"bytes"
	"context"
	"fmt"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/journal"
	"github.com/tract-vcs/tract/objects/bolt/internal/page"
)

// viewBytes is about how many bytes gc and backup read at a time while writers wait.
const viewBytes = 4 << 20

// source reads a whole store in many short views, between which others write to it. That
// is enough for what never changes: packs, log entries and large objects are only added.
// Everything that it reads is without the journal, except for what [source.each] gives
// when it is asked to.
type source struct {
	ctx    context.Context //nolint:containedctx // it is one operation
	store  *store          // a twin, whose waits do not delay others of this process
	op     string
	bound  journal.Binding // of the file, when it was opened
	number uint64          // of the file; see handle
	locked *snapshot       // set while the caller holds the lock: then it is read instead

	done, total int64
	progress    func(done, total int64)
	largest     int64 // most bytes that were read while writers waited
}

func (s *store) newSource(ctx context.Context, op string, progress func(done, total int64)) (*source, error) {
	if err := s.checkPath(); err != nil {
		return nil, s.explain(op, err)
	}
	_, total, err := s.Size(ctx)
	if err != nil {
		return nil, err
	}
	src := &source{ctx: ctx, store: s.twin(), op: op, progress: progress, total: total}
	return src, src.store.view(ctx, op, func(l *snapshot) error {
		src.number = l.number
		value, err := l.get(metaBucket, journalKey)
		if err == nil {
			src.bound, err = decodeBinding(value)
		}
		return err
	})
}

func (src *source) close() { _ = src.store.Close() }

// view calls f with the store as it is now. If another program has replaced the file or
// purged content in it, that is errReplaced.
func (src *source) view(f func(l *snapshot) error) error {
	if src.locked != nil {
		return f(src.locked)
	}
	return src.store.view(src.ctx, src.op, func(l *snapshot) error {
		if l.number != src.number {
			return src.replaced()
		}
		return f(l)
	})
}

func (src *source) replaced() error {
	return fmt.Errorf("%s store %s: %w: %w: try again", src.op, src.store.path, errReplaced, objects.ErrBusy)
}

// withoutJournal returns a look at the file alone.
func (l *snapshot) withoutJournal() *snapshot {
	c := *l
	c.mem, c.pending, c.mark = nil, nil, 0
	return &c
}

// pair is a key and its value.
type pair struct{ key, value []byte }

// each calls f with the keys and values of a bucket from a key on, and no view is open then.
// Keys that want, which may be nil, refuses are left out.
func (src *source) each(bucket int, from []byte, withJournal bool, want func(e page.Entry) (bool, error), f func(key, value []byte) error) error {
	for from != nil {
		var list []pair
		err := src.view(func(l *snapshot) (err error) {
			if !withJournal {
				l = l.withoutJournal()
			}
			list, from, err = src.pairs(l, bucket, from, want)
			return err
		})
		if err != nil {
			return err
		}
		src.report()
		for _, p := range list {
			if err := f(p.key, p.value); err != nil {
				return err
			}
		}
	}
	return nil
}

// pairs reads the next keys and values of a bucket. next is the key to go on from, if any.
func (src *source) pairs(l *snapshot, bucket int, from []byte, want func(e page.Entry) (bool, error)) (list []pair, next []byte, err error) {
	size := 0
	defer func() { src.count(size) }()
	for e, err := range l.ascend(bucket, from) {
		if err != nil {
			return nil, nil, err
		}
		if size >= viewBytes {
			return list, bytes.Clone(e.Key), nil
		}
		size += len(e.Key)
		if want != nil {
			wanted, err := want(e)
			if err != nil {
				return nil, nil, err
			}
			if !wanted {
				continue
			}
		}
		value, err := e.Value()
		if err != nil {
			return nil, nil, err
		}
		size += len(value)
		list = append(list, pair{bytes.Clone(e.Key), value})
	}
	return list, nil, nil
}

// count notes that so many bytes were read in one view.
func (src *source) count(size int) {
	src.largest = max(src.largest, int64(size))
	src.done += int64(size)
}

// report reports the progress, between two views.
func (src *source) report() {
	if src.progress != nil && src.locked == nil {
		src.progress(min(src.done, src.total), src.total)
	}
}

// rawPack is the stored values of a pack.
type rawPack struct {
	n          uint32
	head, body []byte
}

// packs calls f with the packs behind a number, ascending.
func (src *source) packs(after uint32, f func(p rawPack) error) error {
	for more := true; more; {
		var list []rawPack
		more = false
		err := src.view(func(l *snapshot) error {
			l = l.withoutJournal()
			size := 0
			for e, err := range l.ascend(headsBucket, packKey(after+1)) {
				if err == nil && size >= viewBytes {
					more = true
					break
				}
				var p rawPack
				if err == nil {
					p, err = l.rawPack(e)
				}
				if err != nil {
					return err
				}
				list, size, after = append(list, p), size+len(p.head)+len(p.body), p.n
			}
			src.count(size)
			return nil
		})
		if err != nil {
			return err
		}
		src.report()
		for _, p := range list {
			if err := f(p); err != nil {
				return err
			}
		}
	}
	return nil
}

// rawPack reads the pack with the head e.
func (l *snapshot) rawPack(e page.Entry) (p rawPack, err error) {
	if p.n, err = packNumber(e.Key); err != nil {
		return p, err
	}
	if p.head, err = e.Value(); err != nil {
		return p, err
	}
	body, err := l.ofPack(bodiesBucket, p.n)
	if err == nil {
		p.body, err = body.Value()
	}
	return p, err
}
