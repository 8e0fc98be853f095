package tract

import (
	"context"
	"errors"
	"fmt"

	"github.com/tract-vcs/tract/objects"
)

// Backup copies the store as it is at one moment into a new folder, which is a store
// itself, and then looks through all of the copy as [Fsck] does. Others may use the
// store meanwhile. The folder is there only when the copy is sound; a copy that is not
// is an [objects.ErrCorrupt]. progress may be nil.
func (r *Repo) Backup(ctx context.Context, folder string, progress func(done, total int64)) (*Health, error) {
	c, ok := objects.As[objects.Copier](r.store)
	if !ok {
		return nil, errors.New("backup: this engine cannot copy itself")
	}
	var health *Health
	err := inNewFolder(folder, func(dir string) error {
		half := func(from int64) func(done, total int64) {
			if progress == nil {
				return nil
			}
			return func(done, total int64) { progress(from*total+done, 2*total) }
		}
		err := c.Copy(ctx, dir, half(0))
		if err == nil {
			health, err = Fsck(ctx, dir, half(1))
		}
		if err == nil && !health.Sound() {
			err = &objects.CorruptError{Cause: fmt.Errorf("%s: %s", health.firstHarm().Where, health.firstHarm().What)}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("backup to %s: %w", folder, err)
	}
	return health, nil
}

// firstHarm is the first damage that is not harmless.
func (h *Health) firstHarm() Damage {
	for _, d := range h.Damages {
		if !d.Harmless {
			return d
		}
	}
	return Damage{}
}
