package compile

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"sync/atomic"
	"testing"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
)

// interrupted is a store in which something happens when the first walk has begun, and
// when it has come to its end.
type interrupted struct {
	objects.Store
	objects.Bulk
	begun, ended func() error
	loads        chan struct{} // gets one for each piece that was loaded ahead
}

func (i *interrupted) Line(ctx context.Context, tip objects.ID, limit int) iter.Seq2[objects.Run, error] {
	return func(yield func(objects.Run, error) bool) {
		begun, ended := i.begun, i.ended
		i.begun, i.ended = nil, nil
		for run, err := range i.Bulk.Line(ctx, tip, limit) {
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
			yield(objects.Run{}, err)
		}
	}
}

func (i *interrupted) Load(ctx context.Context, w objects.Wanted) ([]int, error) {
	rest, err := i.Bulk.Load(ctx, w)
	if w.Room != nil && i.loads != nil {
		i.loads <- struct{}{}
	}
	return rest, err
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
		r.begun = func() error {
			_, err := Chain(t.Context(), r, other.ID, Options{})
			return err
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

// TestWhatIsErasedMeanwhileIsNotSent erases what was loaded ahead before the walk is over.
func TestWhatIsErasedMeanwhileIsNotSent(t *testing.T) {
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
	r := &interrupted{Store: s, Bulk: s.(objects.Bulk), loads: make(chan struct{}, len(h.all))}
	r.ended = func() error {
		<-r.loads // the newest pack
		_, err := objects.Erase(t.Context(), s, []objects.Tombstone{tombstoneOf(gone)}, nil)
		return err
	}
	for range 2 {
		p, err := eager(t, r, h.tip.ID, Options{})
		if err != nil {
			t.Fatal(err)
		}
		e := p.Entries[p.Index(gone.ID)]
		if e.Sent || e.Erased() == nil || e.Block.String() != "" {
			t.Errorf("what was erased is sent: %+v", e)
		}
		for _, m := range p.Messages {
			for _, b := range m.Blocks {
				if b.String() == gone.Block.String() {
					t.Errorf("the words of %s are sent", gone.ID.Short())
				}
			}
		}
	}
}

// TestACompileThatFailsLeavesNobodyReading lets the walk fail while somebody loads, who
// ends no sooner than he is told to, and not at once.
func TestACompileThatFailsLeavesNobodyReading(t *testing.T) {
	h := &told{}
	for i := range 60 {
		h.write(t, commit.Draft{Block: content.User(fmt.Sprint("q", i))})
		h.write(t, commit.Draft{Block: content.Assistant(fmt.Sprint("a", i))})
	}
	s := h.keep(t)
	r := &stubborn{interrupted: interrupted{Store: s, Bulk: s.(objects.Bulk)}, begun: make(chan struct{}, len(h.all))}
	broken := errors.New("the disk is gone")
	r.ended = func() error {
		<-r.begun
		return broken
	}
	if _, err := eager(t, r, h.tip.ID, Options{}); !errors.Is(err, broken) {
		t.Errorf("the walk failed, and the compile says %v", err)
	}
	if n := r.reading.Load(); n != 0 {
		t.Errorf("%d read still", n)
	}
}

// stubborn is a store whose disk is slow.
type stubborn struct {
	interrupted
	begun   chan struct{}
	reading atomic.Int32
}

func (s *stubborn) Load(ctx context.Context, w objects.Wanted) ([]int, error) {
	if w.Room == nil {
		return s.Bulk.Load(ctx, w)
	}
	s.reading.Add(1)
	defer s.reading.Add(-1)
	s.begun <- struct{}{}
	<-ctx.Done()
	return s.Bulk.Load(context.WithoutCancel(ctx), w)
}
