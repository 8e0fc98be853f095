package commit

import (
	"errors"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
)

// fill gives a commit its block, or what is left of it.
func (c *Commit) fill(block content.Block, left *objects.Tombstone) {
	if c.Block, c.Erased = block, left; left == nil {
		return
	}
	if b, err := content.Decode(left.Rest); err == nil && b.Kind() == c.Kind {
		c.Block = b
	} else {
		c.Block = content.Bare(c.Kind)
	}
}

// erased takes the tombstone out of an error that is one.
func erased(err error) (*objects.Tombstone, error) {
	if e, ok := errors.AsType[*objects.ErasedError](err); ok {
		return &e.Tombstone, nil
	}
	return nil, err
}
