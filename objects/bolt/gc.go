package bolt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/journal"
	"github.com/tract-vcs/tract/safefile"
)

// Sweep is objects.Maintainer. It writes what is kept into a new file while others use the
// store, and takes the lock only to add what they have written meanwhile and to give the
// new file the name of the old one. If it is interrupted before that, the store is as it
// was.
func (s *store) Sweep(ctx context.Context, o objects.Sweep) (swept objects.Swept, err error) {
	if !o.Dry && s.readOnly {
		return swept, fmt.Errorf("clean store %s: %w", s.path, objects.ErrReadOnly)
	}
	for range maxTries {
		if swept, err = s.sweep(ctx, o); !errors.Is(err, errReplaced) {
			break
		}
	}
	return swept, s.explain("clean", err)
}

func (s *store) sweep(ctx context.Context, o objects.Sweep) (swept objects.Swept, err error) {
	c := &gc{}
	defer c.close()
	if !o.Dry {
		if err := c.begin(ctx, s); err != nil {
			return swept, err
		}
	}
	if _, swept.SizeBefore, err = s.Size(ctx); err != nil {
		return swept, err
	}
	swept.SizeAfter = swept.SizeBefore
	marks, err := c.mark(ctx, s, o)
	if err == nil {
		err = marks.countSwept(&swept)
	}
	if err != nil || o.Dry {
		return swept, err
	}
	if err = runInOrder(func() error { return c.copyAndVerify(marks) }, c.replace); err == nil {
		_, swept.SizeAfter, err = s.Size(ctx)
	}
	return swept, err
}

// gc is one sweep.
type gc struct {
	src    *source
	out    newFile
	copier *copier
}

// begin removes leftovers, whose room the new file needs, writes the journal into the store's
// file, so that what it has gets an age, and creates the new file. The store is locked
// meanwhile, and the new file from then on: nobody takes it for a leftover.
func (c *gc) begin(ctx context.Context, s *store) error {
	t := s.withOwnHandles()
	return t.withExclusiveHandle(ctx, "clean", func(h *handle) error {
		removeLeftovers(t.path, false)
		if err := t.resumePurge(h); err != nil {
			return err
		}
		if err := t.flushJournal(h); err != nil {
			return err
		}
		c.out.repack = true
		return c.out.create(t, t.path, journal.Binding{Generation: 1})
	})
}

// mark finds out what is kept.
func (c *gc) mark(ctx context.Context, s *store, o objects.Sweep) (*marks, error) {
	src, err := s.newSource(ctx, "clean", o.Progress)
	if err != nil {
		return nil, err
	}
	c.src, src.withJournal = src, o.Dry
	var ages []packAge
	err = src.view(func(l *snapshot) (err error) {
		ages, err = l.packAges()
		return err
	})
	if err != nil {
		return nil, err
	}
	return findKept(src, o.Keep, o.Before, packBefore(ages, o.Before))
}

// copyAndVerify writes what is kept into the new file and reads it back.
func (c *gc) copyAndVerify(m *marks) error {
	c.copier = &copier{src: c.src, out: &c.out, marks: m}
	return runInOrder(
		c.copier.copyRounds, c.out.indexAndSync, func() error { return checkNewFile(c.out.path, c.copier.kept) },
		c.copier.copyRounds, c.out.indexAndSync) // what was written while all of that was read
}

// replace adds what was written meanwhile, and gives the new file the name of the old one.
func (c *gc) replace() error {
	src := c.src
	t := src.store
	return t.withExclusiveHandle(src.ctx, src.op, func(h *handle) error {
		if h.fileNumber != src.fileNumber {
			return src.replacedError()
		}
		if err := t.flushJournal(h); err != nil {
			return err
		}
		src.lockedSnapshot = newSnapshot(h.file, h.version.meta)
		if err := c.copier.copyRound(); err != nil {
			return err
		}
		bound := h.journal.Binding
		bound.Generation, bound.File = bound.Generation+1, bound.File+1
		meta := []journal.Change{setKey(metaBucket, journalKey, encodeBinding(bound))}
		if c.out.lastPack > 0 { // the ages of the packs begin anew
			meta = append(meta, setKey(metaBucket, agesKey, encodeAges([]packAge{{c.out.lastPack, uint64(max(time.Now().UnixMilli(), 0))}})))
		}
		err := runInOrder(func() error { return c.out.finish(meta...) }, src.ctx.Err, func() error {
			_ = h.file.Close() // not every system gives the name of an open file away
			return os.Rename(c.out.path, t.path)
		})
		if errors.Is(err, fs.ErrNotExist) {
			return src.replacedError()
		}
		if err == nil {
			err = safefile.SyncFolder(filepath.Dir(t.path))
		}
		if err != nil {
			return err
		}
		h.restartJournal(bound)
		h.writeAnchor() // the name is durable: no power failure brings the old file back
		h.journal.Discard()
		return nil
	})
}

func (c *gc) close() {
	if c.src != nil {
		c.src.close()
	}
	c.out.discard()
}
