package compile

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"testing"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
)

// interrupted is a store in which something happens when the first walk has begun, and
// when it has come to its end.
type interrupted struct {
	objects.Store
	objects.BulkReader
	begun, ended func() error
}

func (i *interrupted) ChainRuns(ctx context.Context, tip objects.ID, limit int) iter.Seq2[objects.CommitRun, error] {
	return func(yield func(objects.CommitRun, error) bool) {
		begun, ended := i.begun, i.ended
		i.begun, i.ended = nil, nil
		for run, err := range i.BulkReader.ChainRuns(ctx, tip, limit) {
			if begun != nil {
				err = errors.Join(err, begun())
				begun = nil
			}
			if !yield(run, err) {
				return
			}
		}
		if ended == nil {
			return
		}
		if err := ended(); err != nil {
			yield(objects.CommitRun{}, err)
		}
	}
}

func (i *interrupted) Cache() *objects.Cache { return i.Store.(objects.Cacher).Cache() }

// TestPromptIsCachedDuringAWalk compiles the beginning of a history, or a fork of it, while all
// of it is compiled: neither prompt changes the other.
func TestPromptIsCachedDuringAWalk(t *testing.T) {
	h := &told{}
	for i := range 120 {
		h.write(t, commit.Draft{Block: content.User(fmt.Sprint("q", i))})
		h.write(t, commit.Draft{Block: content.Assistant(fmt.Sprint("a", i))})
	}
	tip := h.tip
	h.tip = h.all[79]
	h.write(t, commit.Draft{Block: content.User("something else")})
	for _, other := range []*commit.Commit{h.all[80], h.all[81], h.tip} {
		s := h.keep(t)
		if _, err := commit.Read(t.Context(), s, tip.ID); err != nil { // it notices that the file is another one
			t.Fatal(err)
		}
		r := &interrupted{Store: s, BulkReader: s.(objects.BulkReader)}
		r.begun = func() error {
			_, err := Chain(t.Context(), r, other.ID, Options{})
			return err
		}
		got, err := Chain(t.Context(), r, tip.ID, Options{})
		if err != nil {
			t.Fatal(err)
		}
		want, err := Chain(t.Context(), struct {
			objects.Reader
			objects.BulkReader
		}{s, r.BulkReader}, tip.ID, Options{})
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%v, %s", err, difference(got, want))
		}
		if got, err = Chain(t.Context(), r, tip.ID, Options{}); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("again: %v, %s", err, difference(got, want))
		}
	}
}

// TestContentPurgedDuringAWalkIsNotSent purges the content of a commit after the walk has passed it.
func TestContentPurgedDuringAWalkIsNotSent(t *testing.T) {
	h := &told{}
	for i := range 60 {
		h.write(t, commit.Draft{Block: content.User(fmt.Sprint("q", i))})
		h.write(t, commit.Draft{Block: content.Assistant(fmt.Sprint("a", i))})
	}
	gone := h.all[len(h.all)-9]
	s := h.keep(t)
	if _, err := commit.Read(t.Context(), s, h.tip.ID); err != nil { // it notices that the file is another one
		t.Fatal(err)
	}
	r := &interrupted{Store: s, BulkReader: s.(objects.BulkReader)}
	r.ended = func() error {
		_, err := objects.Purge(t.Context(), s, []objects.Tombstone{tombstoneOf(gone)}, nil)
		return err
	}
	for range 2 {
		p, err := Chain(t.Context(), r, h.tip.ID, Options{})
		if err != nil {
			t.Fatal(err)
		}
		e := p.Entries[p.IndexOf(gone.ID)]
		if e.InPrompt || e.Tombstone() == nil || e.Block.String() != "" {
			t.Errorf("purged content is sent: %+v", e)
		}
		for _, m := range p.Messages {
			for _, b := range m.Blocks {
				if b.String() == gone.Block.String() {
					t.Errorf("the content of %s is sent", gone.ID.Short())
				}
			}
		}
	}
}
