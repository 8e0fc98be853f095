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

// Entry says what became of one commit. There is one for each of a long history, so
// that it holds what most have, and what few have apart.
type Entry struct {
	ID      objects.ID
	Content objects.ID    // what it links to; zero of a merge
	Block   content.Block // nil when it was not needed; see Load
	origin  *objects.ID   // what the collector follows stands together: it goes over all entries
	rare    *rare         // nil: it has nothing of that
	Turn    int32         // 0 is what comes before the first user message
	Tokens  int32         // estimated by its size alone; Prompt.Rows has what it counts
	Index   int32
	Size    int32 // bytes of the content's record

	Op       commit.Op
	Kind     content.Kind
	Role     content.Role
	Priority priority.Level // given with the commit
	Level    priority.Level
	Sent     bool

	why     why
	place   place           // of what is not where it usually is
	message int32           // counts the messages of the history
	weight  int32           // bytes of prompt that Tokens is the estimate of
	spot    objects.Locator // of the content
}

// place says of an entry what hardly any has. A byte for each would make all of them
// longer by a word.
type place uint8

const (
	moved      place = 1 << iota // it is sent in the place of another
	apart                        // its parent is not the entry before it
	brought                      // by a merge
	counted                      // a prompt of any policy has it; budgets and tool calls without results apart
	inToolTurn                   // it is reasoning, and its turn has tool calls
)

// why is the place of a reason in reasons, or rareWhy.
type why uint8

// reasons are those that most entries have one of.
var reasons = [...]priority.Why{
	"", priority.WhyDefault, priority.WhyOpenTurn, priority.WhyToolTurn, priority.WhyIncluded, priority.WhyStripped, "annotated", whyBudget,
}

const (
	whyBudget = priority.Why("budget")
	rareWhy   = why(len(reasons))
)

// rare is what few entries have.
type rare struct {
	speaks       *commit.Commit
	why          priority.Why
	edit, hidden objects.ID
	left         *objects.Tombstone // of its own words
	erased       *objects.Tombstone // of what it would say
	holds        *Entry             // of a named system block: what is sent in its place
	ahead        []*Entry           // summaries that are sent before it
	sentIn       int32              // of a summary: how many turns away it is sent
}

// Change is the commit, when it is no append but says something about others; else nil.
func (e *Entry) Change() (c *commit.Commit) {
	if e.rare != nil {
		c = e.rare.speaks
	}
	return c
}

// Why is the rule that decided its level, or that left it out.
func (e *Entry) Why() priority.Why {
	if e.why == rareWhy {
		return e.rare.why
	}
	return reasons[e.why]
}

func (e *Entry) because(reason priority.Why) {
	for i, usual := range reasons {
		if usual == reason {
			e.why = why(i)
			return
		}
	}
	e.why, e.few().why = rareWhy, reason
}

// Origin is where it came from; zero: nobody said.
func (e *Entry) Origin() (id objects.ID) {
	if e.origin != nil {
		id = *e.origin
	}
	return id
}

// EditedBy is the commit whose content stands for it; zero: its own does.
func (e *Entry) EditedBy() (id objects.ID) {
	if e.rare != nil {
		id = e.rare.edit
	}
	return id
}

// SummarizedBy is the summary that stands for it; zero: none does.
func (e *Entry) SummarizedBy() (id objects.ID) {
	if e.rare != nil {
		id = e.rare.hidden
	}
	return id
}

// Message is the number of the message of the history that it belongs to.
func (e *Entry) Message() int32 { return e.message }

// AddsBlock tells whether it adds words of its own to a prompt: a block, or a summary.
func (e *Entry) AddsBlock() bool { return e.Op == commit.Append || e.Op == commit.Compress }

func (e *Entry) beginsTurn() bool {
	return e.Op == commit.Append && e.Role == content.RoleUser && e.Index == 0
}

// ofReply tells whether it is of a reply that may say what it cost.
func (e *Entry) ofReply() bool {
	return e.origin != nil && e.Op == commit.Append && (e.Role == content.RoleAssistant || e.Role == content.NoRole)
}

func (e *Entry) isThought() bool {
	return e.Op == commit.Append && e.Kind == content.KindReasoning
}

// sentTurn is the turn in which it is sent.
func (e *Entry) sentTurn() int32 {
	if e.rare != nil {
		return e.Turn + e.rare.sentIn
	}
	return e.Turn
}

func (e *Entry) few() *rare {
	if e.rare == nil {
		e.rare = &rare{}
	}
	return e.rare
}

// take fills a zero entry from its commit, which need not last. after is the entry
// behind it, which mostly has the same origin; nil: none.
func (e *Entry) take(c *commit.Commit, after *Entry) {
	e.ID, e.Content, e.spot, e.Block = c.ID, c.ContentID, c.Locator, c.Block
	e.Op, e.Kind, e.Role, e.Priority = c.Op, c.Kind, c.Role, c.Priority
	e.Index, e.Size = int32(c.Index), int32(min(c.Size, math.MaxInt32)) // a commit may claim anything
	switch {
	case c.OriginID.IsZero():
	case after != nil && after.origin != nil && *after.origin == c.OriginID:
		e.origin = after.origin
	default:
		id := c.OriginID
		e.origin = &id
	}
	if c.Op != commit.Append {
		e.few().speaks = c.Clone()
	}
}

// undecided is an entry without words as it was before anything was decided.
func (e *Entry) undecided() Entry {
	return Entry{
		ID: e.ID, Content: e.Content, Op: e.Op, Kind: e.Kind, Role: e.Role, Priority: e.Priority,
		Index: e.Index, Size: e.Size, spot: e.spot, origin: e.origin, place: e.place & (apart | brought),
	}
}

// leaveOut takes an entry out of the prompt for a reason of its own.
func (e *Entry) leaveOut(why priority.Why) {
	e.Sent = false
	e.because(why)
}

// comeBack takes an entry into the prompt after all.
func (e *Entry) comeBack(why priority.Why) {
	e.Sent = true
	if e.because(why); e.rare != nil {
		e.rare.hidden = objects.ID{}
	}
}

// Load reads the own blocks of entries that have none yet. Those of a prompt are to be
// copied before: prompts share them.
func Load(ctx context.Context, r objects.Reader, entries ...*Entry) error {
	_, err := load(ctx, r, entries)
	return err
}

// load is Load, and tells whether something was erased.
func load(ctx context.Context, r objects.Reader, entries []*Entry) (erased bool, err error) {
	n := 0
	for _, e := range entries {
		if e.Block == nil && !e.Content.IsZero() {
			n++
		}
	}
	if n < len(entries) {
		rest := make([]*Entry, 0, n)
		for _, e := range entries {
			if e.Block == nil && !e.Content.IsZero() {
				rest = append(rest, e)
			}
		}
		entries = rest
	}
	var gone atomic.Bool
	err = commit.LoadBlocks(ctx, r, commit.LoadRequest{
		Len: n,
		Content: func(i int) (commit, content objects.ID, spot objects.Locator) {
			e := entries[i]
			return e.ID, e.Content, e.spot
		},
		Put: func(i int, b content.Block, left *objects.Tombstone) {
			e := entries[i]
			if e.Block = b; left != nil {
				few := *e.few()
				few.left = left
				e.Block, e.rare = commit.Remains(left, e.Kind), &few
				gone.Store(true)
			}
		},
	})
	return gone.Load(), err
}
