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

// Cover is what a summary stands for in its range.
type Cover uint8

// The covers. Their numbers are in records and never change.
const (
	CoverAll       Cover = iota
	CoverDialogue        // thoughts stay as they are
	CoverReasoning       // thoughts only
	coverEnd
)

var coverNames = [...]string{"all", "dialogue", "reasoning"}

// String is the name of the cover.
func (c Cover) String() string {
	if c < coverEnd {
		return coverNames[c]
	}
	return fmt.Sprintf("cover(%d)", uint8(c))
}

// MarshalText writes the name of the cover.
func (c Cover) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// Commit is one step of a history. Links that it does not have are zero.
type Commit struct {
	ID      objects.ID
	Parents []objects.ID
	Content objects.ID // the block; of an Annotate, a note with the reason
	Origin  objects.ID // where it came from, shared by the blocks of a message
	Label   objects.ID // words that a person put on it

	Op       Op
	Kind     content.Kind
	Role     content.Role
	Index    int            // of the block in its message; 0 begins one
	Size     int64          // bytes of the content's record
	Target   objects.ID     // of an Edit or Annotate: the commit it speaks of; of a Compress: the last of its range
	First    objects.ID     // of a Compress: the first of its range
	Covers   Cover          // of a Compress: what of its range it stands for
	Priority priority.Level // given by a person, else Unset
	Time     time.Time      // UTC, whole milliseconds; a claim, never an order
	Author   string
	Key      string // idempotency key

	// Derived from the parents when the commit is written, and checked by fsck.
	Depth  uint64     // commits before this one, on the longest line
	Mark   objects.ID // nearest ancestor by first parent that says more than a plain Append: see Marks
	Weight Weight     // of all blocks up to and with this one

	Spot objects.Spot // where the content was seen to lie, if the walk that gave c knew: a help for Load

	// What the links name; Load and LoadAll fill them in.
	Block content.Block // nil until it is loaded, and when there is no content; of erased words, what is left
	From  *Origin       // nil until it is loaded, and when there is no origin
	Words Label

	Erased *objects.Tombstone // of the content, when its words were erased; found when it is loaded
}

// Weight is running sums over the blocks of a history, in bytes of prompt
// (content.Kind.Weight). Edits do not change them: a commit with edits or
// annotations before it has a Mark that says so. Of a Merge it is that of the
// first parent and of each block that the second brings.
type Weight struct {
	All  int64 // every block
	Sent int64 // those that are sent when nobody says otherwise
}

// Parent is the first parent, zero for a root.
func (c *Commit) Parent() objects.ID {
	if len(c.Parents) == 0 {
		return objects.ID{}
	}
	return c.Parents[0]
}

// Second is the second parent, zero unless c is a Merge.
func (c *Commit) Second() objects.ID {
	if len(c.Parents) < 2 {
		return objects.ID{}
	}
	return c.Parents[1]
}

// Says tells whether c adds words of its own to a prompt: a block, or a summary.
func (c *Commit) Says() bool { return c.Op == Append || c.Op == Compress }

// BeginsTurn tells whether a turn begins at c: the first block of a user message
// that is not only tool results.
func (c *Commit) BeginsTurn() bool {
	return c.Op == Append && c.Role == content.RoleUser && c.Index == 0
}

// Marks tells whether what follows c must know of it to compile a prompt, however
// little of the history goes in: it is no append, a system block, or pinned.
func (c *Commit) Marks() bool {
	return c.Op != Append || c.Kind == content.KindSystem || c.Priority == priority.Pinned
}

// levelAlone is the priority of the commit when nobody annotates it.
func (c *Commit) levelAlone() priority.Level {
	if c.Priority != priority.Unset {
		return c.Priority
	}
	return c.Kind.Traits().Level
}

// derive fills in what follows from the parent, nil for a root, and of a merge
// from the second parent and what it brings.
func (c *Commit) derive(parent, second *Commit, brings []*Commit) {
	if parent != nil {
		c.Depth = parent.Depth + 1
		c.Weight = parent.Weight
		c.Mark = parent.Mark
		if parent.Marks() {
			c.Mark = parent.ID
		}
	}
	if second != nil {
		c.Depth = max(c.Depth, second.Depth+1)
	}
	for _, b := range brings {
		own := b.Own()
		c.Weight.All += own.All
		c.Weight.Sent += own.Sent
	}
	own := c.Own()
	c.Weight.All += own.All
	c.Weight.Sent += own.Sent
}

// Own is what c alone weighs.
func (c *Commit) Own() (w Weight) {
	if c.Op != Append {
		return w
	}
	w.All = c.Kind.Weight(c.Size)
	if c.levelAlone() != priority.Skip {
		w.Sent = w.All
	}
	return w
}

// CheckDerived says what of c does not follow from its parents: the first, nil
// for a root, and of a merge the second and what it brings (see [Brings]).
func (c *Commit) CheckDerived(parent, second *Commit, brings []*Commit) error {
	want := *c
	want.Depth, want.Mark, want.Weight = 0, objects.ID{}, Weight{}
	want.derive(parent, second, brings)
	wrong := ""
	switch {
	case want.Depth != c.Depth:
		wrong = fmt.Sprintf("depth is %d, want %d", c.Depth, want.Depth)
	case want.Mark != c.Mark:
		wrong = fmt.Sprintf("mark is %s, want %s", c.Mark.Short(), want.Mark.Short())
	case want.Weight != c.Weight:
		wrong = fmt.Sprintf("weight is %+v, want %+v", c.Weight, want.Weight)
	default:
		return nil
	}
	return &objects.CorruptError{ID: c.ID, Cause: fmt.Errorf("commit record: %s", wrong)}
}
