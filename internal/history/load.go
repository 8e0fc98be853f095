package history

import (
	"cmp"
	"context"
	"errors"
	"iter"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/objects"
)

// IsDamage reports whether an error says that what a commit links to cannot be read. A
// missing object is damage too: nothing removes an object that something links to.
func IsDamage(err error) bool {
	return errors.Is(err, objects.ErrCorrupt) || errors.Is(err, objects.ErrNotFound)
}

// Load fills in one commit. Of a damaged one it fills in what can be read, and returns a
// *[commit.DamagedError].
func Load(ctx context.Context, r objects.Reader, c *commit.Commit) error {
	err := commit.Load(ctx, r, c) // LoadAll ends where it meets damage, and reads the content last
	if err != nil && !IsDamage(err) {
		return err
	}
	if err = commit.LoadAll(ctx, r, c); IsDamage(err) {
		return &commit.DamagedError{Commit: c.ID, Cause: err}
	}
	return err
}

// LoadEach fills in commits as Load does. The errors in damaged are those of the commits,
// in their places; nil: all are intact.
func LoadEach(ctx context.Context, r objects.Reader, commits []*commit.Commit) (damaged []error, err error) {
	if err := commit.LoadAll(ctx, r, commits...); !IsDamage(err) {
		return nil, err
	}
	damaged = make([]error, len(commits))
	for i, c := range commits {
		damaged[i] = Load(ctx, r, c)
		if damaged[i] != nil && !errors.As(damaged[i], new(*commit.DamagedError)) {
			return nil, damaged[i]
		}
	}
	return damaged, nil
}

// LoadAll is LoadEach with the first error of all.
func LoadAll(ctx context.Context, r objects.Reader, commits []*commit.Commit) error {
	damaged, err := LoadEach(ctx, r, commits)
	return cmp.Or(append([]error{err}, damaged...)...)
}

// Loaded reads loadPage commits at once at most, and firstPage at first unless the caller
// says how many.
const (
	loadPage  = 128
	firstPage = 16
)

// Loaded fills in commits, a page at a time, as Load does. A damaged one comes with its
// error; any other error is the last element. The first page has first commits, or few when
// that is 0, and the next ones are longer: a caller that wants few waits for few.
func Loaded(ctx context.Context, r objects.Reader, commits iter.Seq2[*commit.Commit, error], first int) iter.Seq2[*commit.Commit, error] {
	return func(yield func(*commit.Commit, error) bool) {
		size := min(cmp.Or(first, firstPage), loadPage)
		page := make([]*commit.Commit, 0, size)
		flush := func() bool {
			more := yieldLoaded(ctx, r, page, yield)
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

// yieldLoaded reports whether more are wanted.
func yieldLoaded(ctx context.Context, r objects.Reader, commits []*commit.Commit, yield func(*commit.Commit, error) bool) bool {
	damaged, err := LoadEach(ctx, r, commits)
	if err != nil {
		yield(nil, err)
		return false
	}
	for i, c := range commits {
		if damaged != nil {
			err = damaged[i]
		}
		if !yield(c, err) {
			return false
		}
	}
	return true
}
