package bolt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/tract-vcs/tract/objects"
)

// errReplaced says that another program has replaced the file, or purged content in it.
var errReplaced = errors.New("another program has rewritten it")

// Sweep is objects.Maintainer. It writes what is kept into a new file while others use the
// store, and takes the lock only to add what they have written meanwhile and to give the
// new file the name of the old one. If it is interrupted before that, the store is as it
// was.
func (s *store) Sweep(ctx context.Context, o objects.Sweep) (swept objects.Swept, err error) {
	if !o.Dry && s.readOnly {
		return swept, fmt.Errorf("clean store %s: %w", s.path, objects.ErrReadOnly)
	}
	for range patience {
		if !o.Dry {
			if err := s.prepareSweep(ctx); err != nil {
				return swept, err
			}
		}
		if swept, err = s.sweep(ctx, o); !errors.Is(err, errReplaced) {
			break
		}
	}
	return swept, s.explain("clean", err)
}

// prepareSweep removes leftovers before the new file needs their room, and writes what is
// in the journal into the file, so that it has an age.
func (s *store) prepareSweep(ctx context.Context) error {
	if err := s.tidy(ctx, "clean", false); err != nil {
		return err
	}
	t := s.twin()
	return t.exclusively(ctx, "clean", func(h *handle) error {
		err := t.resumePurge(h)
		if err == nil && h.journal.Length() > 0 {
			err = t.checkpoint(h, nil)
		}
		return err
	})
}

func (s *store) sweep(ctx context.Context, o objects.Sweep) (swept objects.Swept, err error) {
	if _, swept.SizeBefore, err = s.Size(ctx); err != nil {
		return swept, err
	}
	swept.SizeAfter = swept.SizeBefore
	src, err := s.newSource(ctx, "clean", o.Progress)
	if err != nil {
		return swept, err
	}
	defer src.close()
	reach, err := newReachability(src, o)
	if err == nil {
		err = reach.count(&swept)
	}
	if err != nil || o.Dry {
		return swept, err
	}
	c, err := s.compact(src, reach)
	if err == nil {
		err = c.replace()
	}
	c.out.discard()
	if err == nil {
		_, swept.SizeAfter, err = s.Size(ctx)
	}
	return swept, err
}

// compact writes what is kept into a new file.
func (s *store) compact(src *source, reach *reachability) (c *compaction, err error) {
	c = &compaction{src: src, reach: reach, out: newFile{limit: s.mapMost}}
	var version uint64
	err = src.view(func(l *snapshot) (err error) {
		version, err = l.version()
		return err
	})
	if err == nil {
		err = c.out.createBeside(s.path, max(version, formatPacked))
	}
	if err == nil {
		err = c.copyRounds(denseRun)
	}
	if err == nil {
		err = c.verify()
	}
	if err == nil { // what was written while all of that was read
		err = c.copyRounds(0)
	}
	return c, err
}

// replace adds what was written meanwhile, and gives the new file the name of the old one.
func (c *compaction) replace() error {
	src := c.src
	t := src.store
	return t.exclusively(src.ctx, src.op, func(h *handle) error {
		if h.number != src.number {
			return src.replaced()
		}
		if h.journal.Length() > 0 {
			if err := t.checkpoint(h, nil); err != nil {
				return err
			}
		}
		if err := c.copyLast(newSnapshot(h.file, h.now.meta)); err != nil {
			return err
		}
		bound := h.journal.Binding
		bound.Generation, bound.File = bound.Generation+1, bound.File+1
		err := c.out.finish(c.metaNow(bound)...)
		if err == nil {
			err = src.ctx.Err()
		}
		if err == nil {
			_ = h.file.Close() // not every system gives the name of an open file away
			err = os.Rename(c.out.path, t.path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return src.replaced() // another process took the new file for a leftover
		}
		if err != nil {
			return err
		}
		if err := syncDir(dirOf(t.path)); err != nil {
			return err
		}
		h.restartJournal(bound)
		h.acknowledge() // the name is durable: no power failure brings the old file back
		h.journal.Discard()
		return nil
	})
}
