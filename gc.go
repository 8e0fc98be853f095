package tract

import (
	"context"
	"errors"
	"fmt"

	"github.com/tract-vcs/tract/objects"
)

// GC takes away the objects to which no ref leads and none ever did, and packs the
// store closely. What was put at s.Before or later stays, and all that it leads to:
// somebody may be about to name it. With a zero s.Before it only packs. Nothing of a
// damaged store is taken.
func (r *Repo) GC(ctx context.Context, s objects.Sweep) (objects.Swept, error) {
	c, ok := objects.As[objects.Cleaner](r.store)
	if !ok {
		return objects.Swept{}, errors.New("gc: this engine keeps everything")
	}
	got, err := c.Sweep(ctx, s)
	if err != nil {
		return got, fmt.Errorf("gc: %w", err)
	}
	return got, nil
}
