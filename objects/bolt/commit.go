package bolt

import (
	"fmt"
	"os"

	"github.com/tract-vcs/tract/objects"
)

// commit makes a group durable, in the journal or, when it is too large for that, in
// the file. After an error the handle is not used again.
func (s *store) commit(h *handle, g *group) error {
	if len(g.frame.Changes)+len(g.hauled) == 0 {
		return nil // it is all there, and durable
	}
	err := s.samePlace(h)
	if err == nil {
		if h.journal.Length() > journalMost || g.frame.Size() > frameMost || g.hauled != nil {
			err = s.checkpoint(h, g.frame.Changes, g.hauled...)
		} else {
			err = s.append(h, g)
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

// append writes a group into the journal. When the sync fails nobody knows whether it is
// there.
func (s *store) append(h *handle, g *group) error {
	wrote, err := h.journal.Append(g.frame)
	if err != nil {
		if err = s.explain("write", err); wrote {
			err = objects.Unknown(err)
		}
		return err
	}
	h.mem.Add(g.frame.Changes)
	h.acknowledge()
	s.mu.Lock()
	defer s.mu.Unlock()
	h.mark, s.position = h.mem.Mark(), h.journal.Position
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
