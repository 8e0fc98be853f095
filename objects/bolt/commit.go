package bolt

import (
	"fmt"
	"os"

	"github.com/tract-vcs/tract/objects"
)

// change is one key that a transaction writes, or deletes when value is nil.
type change struct {
	bucket     string
	key, value []byte
}

// commit makes a group durable, in the journal or, when it is too large for that, in
// the file. After an error the handle is not used again.
func (s *store) commit(h *handle, g *group) error {
	if len(g.frame.spans)+len(g.hauled) == 0 {
		return nil // it is all there, and durable
	}
	err := s.samePlace(h)
	if err == nil {
		if h.journal.over.length() > journalMost || g.frame.size() > frameMost || g.hauled != nil {
			err = s.checkpoint(h, g.frame.changes(), g.hauled...)
		} else {
			err = s.record(h, g)
		}
	}
	if err != nil {
		h.broken.Store(true)
		return err
	}
	if len(g.moved) > 0 {
		s.mu.Lock()
		s.signalMoved()
		s.mu.Unlock()
	}
	return nil
}

// record writes a group into the journal. When the sync fails nobody knows whether
// it is there.
func (s *store) record(h *handle, g *group) error {
	end, wrote, err := h.journal.append(&g.frame)
	if err != nil {
		if err = s.explain("write", err); wrote {
			err = objects.Unknown(err)
		}
		return err
	}
	over := h.journal.over
	over.add(&g.frame, end, over.seq+1, true)
	h.acknowledge()
	s.mu.Lock()
	defer s.mu.Unlock()
	h.seen = over.now()
	return nil
}

// samePlace tells that the file is still the one that others will open.
func (s *store) samePlace(h *handle) error {
	here, err := os.Stat(s.path)
	if err != nil {
		return err
	}
	beside, err := os.Stat(journalPath(s.path))
	if err != nil {
		return err
	}
	if !os.SameFile(here, h.info) || !os.SameFile(beside, s.journal) {
		return fmt.Errorf("write store %s: another file has taken its place: %w: try again", s.path, objects.ErrUnsafe)
	}
	return nil
}
