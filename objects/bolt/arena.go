package bolt

import (
	"github.com/tract-vcs/tract/internal/hugepage"
	packs "github.com/tract-vcs/tract/internal/pack"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/objects/bolt/internal/page"
)

// arena is memory for what is read in one snapshot, reused for the next. A nil arena allocates
// each piece.
type arena struct {
	pieces page.Arena
	tables packs.Arena
	list   []objects.Object
}

func (a *arena) reset() {
	a.pieces.Reset()
	a.list = a.list[:0]
	a.tables.Reset()
}

// pageArena returns the memory for pages and values.
func (a *arena) pageArena() *page.Arena {
	if a == nil {
		return nil
	}
	return &a.pieces
}

func (a *arena) tableArena() *packs.Arena {
	if a == nil {
		return nil
	}
	return &a.tables
}

// newObjectList returns an empty list with the capacity for so many objects.
func (a *arena) newObjectList(capacity int) (empty []objects.Object) {
	return hugepage.Take(&a.list, capacity)[:0]
}
