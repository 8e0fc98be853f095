package bolt

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/tract-vcs/tract/objects/bolt/internal/journal"
	"github.com/tract-vcs/tract/safefile"
)

// Copy is objects.Maintainer. It copies the packs one after the other while others write,
// and then, while they wait, what was written since and the journal.
func (s *store) Copy(ctx context.Context, dir string, progress func(done, total int64)) (err error) {
	for range maxTries {
		if err = s.copyTo(ctx, filepath.Join(dir, fileName), progress); !errors.Is(err, errReplaced) {
			break
		}
	}
	if err == nil {
		err = safefile.SyncFolder(dir)
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
	copier := &copier{src: src, out: &out}
	create := func() error { return out.create(s, path, journal.Binding{Generation: 1}) }
	if err = runInOrder(create, copier.copyRounds, out.indexAndSync); err != nil {
		return err
	}
	var meta []journal.Change
	var bound journal.Binding
	var journalFile []byte
	err = src.view(func(l *snapshot) (err error) {
		src.lockedSnapshot = l
		if err = copier.copyRound(); err == nil {
			meta, bound, err = l.metaRecords()
		}
		if err == nil {
			journalFile, err = s.policy.Read(journalPath(s.path), maxJournalFile)
		}
		return err
	})
	if err == nil {
		err = out.finish(meta...)
	}
	if err != nil {
		return err
	}
	return errors.Join(os.Rename(out.path, path), writeJournalFiles(path, bound, journalFile))
}

// metaRecords returns the records of the meta bucket but for that of the index, and the one that
// ties the journal to the file.
func (l *snapshot) metaRecords() (list []journal.Change, bound journal.Binding, err error) {
	change := func(key, value []byte) (journal.Change, error) {
		return setKey(metaBucket, bytes.Clone(key), value), nil
	}
	for c, err := range decoded(l.ascend(metaBucket, []byte{}), change) {
		if err == nil && bytes.Equal(c.Key, journalKey) {
			bound, err = decodeBinding(c.Value)
		}
		if err != nil {
			return nil, bound, err
		}
		if !bytes.Equal(c.Key, runsKey) {
			list = append(list, c)
		}
	}
	return list, bound, nil
}

// writeJournalFiles writes the files beside a copy: the journal, and an anchor at its end.
func writeJournalFiles(path string, bound journal.Binding, journalFile []byte) error {
	_, end, err := replay(journalFile, bound)
	if err != nil {
		return err
	}
	return errors.Join(
		safefile.Write(journalPath(path), journalFile[:min(end.End, int64(len(journalFile)))], nil),
		safefile.Write(gatePath(path), end.EncodeAnchor(), nil),
		safefile.Write(ticketPath(path), nil, nil))
}
