package compile

import (
	"errors"
	"testing"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/internal/canonical"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// claim puts a commit in the place of the tip that is as the tip is, but says that its
// content has another size.
func (s *story) claim(size uint64) {
	s.t.Helper()
	c := s.tip
	var r canonical.Record
	links := uint64(1)
	canonical.Number(&r, 1, &c.Op, 256)
	canonical.Number(&r, 2, &c.Kind, 256)
	canonical.Number(&r, 3, &c.Role, 256)
	r.Uint(5, &size)
	r.Hash(6, (*[32]byte)(&c.Target))
	r.Time(8, &c.Time)
	r.Uint(11, &c.Depth)
	r.Uint(12, &links)
	o := objects.New(objects.KindCommit, c.Parents, []objects.ID{c.ContentID}, r.Bytes())
	if err := s.store.Apply(s.t.Context(), objects.Batch{Put: []objects.Object{o}}); err != nil {
		s.t.Fatal(err)
	}
	var err error
	if s.tip, err = commit.Parse(o); err != nil {
		s.t.Fatal(err)
	}
}

// TestCommitMayClaimAnySize: a commit of somebody else may say of its words that they
// are longer than anything. They do not count less for it than what is long.
func TestCommitMayClaimAnySize(t *testing.T) {
	for _, size := range []uint64{1 << 31, 1<<33 + 8, 3 << 33, 1<<62 - 1} {
		for _, s := range []*story{newStory(t).tell("u=user:q"), newStory(t).tell("u=user:q").edit("u", "p")} {
			s.claim(size)
			p := s.compile(Options{})
			if n := p.Entries[0].Tokens; n < 1<<28 || p.Tokens.Effective < 1<<28 {
				t.Errorf("%d bytes of an %s are %d tokens, %d of the prompt", size, s.tip.Op, n, p.Tokens.Effective)
			}
			if _, err := Chain(t.Context(), s.store, s.tip.ID, Options{Budget: 1000}); !errors.As(err, new(*priority.OverBudgetError)) {
				t.Errorf("%d bytes of an %s are within a budget of 1000 tokens: %v", size, s.tip.Op, err)
			}
		}
	}
}
