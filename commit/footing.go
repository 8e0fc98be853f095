package commit

import (
	"fmt"

	"github.com/tract-vcs/tract/objects"
)

// Footing is what the commits upon a commit derive from it: all that must be kept
// of one to check those that follow.
type Footing struct {
	depth  uint64
	mark   objects.ID
	weight Weight
}

// Footing gives what stands upon c.
func (c *Commit) Footing() Footing {
	f := Footing{c.Depth, c.Mark, c.Weight}
	if c.marks() {
		f.mark = c.ID
	}
	return f
}

// CheckDerived says which of the fields that follow from the first parent does not;
// nil for a root.
func (c *Commit) CheckDerived(parent *Footing) error {
	want := Commit{Op: c.Op, Kind: c.Kind, Size: c.Size, Priority: c.Priority}
	if parent == nil {
		want.derive(nil)
	} else {
		want.derive(&Commit{Op: Append, Depth: parent.depth, Mark: parent.mark, Weight: parent.weight})
	}
	switch {
	case c.Depth != want.Depth:
		return fmt.Errorf("its depth is %d, and must be %d", c.Depth, want.Depth)
	case c.Mark != want.Mark:
		return fmt.Errorf("its mark is %s, and must be %s", c.Mark.Short(), want.Mark.Short())
	case c.Weight != want.Weight:
		return fmt.Errorf("its weights are %v, and must be %v", c.Weight, want.Weight)
	}
	return nil
}

// ContentSize gives the bytes of the content record that an object is, or stands for
// as a list of chunks.
func ContentSize(o objects.Object) (int64, error) {
	if o.Kind != objects.KindList {
		return int64(len(o.Data)), nil
	}
	size, err := listSize(o)
	return int64(size), err
}
