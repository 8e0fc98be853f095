package tract

import (
	"time"

	"github.com/tract-vcs/tract/objects"
)

// RefQuery selects branches or tags.
type RefQuery struct {
	Tags         bool   // list tags, not branches
	Prefix       string // of the names, without refs/heads/ or refs/tags/; empty: all
	Limit        int    // most of them; 0: no limit
	Newest       bool   // last moved first, instead of by name
	Descriptions bool   // of branches, with what [Branch.Describe] said; they are read one by one
}

// RefInfo is one branch or tag.
type RefInfo struct {
	Name        string     // without refs/heads/ or refs/tags/
	Tip         objects.ID // the commit that it is at
	Version     uint64     // grows by one with every move
	Updated     time.Time  // time of the last move
	Description string     // of a branch; empty: there is none, or it was not asked for
}

// ChangeType says how a branch moved.
type ChangeType string

// The types of changes.
const (
	Appended ChangeType = "append" // the old tip is an ancestor of the new one
	Moved    ChangeType = "reset"  // the new tip does not descend from the old one
	Deleted  ChangeType = "delete"
)

// BranchChange is a move of a branch; moves that quickly follow each other may be one change.
type BranchChange struct {
	Type   ChangeType
	Branch string
	Old    objects.ID   // zero: no commits before, as far as the caller has seen
	New    objects.ID   // zero: the branch is deleted
	Added  []objects.ID // of an append: the new commits, oldest first
}
