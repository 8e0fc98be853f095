package maintain

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/objects"
)

// BackupOptions is how [Backup] reports what it does.
type BackupOptions struct {
	Progress func(done, total int64)
}

// Backup copies the store as it is at one moment into a new folder, which is a store
// itself, and then checks the copy as [Fsck] does. Other processes may use the store
// meanwhile. The folder exists only when the copy is sound: a damaged copy is removed, and
// the error is an [objects.ErrCorrupt].
func Backup(ctx context.Context, repo *tract.Repo, folder string, o BackupOptions) (*FsckResult, error) {
	c, ok := objects.As[objects.Maintainer](repo.Store())
	if !ok {
		return nil, errors.New("backup: this engine cannot copy a store")
	}
	var health *FsckResult
	err := inNewFolder(folder, func(dir string) error {
		half := func(from int64) func(done, total int64) {
			if o.Progress == nil {
				return nil
			}
			return func(done, total int64) { o.Progress(from*total+done, 2*total) }
		}
		err := c.Copy(ctx, dir, half(0))
		if err == nil {
			health, err = Fsck(ctx, dir, FsckOptions{Progress: half(1)})
		}
		if err == nil && !health.OK() {
			first := health.Damages[slices.IndexFunc(health.Damages, func(d Damage) bool { return !d.Harmless })]
			err = &objects.CorruptError{Cause: fmt.Errorf("%s: %s", first.Where, first.What)}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("backup to %s: %w", folder, err)
	}
	return health, nil
}
