package compile

import (
	"context"
	"math"
	"sync/atomic"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// Entry is one commit of a history with the decision about it. Histories are long, so an Entry is
// small: the fields that only few entries need are in extra.
type Entry struct {
	ID      objects.ID
	Content objects.ID    // the id of the content; zero of a merge
	Block   content.Block // nil when it was not read; see Load
	origin  *objects.ID   // the pointers are next to each other, so that the garbage collector reads less
	extra   *entryExtra   // nil: the zero entryExtra
	Turn    int32         // number of the turn; 0 is the part before the first user message
	Tokens  int32         // estimated from the size alone; Prompt.EntryTokens returns the scaled tokens
	Index   int32
	Size    int32 // bytes of the content's record

	Op       commit.Op
	Kind     content.Kind
	Role     content.Role
	Priority priority.Level // given with the commit
	Level    priority.Level // decided
	InPrompt bool           // a request can still omit the block; check warns of that

	reason      reasonCode
	flags       entryFlags
	message     int32           // number of the message of the history
	promptBytes int32           // bytes of the prompt; Tokens is their estimate
	locator     objects.Locator // of the content
}

// entryFlags are flags of an entry.
type entryFlags uint8

const (
	relocated  entryFlags = 1 << iota // the entry is sent in the place of another entry
	gapBefore                         // its parent is not the entry before it
	merged                            // a merge brought the entry
	counted                           // the entry is sent under any policy, except for budgets and tool calls without results
	inToolTurn                        // the entry is reasoning, and its turn has tool calls
)

// reasonCode is the index of a reason in usualReasons, or otherReason.
type reasonCode uint8

var usualReasons = [...]priority.Why{
	"", priority.WhyDefault, priority.WhyOpenTurn, priority.WhyToolTurn, priority.WhyIncluded, priority.WhyStripped, "annotated", whyBudget,
}

const (
	whyBudget   = priority.Why("budget")
	otherReason = reasonCode(len(usualReasons)) // entryExtra.why
)

// entryExtra has the fields of an entry that only few entries need.
type entryExtra struct {
	change                 *commit.Commit
	why                    priority.Why
	editedBy, summarizedBy objects.ID
	ownTombstone           *objects.Tombstone // of its own content
	tombstone              *objects.Tombstone // of the content that stands for it
	replacement            *Entry             // of a named system block: the entry sent in its place
	summariesBefore        []*Entry           // summaries sent before it
	turnOffset             int32              // of a summary: turns from its own to the one it is sent in
}

// Change returns the commit of an entry that is not an append, such as an edit; else nil.
func (e *Entry) Change() *commit.Commit { return e.extraOrZero().change }

// Why returns the rule that decided the level, or that left the entry out.
func (e *Entry) Why() priority.Why {
	if e.reason == otherReason {
		return e.extra.why
	}
	return usualReasons[e.reason]
}

func (e *Entry) setReason(reason priority.Why) {
	for i, usual := range usualReasons {
		if usual == reason {
			e.reason = reasonCode(i)
			return
		}
	}
	e.reason, e.ensureExtra().why = otherReason, reason
}

// Origin returns the id of the origin; zero: there is none.
func (e *Entry) Origin() (id objects.ID) {
	if e.origin != nil {
		id = *e.origin
	}
	return id
}

// EditedBy returns the edit whose content is sent instead; zero: none.
func (e *Entry) EditedBy() objects.ID { return e.extraOrZero().editedBy }

// SummarizedBy returns the summary that is sent instead; zero: none.
func (e *Entry) SummarizedBy() objects.ID { return e.extraOrZero().summarizedBy }

// Message returns the number of the entry's message in the history.
func (e *Entry) Message() int32 { return e.message }

// AddsBlock reports whether the entry can add a block of its own to a prompt: an appended block or
// a summary.
func (e *Entry) AddsBlock() bool { return e.Op == commit.Append || e.Op == commit.Compress }

func (e *Entry) beginsTurn() bool {
	return e.Op == commit.Append && e.Role == content.RoleUser && e.Index == 0
}

// isPartOfResponse reports whether the entry is part of a response whose origin may have its usage.
func (e *Entry) isPartOfResponse() bool {
	return e.origin != nil && e.Op == commit.Append && (e.Role == content.RoleAssistant || e.Role == content.NoRole)
}

func (e *Entry) isReasoning() bool {
	return e.Op == commit.Append && e.Kind == content.KindReasoning
}

// sentTurn returns the number of the turn in which the entry is sent. For a summary it differs
// from Turn.
func (e *Entry) sentTurn() int32 { return e.Turn + e.extraOrZero().turnOffset }

var zeroExtra entryExtra

// extraOrZero returns the extra fields for reading.
func (e *Entry) extraOrZero() *entryExtra {
	if e.extra == nil {
		return &zeroExtra
	}
	return e.extra
}

// ensureExtra returns the extra fields for writing.
func (e *Entry) ensureExtra() *entryExtra {
	if e.extra == nil {
		e.extra = &entryExtra{}
	}
	return e.extra
}

// setCommit sets a zero entry from its commit, which need not stay valid. reuseOrigin is the origin
// of the entry after it: its memory is shared when both have the same origin. It may be nil.
func (e *Entry) setCommit(c *commit.Commit, reuseOrigin *objects.ID) {
	e.ID, e.Content, e.locator, e.Block = c.ID, c.ContentID, c.Locator, c.Block
	e.Op, e.Kind, e.Role, e.Priority = c.Op, c.Kind, c.Role, c.Priority
	e.Index, e.Size = int32(c.Index), int32(min(c.Size, math.MaxInt32)) // a commit may claim anything
	switch {
	case c.OriginID.IsZero():
	case reuseOrigin != nil && *reuseOrigin == c.OriginID:
		e.origin = reuseOrigin
	default:
		id := c.OriginID
		e.origin = &id
	}
	if c.Op != commit.Append {
		e.ensureExtra().change = c.Clone()
	}
}

// undecidedCopyWithoutBlock returns the entry as it was before anything was decided, without its block.
func (e *Entry) undecidedCopyWithoutBlock() Entry {
	undecided := Entry{
		ID: e.ID, Content: e.Content, Op: e.Op, Kind: e.Kind, Role: e.Role, Priority: e.Priority,
		Index: e.Index, Size: e.Size, locator: e.locator, origin: e.origin, flags: e.flags & (gapBefore | merged),
	}
	if c := e.Change(); c != nil {
		undecided.ensureExtra().change = c
	}
	return undecided
}

// leaveOut leaves an entry out of the prompt, if it is sent.
func (e *Entry) leaveOut(why priority.Why) {
	if e.InPrompt {
		e.InPrompt = false
		e.setReason(why)
	}
}

// putBack sends an entry that was left out before.
func (e *Entry) putBack(why priority.Why) {
	e.InPrompt = true
	e.setReason(why)
	if e.extra != nil {
		e.extra.summarizedBy = objects.ID{}
	}
}

// Load reads the blocks of entries that have none. Entries of a [Prompt] are shared: copy them
// first.
func Load(ctx context.Context, r objects.Reader, entries ...*Entry) error {
	_, err := load(ctx, r, entries)
	return err
}

// load is Load, and reports whether some content is purged.
func load(ctx context.Context, r objects.Reader, entries []*Entry) (purged bool, err error) {
	wanted := make([]*Entry, 0, len(entries))
	for _, e := range entries {
		if e.Block == nil && !e.Content.IsZero() {
			wanted = append(wanted, e)
		}
	}
	var anyPurged atomic.Bool
	err = commit.LoadBlocks(ctx, r, commit.LoadRequest{
		Len: len(wanted),
		Content: func(i int) (commit, content objects.ID, locator objects.Locator) {
			e := wanted[i]
			return e.ID, e.Content, e.locator
		},
		Put: func(i int, b content.Block, t *objects.Tombstone) {
			e := wanted[i]
			e.Block = b
			if t != nil {
				extra := *e.ensureExtra() // a copy: another prompt may share it
				extra.ownTombstone = t
				e.Block, e.extra = commit.Remains(t, e.Kind), &extra
				anyPurged.Store(true)
			}
		},
	})
	return anyPurged.Load(), err
}
