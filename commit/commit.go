// Package commit chains blocks of content into a history that never changes.
//
// A [Commit] holds one block, or says something about an earlier one; its first
// parent is what came before. [Write] makes the objects of new commits, [Walk]
// follows a history back, [Load] brings the blocks. Commits are values made by
// this package: what Write did not make, Parse refuses.
//
// A commit's header is small and holds no free text, so that a history can be
// walked without reading what was said, and words can be taken away without
// breaking the chain.
package commit

import (
	"fmt"
	"time"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// Op is what a commit does to the history before it.
type Op uint8

// The operations. Their numbers are in records and never change.
const (
	Append   Op = 1 + iota // adds a block
	Edit                   // replaces the content of Target from here on
	Annotate               // gives Target a priority from here on
	Compress               // a summary that stands for First to Target from here on
	Merge                  // brings what the second parent has and the first has not
	opEnd
)

var opNames = [...]string{"", "append", "edit", "annotate", "compress", "merge"}

// String is the name of the operation.
func (o Op) String() string {
	if o > 0 && o < opEnd {
		return opNames[o]
	}
	return fmt.Sprintf("op(%d)", uint8(o))
}

// SummaryScope is what a summary stands for in its range.
type SummaryScope uint8

// The covers. Their numbers are in records and never change.
const (
	ScopeAll       SummaryScope = iota
	ScopeDialogue               // thoughts stay as they are
	ScopeReasoning              // thoughts only
	coverEnd
)

var coverNames = [...]string{"all", "dialogue", "reasoning"}

// String is the name of the cover.
func (c SummaryScope) String() string {
	if c < coverEnd {
		return coverNames[c]
	}
	return fmt.Sprintf("cover(%d)", uint8(c))
}

// MarshalText writes the name of the cover.
func (c SummaryScope) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// Commit is one step of a history. Links that it does not have are zero.
type Commit struct {
	ID        objects.ID
	Parents   []objects.ID
	ContentID objects.ID // the block; of an Annotate, a note with the reason
	OriginID  objects.ID // where it came from, shared by the blocks of a message
	LabelID   objects.ID // words that a person put on it

	Op       Op
	Kind     content.Kind
	Role     content.Role
	Index    int            // of the block in its message; 0 begins one
	Size     int64          // bytes of the content's record
	Target   objects.ID     // of an Edit or Annotate: the commit it speaks of; of a Compress: the last of its range
	First    objects.ID     // of a Compress: the first of its range
	Scope    SummaryScope   // of a Compress: what of its range it stands for
	Priority priority.Level // given by a person, else Unset
	Time     time.Time      // UTC, whole milliseconds; a claim, never an order
	Author   string
	Key      Key // idempotency key

	Depth uint64 // commits before this one, on the longest line; fsck checks it

	Locator objects.Locator // where the content was seen to lie, if the walk that gave c knew: a help for Load

	// What the links name; Load and LoadAll fill them in.
	Block  content.Block // nil until it is loaded, and when there is no content; of erased words, what is left
	Origin *Origin       // nil until it is loaded, and when there is no origin
	Label  Label

	Tombstone *objects.Tombstone // of the content, when its words were erased; found when it is loaded
}

// Parent is the first parent, zero for a root.
func (c *Commit) Parent() objects.ID {
	if len(c.Parents) == 0 {
		return objects.ID{}
	}
	return c.Parents[0]
}

// SecondParent is the second parent, zero unless c is a Merge.
func (c *Commit) SecondParent() objects.ID {
	if len(c.Parents) < 2 {
		return objects.ID{}
	}
	return c.Parents[1]
}

// AddsBlock tells whether c adds words of its own to a prompt: a block, or a summary.
func (c *Commit) AddsBlock() bool { return c.Op == Append || c.Op == Compress }

// BeginsTurn tells whether a turn begins at c: the first block of a user message
// that is not only tool results.
func (c *Commit) BeginsTurn() bool {
	return c.Op == Append && c.Role == content.RoleUser && c.Index == 0
}
