package commit

import (
	"errors"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
)

// setContent sets the block, or what remains of one that was purged.
func (c *Commit) setContent(block content.Block, t *objects.Tombstone) {
	c.Block, c.Tombstone = block, t
	if t != nil {
		c.Block = Remains(t, c.Kind)
	}
}

// Remains returns what remains of a purged block of a kind: what other blocks know it by.
func Remains(t *objects.Tombstone, k content.Kind) content.Block {
	if b, err := content.Decode(t.Remains); err == nil && b.Kind() == k {
		return b
	}
	return content.EmptyBlock(k)
}

// asTombstone returns the tombstone of a PurgedError, and any other error as it is.
func asTombstone(err error) (*objects.Tombstone, error) {
	if err == nil {
		return nil, nil //nolint:nilnil // neither
	}
	if e := (*objects.PurgedError)(nil); errors.As(err, &e) {
		return &e.Tombstone, nil
	}
	return nil, err
}
