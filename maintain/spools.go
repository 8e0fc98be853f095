package maintain

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tract-vcs/tract/internal/spool"
	"github.com/tract-vcs/tract/objects"
)

// removeCommittedExchangesFromSpools removes the committed exchanges that recorders keep in the
// folder "spool" next to the files of a store, and in other folders.
func removeCommittedExchangesFromSpools(ctx context.Context, s objects.Store, otherSpools []string) error {
	var err error
	for _, folder := range otherSpools {
		err = errors.Join(err, spool.Clear(folder))
	}
	in, ok := objects.As[objects.Maintainer](s)
	if !ok {
		return err
	}
	path, _, bad := in.Size(ctx)
	switch {
	case errors.Is(bad, errors.ErrUnsupported):
		return err // the store is in memory
	case bad != nil:
		return errors.Join(err, bad)
	}
	switch info, bad := os.Stat(path); {
	case errors.Is(bad, fs.ErrNotExist), bad == nil && !info.Mode().IsRegular():
		return err // the store has no files
	case bad != nil:
		return errors.Join(err, bad)
	}
	return errors.Join(err, spool.Clear(filepath.Join(filepath.Dir(path), "spool")))
}
