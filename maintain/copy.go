package maintain

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/objects"
)

// BackupTo copies the store as it is at one moment into the store at url, which may be of
// another engine, and then checks the copy as [Fsck] does. It makes the store, which must
// have no refs and no ref log. Other processes may use the source meanwhile. The refs come
// last: what an interrupted BackupTo leaves has none, and the next one completes it.
func BackupTo(ctx context.Context, repo *tract.Repo, url string, o BackupOptions) (*FsckResult, error) {
	result, err := backupTo(ctx, repo.Store(), url, o)
	if err != nil {
		return nil, fmt.Errorf("backup: %w", err)
	}
	return result, nil
}

func backupTo(ctx context.Context, source objects.Store, url string, o BackupOptions) (*FsckResult, error) {
	if err := copyObjects(ctx, source, url, halfOf(o, 0)); err != nil {
		return nil, err
	}
	return checkCopy(ctx, url, o)
}

// halfOf reports the progress of one half of a backup: 0 is the copy, 1 the check.
func halfOf(o BackupOptions, half int64) func(done, total int64) {
	if o.Progress == nil {
		return nil
	}
	return func(done, total int64) { o.Progress(half*total+done, 2*total) }
}

// checkCopy checks a copy. A damaged one is an error.
func checkCopy(ctx context.Context, url string, o BackupOptions) (*FsckResult, error) {
	result, err := Fsck(ctx, url, FsckOptions{Progress: halfOf(o, 1)})
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(result.Damages, func(d Damage) bool { return !d.Harmless }); i >= 0 {
		return nil, &objects.CorruptError{Cause: fmt.Errorf("%s: %s", result.Damages[i].Where, result.Damages[i].What)}
	}
	return result, nil
}

// copyObjects copies a store object by object into the one at url.
func copyObjects(ctx context.Context, source objects.Store, url string, progress func(done, total int64)) error {
	target, err := objects.Open(ctx, url, objects.Options{Create: true})
	if err != nil {
		return err
	}
	w := &recovery{ctx: ctx, target: target}
	err = w.copyFrom(source, progress)
	return errors.Join(err, target.Close())
}

func (w *recovery) copyFrom(source objects.Store, progress func(done, total int64)) error {
	refs, err := w.target.Refs(w.ctx, objects.RefQuery{Limit: 1})
	if err != nil {
		return err
	}
	entries, err := w.target.Log(w.ctx, "", 0, 1)
	if err != nil {
		return err
	}
	if len(refs) > 0 || len(entries) > 0 {
		return fmt.Errorf("the target has refs: %w", objects.ErrExists)
	}
	a := w.audit()
	a.Progress = progress
	if err := audit(w.ctx, source, a); err != nil {
		return err
	}
	for _, d := range w.done.Damages {
		if !d.Harmless {
			return &objects.CorruptError{ID: d.ID, Cause: fmt.Errorf("%s: %s", d.Where, d.What)}
		}
	}
	return w.finish()
}
