package compile

import (
	"context"
	"fmt"
	"iter"
	"reflect"
	"testing"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
)

// interrupted is a store in which something happens when the first walk has begun.
type interrupted struct {
	objects.Store
	objects.Bulk
	now func()
}

func (i *interrupted) Line(ctx context.Context, tip objects.ID, limit int) iter.Seq2[objects.Run, error] {
	return func(yield func(objects.Run, error) bool) {
		for run, err := range i.Bulk.Line(ctx, tip, limit) {
			if now := i.now; now != nil {
				i.now = nil
				now()
			}
			if !yield(run, err) {
				return
			}
		}
	}
}

func (i *interrupted) Memo() *objects.Memo { return i.Store.(objects.Rememberer).Memo() }

// TestAPromptIsRememberedMeanwhile compiles what a history begins with, or a fork of it,
// while all of it is compiled: that goes no further then than what is remembered.
func TestAPromptIsRememberedMeanwhile(t *testing.T) {
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
		r := &interrupted{Store: s, Bulk: s.(objects.Bulk)}
		r.now = func() {
			if _, err := Chain(t.Context(), r, other.ID, Options{}); err != nil {
				t.Error(err)
			}
		}
		got, err := eager(t, r, tip.ID, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if len(recall(s, Options{}).bases) != 1 {
			t.Error("it did not go on from what was remembered")
		}
		want, err := chain(t.Context(), &loads{Reader: s, Bulk: r.Bulk}, tip.ID, Options{}, nil, maxScan)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%v, %s", err, difference(got, want))
		}
	}
}
