// Package commit makes an immutable history of blocks: a chain of commits under their hashes.
//
// A [Commit] adds one block, or changes an earlier one: an edit, an annotation, a summary, a merge.
// Its first parent is what came before. For most uses: [Write] makes the objects of new commits,
// [Walk] follows a history back from its tip, [Load] reads the blocks, [Linearize] puts a history
// with merges in the order of the prompt. [Parse] refuses every record that Write does not make.
//
// The header of a commit is small and holds no free text, so that a history is walked without
// reading its content, and content is purged without breaking the chain.
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
	Merge                  // brings the commits that the second parent has and the first has not
	opEnd
)

var opNames = [...]string{"", "append", "edit", "annotate", "compress", "merge"}

// String returns the name of the operation.
func (o Op) String() string {
	if o > 0 && o < opEnd {
		return opNames[o]
	}
	return fmt.Sprintf("op(%d)", uint8(o))
}

// SummaryScope is what of its range a summary covers.
type SummaryScope uint8

// The scopes. Their numbers are in records and never change.
const (
	ScopeAll       SummaryScope = iota
	ScopeDialogue               // all but reasoning
	ScopeReasoning              // only reasoning
	coverEnd
)

var coverNames = [...]string{"all", "dialogue", "reasoning"}

// String returns the name of the scope.
func (c SummaryScope) String() string {
	if c < coverEnd {
		return coverNames[c]
	}
	return fmt.Sprintf("cover(%d)", uint8(c))
}

// MarshalText returns the name of the scope.
func (c SummaryScope) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// Commit is one commit of a history. Ids of links that it does not have are zero.
type Commit struct {
	ID        objects.ID
	Parents   []objects.ID
	ContentID objects.ID // the block; of an Annotate, a note with the reason
	OriginID  objects.ID // who and what made it; the blocks of a message share it
	LabelID   objects.ID // a note of a person

	Op       Op
	Kind     content.Kind
	Role     content.Role
	Index    int            // of the block in its message; 0 begins one
	Size     int64          // bytes of the content's record
	Target   objects.ID     // of an Edit or Annotate: the commit that it changes; of a Compress: the last of its range
	First    objects.ID     // of a Compress: the first of its range
	Scope    SummaryScope   // of a Compress: what of its range it covers
	Priority priority.Level // given by a person, else Unset
	Time     time.Time      // UTC, whole milliseconds; a claim, never an order
	Author   string
	Key      Key // idempotency key

	Depth uint64 // commits before this one, on the longest line; fsck checks it

	Locator objects.Locator // of the content, if the walk found it; it makes Load faster

	// The linked objects; Load and LoadAll set them.
	Block  content.Block // nil: not loaded, or there is no content; of purged content, what remains
	Origin *Origin       // nil: not loaded, or there is none
	Label  Label

	Tombstone *objects.Tombstone // of purged content; set when that is loaded
}

// Parent returns the first parent, zero for a root.
func (c *Commit) Parent() objects.ID {
	if len(c.Parents) == 0 {
		return objects.ID{}
	}
	return c.Parents[0]
}

// SecondParent returns the second parent, zero unless c is a Merge.
func (c *Commit) SecondParent() objects.ID {
	if len(c.Parents) < 2 {
		return objects.ID{}
	}
	return c.Parents[1]
}

// AddsBlock reports whether c adds a block of its own to a prompt, which may be a summary.
func (c *Commit) AddsBlock() bool { return c.Op == Append || c.Op == Compress }

// BeginsTurn reports whether c is the first block of a user message, with which a turn begins.
func (c *Commit) BeginsTurn() bool {
	return c.Op == Append && c.Role == content.RoleUser && c.Index == 0
}
