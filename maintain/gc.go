package maintain

import (
	"context"
	"errors"
	"fmt"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/objects"
)

// GC removes the objects to which no ref leads and none ever did, and repacks the store.
// Objects that were put at s.Before or later stay, with everything that they lead to: a
// ref to them may be about to be written. With a zero s.Before it only repacks. Nothing of
// a damaged store is removed. When objects were removed, the exchanges go that recorders keep
// after their commit in the store's folder: they may repeat what was removed.
func GC(ctx context.Context, repo *tract.Repo, s objects.Sweep) (objects.Swept, error) {
	c, ok := objects.As[objects.Maintainer](repo.Store())
	if !ok {
		return objects.Swept{}, errors.New("gc: this engine cannot remove objects")
	}
	got, err := c.Sweep(ctx, s)
	if err == nil && !s.Dry && got.Removed > 0 {
		err = clearSpools(ctx, repo.Store(), nil)
	}
	if err != nil {
		return got, fmt.Errorf("gc: %w", err)
	}
	return got, nil
}
