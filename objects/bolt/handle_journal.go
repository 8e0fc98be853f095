package bolt

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tract-vcs/tract/objects/bolt/internal/journal"
	"github.com/tract-vcs/tract/objects/bolt/internal/memtable"
	"github.com/tract-vcs/tract/objects/bolt/internal/page"
	"github.com/tract-vcs/tract/safefile"
)

const (
	journalLimit     = 4 << 20   // bytes of frames after which a checkpoint is made
	journalClose     = 512 << 10 // after which one is made when the store is closed
	maxJournalLength = 16 << 20  // beyond which nothing is appended
	maxFrameSize     = 512 << 10 // larger groups are written by a checkpoint at once
)

var journalKey = []byte("journal")

func journalPath(database string) string { return database + "-journal" }

func encodeBinding(b journal.Binding) []byte { return withChecksum(journalKey, b.Encode()) }

func decodeBinding(value []byte) (b journal.Binding, err error) {
	record, err := verifyChecksum(journalKey, value)
	if err != nil {
		return b, err
	}
	return journal.DecodeBinding(record)
}

// binding reads the record that ties the journal to the file.
func (l *snapshot) binding() (journal.Binding, error) {
	value, err := l.get(metaBucket, journalKey)
	if err != nil {
		return journal.Binding{}, err
	}
	return decodeBinding(value)
}

// openJournal opens the journal of a handle and reads the frames that this process has not
// read before: a journal only grows until a checkpoint.
func (s *store) openJournal(h *handle, bound journal.Binding, flags int) error {
	f, err := s.policy.Open(journalPath(s.path), flags, 0)
	if errors.Is(err, os.ErrNotExist) {
		return errors.New("its journal is not there")
	}
	if err != nil {
		return err
	}
	log, err := journal.Open(f, bound)
	if err != nil {
		_ = f.Close()
		return fmt.Errorf("journal: %w", err)
	}
	h.journal = log
	info, err := f.Stat()
	if err != nil {
		return err
	}
	s.loading.Lock()
	defer s.loading.Unlock()
	s.mu.Lock()
	mem := s.mem
	if mem != nil && s.position.Generation == bound.Generation && s.journalInfo != nil && os.SameFile(info, s.journalInfo) {
		log.Position = s.position
	} else {
		mem = memtable.New(len(buckets))
	}
	s.mem, s.journalInfo = nil, info
	s.mu.Unlock()
	acknowledged, err := h.acknowledgedEnd()
	if err == nil {
		err = log.Replay(acknowledged, len(buckets), mem.Add)
	}
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	h.mem, h.mark = mem, mem.Mark()
	if flags == os.O_RDONLY { // a writer gives its memtable back when it has written all that is planned
		s.mu.Lock()
		s.mem, s.position = mem, log.Position
		s.mu.Unlock()
	}
	return nil
}

// acknowledgedEnd returns the end of the acknowledged frames; 0 if the anchor does not say.
func (h *handle) acknowledgedEnd() (int64, error) {
	if h.lock == nil {
		return 0, nil
	}
	end, _, err := h.journal.Acknowledged(h.lock.gate)
	return end, err
}

// syncUnacknowledgedFrames writes and syncs again what the last writer left and did not acknowledge: a batch
// that is repeated writes nothing when it finds its objects and refs, and the anchor may name only durable
// frames.
func (h *handle) syncUnacknowledgedFrames() error {
	from, err := h.acknowledgedEnd()
	if err != nil || from == h.journal.End {
		return err
	}
	if from == 0 { // the last writer may have been killed after a checkpoint
		if err := h.syncFileAndName(); err != nil {
			return err
		}
	}
	if from = max(from, journal.Start); from < h.journal.End {
		if err := h.journal.WriteAgain(from); err != nil {
			return err
		}
	}
	h.writeAnchor()
	return nil
}

// syncFileAndName makes the file and its name durable. The last writer may have been killed after
// a checkpoint or after a rename, or a sync may have failed there: the frames must not be
// overwritten before that. The meta page is written again, since after a failed sync the
// system may consider it written.
func (h *handle) syncFileAndName() error {
	at := int64(h.version.meta.Tx%2)*int64(h.version.meta.PageSize) + page.HeaderSize
	b := make([]byte, page.MetaSize)
	if _, err := h.file.ReadAt(b, at); err != nil {
		return err
	}
	if _, err := h.file.WriteAt(b, at); err != nil {
		return err
	}
	return errors.Join(h.file.Sync(), safefile.SyncFolder(filepath.Dir(h.file.Name())))
}

// writeAnchor writes the anchor. If that fails, only the check for lost frames is weaker.
func (h *handle) writeAnchor() { _, _ = h.lock.gate.WriteAt(h.journal.EncodeAnchor(), 0) }

// restartJournal begins the next generation of the journal, of which nothing is written.
func (h *handle) restartJournal(bound journal.Binding) {
	h.journal.Position = journal.StartOf(bound)
	h.mem, h.mark = h.mem.NewSameSize(), 0
}
