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

// Cost is what one response of a model cost.
type Cost struct {
	Commit    *commit.Commit // the last block of the response, with its origin, which has the usage, the branch and the model
	Turn      int            // number of its turn, with UsageOptions.Turns
	Reasoning int64          // tokens of reasoning as reported; of reasoning that was not committed, what the other blocks leave of the output
	Estimate  int            // of reasoning that was committed and not reported; see [Scale]
	Estimated bool           // the tokens of its reasoning were not reported
}

// Time returns when the request was sent, or else when the response was committed.
func (c *Cost) Time() time.Time {
	if c.Commit.Origin.Started.IsZero() {
		return c.Commit.Time
	}
	return c.Commit.Origin.Started
}

// UsageOptions selects responses.
type UsageOptions struct {
	Revs  []string // responses on the histories of these; nil: all branches, tags and rescue refs
	Turns bool     // number the turns, which takes a walk to the root before the first response
}

// Usage yields what the responses of models cost, newest first. Each comes once, however many
// histories have it; those without a known usage are left out. An error is the last
// element.
func Usage(ctx context.Context, repo *tract.Repo, o UsageOptions) iter.Seq2[Cost, error] {
	return func(yield func(Cost, error) bool) {
		tips, turns, err := turnTips(ctx, repo, o.Revs, o.Turns)
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
