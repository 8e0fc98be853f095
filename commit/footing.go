package commit

import (
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
	if c.Marks() {
		f.mark = c.ID
	}
	return f
}

// Check says what of c, which is no merge, does not follow from the first parent
// that the footing is of; nil for a root.
func (f *Footing) Check(c *Commit) error {
	if f == nil {
		return c.CheckDerived(nil, nil, nil)
	}
	return c.CheckDerived(&Commit{Op: Append, Depth: f.depth, Mark: f.mark, Weight: f.weight}, nil, nil)
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
