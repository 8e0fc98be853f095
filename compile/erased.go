package compile

import (
	"time"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// Tombstone is what a model is sent in the place of a tool result whose words were
// erased. The call would be refused without a result, and without both the model
// would think that it never called.
const PurgedPlaceholder = "[erased]"

// WhyPurged is the reason of a block that is not sent because its words were erased.
func WhyPurged(t *objects.Tombstone) priority.Why {
	why := "pruned " + t.Time.Format(time.DateOnly)
	if t.Why != "" {
		why += ": " + t.Why
	}
	return priority.Why(why)
}

// Tombstone is the tombstone of what the entry would say; nil when its words are there,
// or were not needed.
func (e *Entry) Tombstone() *objects.Tombstone {
	switch {
	case e.rare == nil:
		return nil
	case e.rare.erased == nil && e.rare.edit.IsZero():
		return e.rare.left // it was loaded later, to be looked at
	}
	return e.rare.erased
}

// left is the tombstone of what stands for an entry, as far as that was loaded.
func (h *history) left(e *Entry) *objects.Tombstone {
	if edit := h.edit(e); edit != nil {
		return edit.Tombstone
	}
	if e.rare == nil {
		return nil
	}
	return e.rare.left
}

// leaveErased takes the entries out whose words are gone, but for results of tools:
// a placeholder is sent for them.
func (h *history) leaveErased() {
	if !h.erased {
		return
	}
	for i := range h.entries {
		e := &h.entries[i]
		left := h.left(e)
		if left == nil || !e.AddsBlock() {
			continue
		}
		e.few().erased = left
		switch {
		case !e.Sent:
		case e.Kind == content.KindToolResult:
			e.because(WhyPurged(left))
		default:
			e.leaveOut(WhyPurged(left))
		}
	}
}

// FirstPurged is the first entry that was sent, as the flags of a manifest say, and whose words
// are erased; nil: none is.
func (p *Prompt) FirstPurged(sent []bool) *Entry {
	for i := range p.Entries {
		if i < len(sent) && sent[i] && p.Entries[i].Tombstone() != nil {
			return &p.Entries[i]
		}
	}
	return nil
}

// estimate is that of what an entry says: of erased words, if it is sent all the same, of
// the placeholder.
func (e *Entry) estimate() int {
	if e.Sent && e.Tombstone() != nil {
		return min(int(e.Tokens), Estimate(int64(len(PurgedPlaceholder))))
	}
	return int(e.Tokens)
}
