package maintain

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/objects"
)

// BackupTo copies a snapshot of the store into the store at url, which may have another engine,
// and then checks the copy like [Fsck]. It creates the target when it is missing; an existing
// target must have no refs and no ref log. Other processes may use the source meanwhile. The refs
// are written last: an interrupted BackupTo leaves a store without refs, which the next BackupTo
// completes.
func BackupTo(ctx context.Context, repo *tract.Repo, url string, o BackupOptions) (*FsckResult, error) {
	result, err := backupToEmpty(ctx, repo.Store(), url, o)
	if err != nil {
		return nil, fmt.Errorf("backup: %w", err)
	}
	return result, nil
}

// backupToEmpty is BackupTo for a store.
func backupToEmpty(ctx context.Context, source objects.Store, url string, o BackupOptions) (*FsckResult, error) {
	if err := copyIntactStore(ctx, source, url, halfProgress(o, 0)); err != nil {
		return nil, err
	}
	return checkCopy(ctx, url, o)
}

// halfProgress returns a progress function for one half of a backup: index 0 is the copy, 1 the check.
func halfProgress(o BackupOptions, index int64) func(done, total int64) {
	if o.Progress == nil {
		return nil
	}
	return func(done, total int64) { o.Progress(index*total+done, 2*total) }
}

// checkCopy checks a copy, and returns an [objects.CorruptError] for a damaged one.
func checkCopy(ctx context.Context, url string, o BackupOptions) (*FsckResult, error) {
	result, err := Fsck(ctx, url, FsckOptions{Progress: halfProgress(o, 1)})
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(result.Damages, func(d Damage) bool { return !d.Harmless }); i >= 0 {
		return nil, &objects.CorruptError{Cause: fmt.Errorf("%s: %s", result.Damages[i].Where, result.Damages[i].What)}
	}
	return result, nil
}

// copyIntactStore copies all objects, the ref log and the refs of a store into the one at url. It
// fails if the source is damaged, or if the target has refs or a ref log.
func copyIntactStore(ctx context.Context, source objects.Store, url string, progress func(done, total int64)) (err error) {
	target, err := objects.Open(ctx, url, objects.Options{Create: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	refs, err := target.Refs(ctx, objects.RefQuery{Limit: 1})
	if err != nil {
		return err
	}
	entries, err := target.Log(ctx, "", 0, 1)
	if err != nil {
		return err
	}
	if len(refs) > 0 || len(entries) > 0 {
		return fmt.Errorf("the target has refs: %w", objects.ErrExists)
	}
	w := &recovery{ctx: ctx, target: target}
	a := w.auditCallbacks()
	a.Progress = progress
	if err := auditAnyStore(ctx, source, a); err != nil {
		return err
	}
	for _, d := range w.result.Damages {
		if !d.Harmless {
			return &objects.CorruptError{ID: d.ID, Cause: fmt.Errorf("%s: %s", d.Where, d.What)}
		}
	}
	return w.finish()
}
