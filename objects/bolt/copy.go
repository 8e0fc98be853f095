package bolt

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/tract-vcs/tract/objects/bolt/internal/journal"
	"github.com/tract-vcs/tract/safefile"
)

// copyStep is how much is copied at a time.
const copyStep = 1 << 20

// Copy is objects.Maintainer. It copies the pages as they lie, the meta pages as they
// were at the beginning, the journal up to then, and makes an anchor.
func (s *store) Copy(ctx context.Context, dir string, progress func(done, total int64)) error {
	return s.steadily(ctx, "back up", progress, func(h *steady) error {
		if err := errors.Join(h.metaErr, h.journalErr); err != nil {
			return err
		}
		path := filepath.Join(dir, fileName)
		if err := h.copyFile(path); err != nil {
			return err
		}
		if err := writeFile(journalPath(path), func(f *os.File) error { _, err := f.Write(h.journal); return err }); err != nil {
			return err
		}
		a, err := h.anchorOf()
		if err == nil {
			err = writeFile(gatePath(path), func(f *os.File) error { _, err := f.Write(a.Encode()); return err })
		}
		if err == nil {
			err = writeFile(turnPath(path), func(*os.File) error { return nil })
		}
		if err != nil {
			return err
		}
		return syncDir(dir)
	})
}

// anchorOf is the anchor of what is copied: as far as the journal is whole.
func (h *steady) anchorOf() (journal.Anchor, error) {
	value, err := newLook(h, h.meta).get(metaBucket, journalKey)
	if err != nil {
		return journal.Anchor{}, err
	}
	bound, err := decodeBinding(value)
	if err != nil {
		return journal.Anchor{}, err
	}
	_, end, err := replay(h.journal, bound)
	return end.Anchor(), err
}

// copyFile copies the pages below the high-water mark: those beyond it are in no use.
func (h *steady) copyFile(path string) error {
	return writeFile(path, func(f *os.File) error {
		end := int64(h.meta.HighWater) * int64(h.meta.PageSize)
		b := make([]byte, copyStep)
		for at := int64(0); at < end; at += int64(len(b)) {
			n, err := h.ReadAt(b[:min(int64(len(b)), end-at)], at)
			if err != nil && (!errors.Is(err, io.EOF) || at+int64(n) < end) {
				return err
			}
			if at == 0 {
				copy(b, h.heads)
			}
			if _, err := f.WriteAt(b[:n], at); err != nil {
				return err
			}
		}
		return nil
	})
}

// writeFile writes a file that only its owner may read, and makes it durable.
func writeFile(path string, write func(f *os.File) error) error {
	f, err := safefile.Policy{}.Open(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	err = f.Chmod(0o600) // the umask may have taken even the owner's bits
	if err == nil {
		err = write(f)
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
