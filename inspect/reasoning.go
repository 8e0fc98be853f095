package inspect

import (
	"context"
	"fmt"
	"iter"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/history"
	"github.com/tract-vcs/tract/objects"
)

// ReasoningBlock is one block of a model's reasoning, as it was committed.
type ReasoningBlock struct {
	Commit   *commit.Commit // as Show returns it
	Block    content.Reasoning
	Turn     int   // number of its turn, with ReasoningOptions.Turns
	Estimate int   // estimated tokens, as a prompt counts them; see [Scale]
	Reported int64 // the block's share, by size, of the reasoning tokens that the response reported; 0: it reported none

	damaged error // the error of reading its content, label or origin
}

// Origin returns the origin of the block; empty when it is not known.
func (b *ReasoningBlock) Origin() commit.Origin {
	if b.Commit.Origin == nil {
		return commit.Origin{}
	}
	return *b.Commit.Origin
}

// ReasoningOptions are the options of [Reasoning].
type ReasoningOptions struct {
	Revs  []string // reasoning on the histories of these; nil: all branches, tags and rescue refs
	Turns bool     // number the turns, which takes a walk to the root before the first block
}

// reasoningPage is the number of blocks that are read at once.
const reasoningPage = 64

// Reasoning yields blocks of reasoning, newest first, as it reads them. It yields each block once,
// even when several histories have it. A *[commit.DamagedError] comes with its block, of which the
// damaged parts are missing; any other error is the last element.
func Reasoning(ctx context.Context, repo *tract.Repo, o ReasoningOptions) iter.Seq2[*ReasoningBlock, error] {
	return func(yield func(*ReasoningBlock, error) bool) {
		store := repo.Store()
		tips, turns, err := resolveTipsAndTurns(ctx, repo, o.Revs, o.Turns)
		if err != nil {
			yield(nil, fmt.Errorf("reasoning: %w", err))
			return
		}
		for b, err := range reasoningOf(ctx, store, commit.NewestFirst(ctx, store, tips)) {
			if b != nil {
				b.Turn = turns[b.Commit.ID]
			}
			if err != nil {
				err = fmt.Errorf("reasoning: %w", err)
			}
			if !yield(b, err) {
				return
			}
		}
	}
}

// reasoningOf finds the reasoning among commits. The reasoning of one response is read
// together, because it shares the tokens that the response reported.
func reasoningOf(ctx context.Context, r objects.Reader, commits iter.Seq2[*commit.Commit, error]) iter.Seq2[*ReasoningBlock, error] {
	return func(yield func(*ReasoningBlock, error) bool) {
		var page []*commit.Commit
		for c, err := range commits {
			if err != nil {
				if yieldReasoning(ctx, r, page, yield) {
					yield(nil, err)
				}
				return
			}
			if c.Op != commit.Append || c.Kind != content.KindReasoning {
				continue
			}
			if len(page) >= reasoningPage && page[len(page)-1].OriginID != c.OriginID {
				if !yieldReasoning(ctx, r, page, yield) {
					return
				}
				page = nil
			}
			page = append(page, c)
		}
		yieldReasoning(ctx, r, page, yield)
	}
}

// yieldReasoning yields the reasoning of a page of commits, and reports whether the caller wants
// more.
func yieldReasoning(ctx context.Context, r objects.Reader, page []*commit.Commit, yield func(*ReasoningBlock, error) bool) (more bool) {
	list, err := loadReasoning(ctx, r, page)
	if err != nil {
		yield(nil, err)
		return false
	}
	for _, b := range list {
		if !yield(b, b.damaged) {
			return false
		}
	}
	return true
}

// loadReasoning loads the reasoning of a page of commits.
func loadReasoning(ctx context.Context, r objects.Reader, page []*commit.Commit) ([]*ReasoningBlock, error) {
	damaged, err := history.LoadEach(ctx, r, page)
	if err != nil {
		return nil, err
	}
	sizes := map[objects.ID]int64{} // of the reasoning of each response
	list := make([]*ReasoningBlock, 0, len(page))
	for i, c := range page {
		b := &ReasoningBlock{Commit: c, Estimate: compile.Estimate(c.Kind.PromptBytes(c.Size))}
		if damaged != nil {
			b.damaged = damaged[i]
		}
		var ok bool
		if b.Block, ok = c.Block.(content.Reasoning); !ok && b.damaged == nil {
			return nil, &objects.CorruptError{ID: c.ID, Cause: fmt.Errorf("want reasoning, have %s", c.Kind)}
		}
		sizes[c.OriginID] += b.size()
		list = append(list, b)
	}
	before := map[objects.ID]int64{}
	for _, b := range list {
		reported, of := b.Origin().Usage.Reasoning, b.Commit.OriginID
		from := before[of]
		before[of] += b.size()
		b.Reported = reported*before[of]/sizes[of] - reported*from/sizes[of] // so that shares add up
	}
	return list, nil
}

// size returns the length of the text in bytes. For purged or damaged reasoning it returns the
// recorded size, for reasoning that only the provider can read the length of the seal.
func (b *ReasoningBlock) size() int64 {
	if b.Commit.Tombstone != nil || b.Commit.Block == nil {
		return max(b.Commit.Size, 1)
	}
	if text := b.Block.String(); text != "" {
		return int64(len(text))
	}
	return max(int64(len(b.Block.Form().Seal.Data)), 1)
}
