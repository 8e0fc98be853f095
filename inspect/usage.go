package inspect

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/internal/history"
)

// Cost is the cost of one response of a model.
type Cost struct {
	Commit    *commit.Commit // the last block of the response, with its origin, which has the usage, the branch and the model
	Turn      int            // number of its turn, with UsageOptions.Turns
	Reasoning int64          // reasoning tokens as reported; when reasoning was not committed and not reported: the output without the other blocks
	Estimate  int            // estimated tokens of committed reasoning that was not reported; see [Scale]
	Estimated bool           // the reasoning tokens were not reported
}

// Time returns the time when the request was sent; if it is not known, the time of the commit.
func (c *Cost) Time() time.Time {
	if c.Commit.Origin.Started.IsZero() {
		return c.Commit.Time
	}
	return c.Commit.Origin.Started
}

// UsageOptions are the options of [Usage].
type UsageOptions struct {
	Revs  []string // responses on the histories of these; nil: all branches, tags and rescue refs
	Turns bool     // number the turns, which takes a walk to the root before the first response
}

// Usage yields the costs of the responses of models, newest first. It yields each response once,
// even when several histories have it, and leaves out responses without a known usage. An error is
// the last element.
func Usage(ctx context.Context, repo *tract.Repo, o UsageOptions) iter.Seq2[Cost, error] {
	return func(yield func(Cost, error) bool) {
		tips, turns, err := resolveTipsAndTurns(ctx, repo, o.Revs, o.Turns)
		if err != nil {
			yield(Cost{}, fmt.Errorf("usage: %w", err))
			return
		}
		for r, err := range history.Responses(ctx, repo.Store(), tips) {
			if err != nil {
				yield(Cost{}, fmt.Errorf("usage: %w", err))
				return
			}
			if !yield(Cost{r.Last, turns[r.Last.ID], r.Tokens, r.Estimate, r.Estimated}, nil) {
				return
			}
		}
	}
}
