package maintain

import (
	"context"
	"errors"
	"fmt"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/objects"
)

// BackupOptions are the options of [Backup] and [BackupTo].
type BackupOptions struct {
	Progress func(done, total int64)
}

// Backup copies a snapshot of the store into a new folder, which is a store itself, and then
// checks the copy like [Fsck]. Other processes may use the store meanwhile. The folder exists
// only when the copy is intact: a damaged copy is removed, and the error is an
// [objects.ErrCorrupt]. A store on a server is copied into an embedded one.
func Backup(ctx context.Context, repo *tract.Repo, folder string, o BackupOptions) (*FsckResult, error) {
	c, ok := objects.As[objects.Maintainer](repo.Store())
	if !ok {
		return nil, errors.New("backup: this engine cannot copy a store")
	}
	var result *FsckResult
	err := createFolderAtomically(folder, func(dir string) error {
		err := c.Copy(ctx, dir, halfProgress(o, 0))
		if errors.Is(err, errors.ErrUnsupported) {
			err = copyIntactStore(ctx, repo.Store(), dir, halfProgress(o, 0))
		}
		if err == nil {
			result, err = checkCopy(ctx, dir, o)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("backup to %s: %w", folder, err)
	}
	return result, nil
}
