package bolt

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/tract-vcs/tract/objects/bolt/internal/compaction"
	"github.com/tract-vcs/tract/objects/bolt/internal/journal"
	"github.com/tract-vcs/tract/safefile"
)

// copyStep is how much is written at a time over what is to go.
const copyStep = 1 << 20

// Copy is objects.Maintainer. It copies the packs one after the other while others write,
// and then, while they wait, what was written since and the journal.
func (s *store) Copy(ctx context.Context, dir string, progress func(done, total int64)) (err error) {
	for range patience {
		if err = s.copyTo(ctx, filepath.Join(dir, fileName), progress); !errors.Is(err, errReplaced) {
			break
		}
	}
	if err == nil {
		err = syncDir(dir)
	}
	return s.explain("back up", err)
}

func (s *store) copyTo(ctx context.Context, path string, progress func(done, total int64)) error {
	src, err := s.newSource(ctx, "back up", progress)
	if err != nil {
		return err
	}
	defer src.close()
	var out newFile
	defer out.discard()
	copier := compaction.New(src, &out, nil)
	if err = out.create(s, path, src.bound); err == nil {
		err = copier.Rounds()
	}
	if err == nil {
		err = out.sync()
	}
	if err != nil {
		return err
	}
	var meta []journal.Change
	var frames []byte
	err = src.view(func(l *snapshot) (err error) {
		src.locked = l
		if err = copier.Round(); err == nil {
			meta, err = l.metaRecords()
		}
		if err == nil {
			frames, err = s.policy.Read(journalPath(s.path), mostJournal)
		}
		return err
	})
	if err == nil {
		err = out.finish(meta...)
	}
	if err != nil {
		return err
	}
	return errors.Join(os.Rename(out.path, path), writeJournal(path, meta, frames))
}

// metaRecords returns the records of the meta bucket but for that of the index.
func (l *snapshot) metaRecords() (list []journal.Change, err error) {
	for _, key := range [][]byte{formatKey, journalKey, agesKey, purgeKey} {
		value, err := l.get(metaBucket, key)
		if err != nil {
			return nil, err
		}
		if value != nil {
			list = append(list, setKey(metaBucket, key, value))
		}
	}
	return list, nil
}

// writeJournal writes the files beside a copy: the journal, and an anchor at its end.
func writeJournal(path string, meta []journal.Change, frames []byte) error {
	var bound journal.Binding
	var err error
	for _, c := range meta {
		if string(c.Key) == string(journalKey) {
			bound, err = decodeBinding(c.Value)
		}
	}
	if err != nil {
		return err
	}
	_, end, err := replay(frames, bound)
	if err != nil {
		return err
	}
	write := func(name string, b []byte) error {
		return writeFile(name, func(f *os.File) error { _, err := f.Write(b); return err })
	}
	return errors.Join(
		write(journalPath(path), frames[:min(end.End, int64(len(frames)))]),
		write(gatePath(path), end.Anchor().Encode()),
		write(turnPath(path), nil))
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
