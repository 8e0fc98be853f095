package commit

import (
	"errors"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
)

// fill gives a commit its block, or what is left of it.
func (c *Commit) fill(block content.Block, left *objects.Tombstone) {
	if c.Block, c.Tombstone = block, left; left != nil {
		c.Block = Remains(left, c.Kind)
	}
}

// Remains is what is left of an erased block of a kind.
func Remains(t *objects.Tombstone, k content.Kind) content.Block {
	if b, err := content.Decode(t.Remains); err == nil && b.Kind() == k {
		return b
	}
	return content.EmptyBlock(k)
}

// erased takes the tombstone out of an error that is one.
func erased(err error) (*objects.Tombstone, error) {
	if e := (*objects.PurgedError)(nil); errors.As(err, &e) {
		return &e.Tombstone, nil
	}
	return nil, err
}
