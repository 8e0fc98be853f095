package tract

import (
	"context"
	"fmt"
	"iter"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/history"
	"github.com/tract-vcs/tract/objects"
)

// Trace is one thought of a model, as it was committed.
type Trace struct {
	Commit   *commit.Commit // as Show gives it
	Block    content.Reasoning
	Turn     int   // number of its turn, with [Numbered]
	Estimate int   // of its tokens, as a prompt counts them; see [Repo.Scale]
	Reported int64 // its share, by size, of the tokens that the response reported for reasoning; 0: it reported none

	damaged error // its words, or what it links to
}

// Session is the branch that the thought was committed on; empty when that is not
// known.
func (t *Trace) Session() string {
	if t.Commit.From == nil {
		return ""
	}
	return t.Commit.From.Session
}

// Model is who thought; empty when that is not known.
func (t *Trace) Model() string {
	if t.Commit.From == nil {
		return ""
	}
	return t.Commit.From.Model
}

// tracePage is how many thoughts are read at once.
const tracePage = 64

// Traces yields thoughts, newest first: of the history of a revision, or of all
// branches, tags and replies that could not land when rev is empty. Each comes
// once, however many histories have it. It reads as it goes, so that the newest
// are there at once. A *[DamagedError] comes with its thought, without what cannot be
// read of it; any other error is the last element.
func (r *Repo) Traces(ctx context.Context, rev string, opts ...Option) iter.Seq2[*Trace, error] {
	return func(yield func(*Trace, error) bool) {
		tips, turns, err := r.numbered(ctx, rev, opts)
		if err != nil {
			yield(nil, fmt.Errorf("traces: %w", err))
			return
		}
		for t, err := range r.traced(ctx, history.NewestFirst(ctx, r.store, tips)) {
			if t != nil {
				t.Turn = turns[t.Commit.ID]
			}
			if err != nil {
				err = fmt.Errorf("traces: %w", err)
			}
			if !yield(t, err) {
				return
			}
		}
	}
}

// numbered is the tips of a revision, of all refs when there is none, and the turns of all
// that they reach if an option asks for them.
func (r *Repo) numbered(ctx context.Context, rev string, opts []Option) (tips []objects.ID, turns map[objects.ID]int, err error) {
	c, err := r.call(opts)
	if err != nil {
		return nil, nil, err
	}
	var revs []string
	if rev != "" {
		revs = append(revs, rev)
	}
	if tips, err = r.tips(ctx, revs...); err == nil && c.numbered {
		turns, err = history.Turns(ctx, r.store, tips)
	}
	return tips, turns, err
}

// traced finds the thoughts among commits. The thoughts of one reply are read
// together, for they share what it cost.
func (r *Repo) traced(ctx context.Context, commits iter.Seq2[*commit.Commit, error]) iter.Seq2[*Trace, error] {
	return func(yield func(*Trace, error) bool) {
		var page []*commit.Commit
		for c, err := range commits {
			if err != nil {
				if r.yieldThoughts(ctx, page, yield) {
					yield(nil, err)
				}
				return
			}
			if c.Op != commit.Append || c.Kind != content.KindReasoning {
				continue
			}
			if len(page) >= tracePage && page[len(page)-1].Origin != c.Origin {
				if !r.yieldThoughts(ctx, page, yield) {
					return
				}
				page = nil
			}
			page = append(page, c)
		}
		r.yieldThoughts(ctx, page, yield)
	}
}

// yieldThoughts tells whether more are wanted.
func (r *Repo) yieldThoughts(ctx context.Context, page []*commit.Commit, yield func(*Trace, error) bool) (more bool) {
	list, err := r.loadThoughts(ctx, page)
	if err != nil {
		yield(nil, err)
		return false
	}
	for _, t := range list {
		if !yield(t, t.damaged) {
			return false
		}
	}
	return true
}

func (r *Repo) loadThoughts(ctx context.Context, page []*commit.Commit) ([]*Trace, error) {
	damaged, err := r.loadEach(ctx, page)
	if err != nil {
		return nil, err
	}
	sizes := map[objects.ID]int64{} // of the thoughts of each reply
	list := make([]*Trace, 0, len(page))
	for i, c := range page {
		t := &Trace{Commit: c, Estimate: compile.Estimate(c.Kind.Weight(c.Size))}
		if damaged != nil {
			t.damaged = damaged[i]
		}
		var ok bool
		if t.Block, ok = c.Block.(content.Reasoning); !ok && t.damaged == nil {
			return nil, &objects.CorruptError{ID: c.ID, Cause: fmt.Errorf("a %s in the place of a thought", c.Kind)}
		}
		sizes[c.Origin] += t.size()
		list = append(list, t)
	}
	before := map[objects.ID]int64{}
	for _, t := range list {
		if t.Commit.From == nil {
			continue
		}
		told, of := t.Commit.From.Usage.Reasoning, t.Commit.Origin
		from := before[of]
		before[of] += t.size()
		t.Reported = told*before[of]/sizes[of] - told*from/sizes[of] // so that shares add up
	}
	return list, nil
}

// size is how long a thought is, or was; of one that only its provider can read, how
// long its seal.
func (t *Trace) size() int64 {
	if t.Commit.Erased != nil || t.Commit.Block == nil {
		return max(t.Commit.Size, 1)
	}
	if text := t.Block.String(); text != "" {
		return int64(len(text))
	}
	return max(int64(len(t.Block.Form().Seal.Data)), 1)
}
