package maintain

import (
	"context"
	"errors"
	"fmt"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/objects"
)

// GC removes the objects that no ref leads to or ever led to, and repacks the store. Objects that
// were put at s.Before or later stay, with everything that they link to, because a ref to them may
// be about to be written. With a zero s.Before it only repacks. It removes nothing from a damaged
// store. When objects were removed, GC also removes the committed exchanges that recorders keep in
// the store's folder, because they may repeat the content of removed objects.
func GC(ctx context.Context, repo *tract.Repo, s objects.Sweep) (objects.Swept, error) {
	c, ok := objects.As[objects.Maintainer](repo.Store())
	if !ok {
		return objects.Swept{}, errors.New("gc: this engine cannot remove objects")
	}
	got, err := c.Sweep(ctx, s)
	if err == nil && !s.Dry && got.Removed > 0 {
		err = removeCommittedExchangesFromSpools(ctx, repo.Store(), nil)
	}
	if err != nil {
		return got, fmt.Errorf("gc: %w", err)
	}
	return got, nil
}
