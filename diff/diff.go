// Package diff compares two prompts, two texts and two histories.
//
// For most uses call [Prompts]: it returns which blocks both prompts have, which
// only one has, and which changed, in the order of the prompts. [Texts]
// compares the texts of a changed block, by lines or by words. [Histories] returns
// the commits that only one side has.
//
// Everything here ends in bounded time: two sides that are too large to be compared
// in that time differ as a whole. No byte is lost or changed, valid UTF-8 or not.
package diff

import (
	"fmt"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
)

// Op is the difference between the first side, A, and the second, B.
type Op uint8

// The operations.
const (
	Same   Op = iota // on both sides
	Remove           // on A only
	Add              // on B only
	Change           // on both, with another text; never of a Span
)

var opNames = [...]string{"same", "remove", "add", "change"}

// String returns the name of the operation.
func (o Op) String() string {
	if int(o) < len(opNames) {
		return opNames[o]
	}
	return fmt.Sprintf("op(%d)", uint8(o))
}

// MarshalText writes the name of the operation.
func (o Op) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// Diff is the comparison of two prompts.
type Diff struct {
	A, B  objects.ID // the heads
	Items []Item     // in the order of the prompts; blocks only on A come before those only on B
	Stat  Stat
}

// Equal reports whether both prompts have the same blocks.
func (d *Diff) Equal() bool { return d.Stat.Added+d.Stat.Removed+d.Stat.Changed == 0 }

// Item is one block, on one side or both.
type Item struct {
	Op   Op
	A, B *Block // nil where the side does not have it
}

// Block is one block of a prompt.
type Block struct {
	Commit  objects.ID    `json:"commit"`
	Edit    objects.ID    `json:"edit,omitzero"` // the commit whose content stands for it; zero: its own
	Role    content.Role  `json:"role"`
	Kind    content.Kind  `json:"kind"`
	Tokens  int           `json:"tokens"` // estimated
	Content content.Block `json:"-"`

	roleAndContent roleAndContent
}

// roleAndContent is equal for blocks of the same role and content.
type roleAndContent struct {
	role    content.Role
	content objects.ID
}

// Stat counts the blocks of a comparison.
type Stat struct {
	Same    int `json:"same"`
	Added   int `json:"added"`
	Removed int `json:"removed"`
	Changed int `json:"changed"`
	TokensA int `json:"tokens_a"` // of the whole prompts, estimated
	TokensB int `json:"tokens_b"`
}

func (s *Stat) count(it Item) {
	switch it.Op {
	case Same:
		s.Same++
	case Add:
		s.Added++
	case Remove:
		s.Removed++
	case Change:
		s.Changed++
	}
	if it.A != nil {
		s.TokensA += it.A.Tokens
	}
	if it.B != nil {
		s.TokensB += it.B.Tokens
	}
}

// History is two histories compared by first parents.
type History struct {
	Base         objects.ID       // the last commit that both have; zero when they share none
	OnlyA, OnlyB []*commit.Commit // newest first
}

// Histories compares two lines of commits, each newest first, as a log returns
// them: to their roots, or to the commit before which both stop.
func Histories(a, b []*commit.Commit) *History {
	onA := make(map[objects.ID]int, len(a))
	for i, c := range a {
		onA[c.ID] = i
	}
	for j, c := range b {
		if i, both := onA[c.ID]; both {
			return &History{Base: c.ID, OnlyA: a[:i], OnlyB: b[:j]}
		}
	}
	h := &History{OnlyA: a, OnlyB: b}
	beforeA, beforeB := parentOfOldest(a), parentOfOldest(b)
	switch {
	case len(a) == 0:
		h.Base = beforeB
	case len(b) == 0 || beforeA == beforeB:
		h.Base = beforeA
	}
	return h
}

// parentOfOldest returns the parent of the last of these commits; zero if there are none.
func parentOfOldest(newestFirst []*commit.Commit) objects.ID {
	if len(newestFirst) == 0 {
		return objects.ID{}
	}
	return newestFirst[len(newestFirst)-1].Parent()
}
