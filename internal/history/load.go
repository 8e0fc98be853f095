package history

import (
	"cmp"
	"context"
	"errors"
	"iter"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/objects"
)

// IsDamaged reports whether an error is for an object that is corrupt or missing. A missing object
// is damage too, because an object with links to it is never removed.
func IsDamaged(err error) bool {
	return errors.Is(err, objects.ErrCorrupt) || errors.Is(err, objects.ErrNotFound)
}

// loader loads commits: commit.LoadAll, or commit.Load for the content alone.
type loader func(context.Context, objects.Reader, ...*commit.Commit) error

// Load reads the content, the origin and the label of one commit. Of a damaged commit it
// reads what it can, and returns a *[commit.DamagedError].
func Load(ctx context.Context, r objects.Reader, c *commit.Commit) error {
	return loadOne(ctx, r, c, commit.LoadAll)
}

// loadOne is Load with a loader: damage is a *[commit.DamagedError].
func loadOne(ctx context.Context, r objects.Reader, c *commit.Commit, loadAll loader) error {
	err := commit.Load(ctx, r, c) // LoadAll stops at damage, and reads the content last
	if err != nil && !IsDamaged(err) {
		return err
	}
	if err = loadAll(ctx, r, c); IsDamaged(err) {
		return &commit.DamagedError{Commit: c.ID, Cause: err}
	}
	return err
}

// LoadEach reads commits as Load does. damaged has their errors, by index; it is nil when
// all are intact.
func LoadEach(ctx context.Context, r objects.Reader, commits []*commit.Commit) (damaged []error, err error) {
	return loadEach(ctx, r, commits, commit.LoadAll)
}

// loadEach reads all commits at once, or one by one when something is damaged.
func loadEach(ctx context.Context, r objects.Reader, commits []*commit.Commit, loadAll loader) (damaged []error, err error) {
	if err := loadAll(ctx, r, commits...); !IsDamaged(err) {
		return nil, err
	}
	damaged = make([]error, len(commits))
	for i, c := range commits {
		damaged[i] = loadOne(ctx, r, c, loadAll)
		if damaged[i] != nil && !errors.As(damaged[i], new(*commit.DamagedError)) {
			return nil, damaged[i]
		}
	}
	return damaged, nil
}

// LoadAll is LoadEach, and returns the first error of a commit.
func LoadAll(ctx context.Context, r objects.Reader, commits []*commit.Commit) error {
	damaged, err := LoadEach(ctx, r, commits)
	return cmp.Or(append([]error{err}, damaged...)...)
}

// The most commits in a page of LoadSeq, and the commits in its first page when the caller
// does not say.
const (
	loadPage  = 128
	firstPage = 16
)

// LoadSeq reads commits as Load does, a page at a time. A damaged commit comes with its
// error; any other error is the last element. The first page has `first` commits, or a few when
// first is 0, and later pages are longer: a caller that needs few commits does not wait for more.
func LoadSeq(ctx context.Context, r objects.Reader, commits iter.Seq2[*commit.Commit, error], first int) iter.Seq2[*commit.Commit, error] {
	return loadInPages(ctx, r, commits, first, commit.LoadAll)
}

// ContentSeq is LoadSeq for the content alone.
func ContentSeq(ctx context.Context, r objects.Reader, commits iter.Seq2[*commit.Commit, error]) iter.Seq2[*commit.Commit, error] {
	return loadInPages(ctx, r, commits, 0, commit.Load)
}

// loadInPages is LoadSeq with a loader.
func loadInPages(ctx context.Context, r objects.Reader, commits iter.Seq2[*commit.Commit, error], firstSize int, loadAll loader) iter.Seq2[*commit.Commit, error] {
	return func(yield func(*commit.Commit, error) bool) {
		size := min(cmp.Or(firstSize, firstPage), loadPage)
		page := make([]*commit.Commit, 0, size)
		flush := func() bool {
			damaged, err := loadEach(ctx, r, page, loadAll)
			more := yieldPage(page, damaged, err, yield)
			page, size = page[:0], min(2*size, loadPage)
			return more
		}
		for c, err := range commits {
			if err != nil {
				if flush() {
					yield(nil, err)
				}
				return
			}
			if page = append(page, c); len(page) == size && !flush() {
				return
			}
		}
		flush()
	}
}

// yieldPage yields the commits of a page, each with its damage, or the error of reading the
// page. It reports whether the caller wants more.
func yieldPage(page []*commit.Commit, damaged []error, err error, yield func(*commit.Commit, error) bool) bool {
	if err != nil {
		yield(nil, err)
		return false
	}
	for i, c := range page {
		if damaged != nil {
			err = damaged[i]
		}
		if !yield(c, err) {
			return false
		}
	}
	return true
}
