package compile

import (
	"time"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// PurgedPlaceholder is sent in place of a tool result whose content was purged. A provider
// refuses a call without a result; without both, the model would not know that it had called.
const PurgedPlaceholder = "[purged]"

// WhyPurged returns the reason for leaving out a block whose content was purged.
func WhyPurged(t *objects.Tombstone) priority.Why {
	why := "purged " + t.Time.Format(time.DateOnly)
	if t.Why != "" {
		why += ": " + t.Why
	}
	return priority.Why(why)
}

// Tombstone returns the tombstone of the content that would be sent for the entry; nil when that
// was not purged, or was not loaded.
func (e *Entry) Tombstone() *objects.Tombstone {
	extra := e.extraOrZero()
	if extra.tombstone == nil && extra.editedBy.IsZero() {
		return extra.ownTombstone // it was loaded later, with Load
	}
	return extra.tombstone
}

// tombstoneOf returns the tombstone of the content that would be sent for an entry: of its last
// edit, or its own. It is nil when that content was not purged or not loaded.
func (h *history) tombstoneOf(e *Entry) *objects.Tombstone {
	if edit := h.editOf(e); edit != nil {
		return edit.Tombstone
	}
	return e.extraOrZero().ownTombstone
}

// leaveOutPurgedExceptResults leaves out the entries whose content was purged. Tool results are
// kept: a placeholder is sent for them.
func (h *history) leaveOutPurgedExceptResults() {
	if !h.purged {
		return
	}
	for i := range h.entries {
		e := &h.entries[i]
		left := h.tombstoneOf(e)
		if left == nil || !e.AddsBlock() {
			continue
		}
		e.ensureExtra().tombstone = left
		switch {
		case !e.InPrompt:
		case e.Kind == content.KindToolResult:
			e.setReason(WhyPurged(left))
		default:
			e.leaveOut(WhyPurged(left))
		}
	}
}

// FirstPurged returns the first entry that was sent, according to the flags of a manifest, and
// whose content was purged after that; nil: there is none.
func (p *Prompt) FirstPurged(sent []bool) *Entry {
	for i := range p.Entries {
		if i < len(sent) && sent[i] && p.Entries[i].Tombstone() != nil {
			return &p.Entries[i]
		}
	}
	return nil
}

// estimatedTokens returns the estimated tokens of the content that is sent, which may be the
// placeholder.
func (e *Entry) estimatedTokens() int {
	if e.InPrompt && e.Tombstone() != nil {
		return min(int(e.Tokens), Estimate(int64(len(PurgedPlaceholder))))
	}
	return int(e.Tokens)
}
