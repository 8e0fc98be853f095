package history

import (
	"context"
	"fmt"
	"iter"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
)

// Response is one response of a model, and the cost of its reasoning.
type Response struct {
	Last *commit.Commit // its last block, with its origin
	Cost
}

// Cost is the number of tokens of the reasoning of a response.
type Cost struct {
	Tokens    int64 // as reported; when reasoning was not committed and not reported: the output without the other blocks
	Estimate  int   // estimated tokens of committed reasoning that was not reported
	Estimated bool  // the tokens were not reported
}

// ReasoningCost returns the cost of the reasoning of the response with these blocks and this origin.
func ReasoningCost(o *commit.Origin, blocks []*commit.Commit) Cost {
	var a responseBlocks
	for _, c := range blocks {
		a.countBlock(c)
	}
	return a.reasoningCost(o)
}

// usagePage is the number of responses that are read at once.
const usagePage = 256

// responseBlocks sums up the headers of the blocks of one response.
type responseBlocks struct {
	last      *commit.Commit
	other     int64 // weight of the other blocks
	reasoning int   // estimate of the reasoning
	counted   bool  // the response was counted with a later part of it
}

// importKey identifies an imported response. When it was imported in parts, because its log was
// still being written, each part has an origin, and the last origin has the cost of the response.
type importKey struct{ session, importer, response string }

// importKeyOf returns the key of the imported response of an origin; empty when it was not imported.
func importKeyOf(o *commit.Origin) importKey {
	if o.Importer == "" || o.ResponseID == "" {
		return importKey{}
	}
	return importKey{o.Session, o.Importer, o.ResponseID}
}

// countBlock adds the size of a block to the sums.
func (a *responseBlocks) countBlock(c *commit.Commit) {
	if c.Kind == content.KindReasoning {
		a.reasoning += compile.Estimate(c.Kind.PromptBytes(c.Size))
	} else {
		a.other += c.Kind.PromptBytes(c.Size)
	}
}

// reasoningCost returns the cost of the reasoning.
func (a *responseBlocks) reasoningCost(o *commit.Origin) (ofReasoning Cost) {
	switch u := o.Usage; {
	case u.Reasoning > 0:
		return Cost{Tokens: u.Reasoning}
	case o.UncommittedReasoning > 0: // only the number of output tokens includes it
		return Cost{Tokens: max(u.Output-int64(compile.Estimate(a.other)), 0), Estimated: true}
	}
	return Cost{Estimate: a.reasoning, Estimated: a.reasoning > 0}
}

// Responses yields the responses of models on the histories of tips, newest first. It yields each
// response once, even when several histories have it, and leaves out responses without a known
// usage. An error is the last element.
func Responses(ctx context.Context, r objects.Reader, tips []objects.ID) iter.Seq2[Response, error] {
	return func(yield func(Response, error) bool) {
		seen, counted := map[objects.ID]*responseBlocks{}, map[importKey]bool{}
		var page []*responseBlocks
		flush := func() bool {
			ok := yieldCosts(ctx, r, page, counted, yield)
			for _, a := range page {
				seen[a.last.OriginID] = &responseBlocks{last: a.last} // later blocks of it are ignored
			}
			page = nil
			return ok
		}
		for c, err := range commit.NewestFirst(ctx, r, tips) {
			if err != nil {
				if flush() {
					yield(Response{}, err)
				}
				return
			}
			if !maybeResponse(c) {
				continue
			}
			if known := seen[c.OriginID]; known != nil {
				known.countBlock(c)
				continue
			}
			if len(page) >= usagePage && !flush() {
				return
			}
			a := &responseBlocks{last: c}
			a.countBlock(c)
			seen[c.OriginID], page = a, append(page, a)
		}
		flush()
	}
}

// maybeResponse reports whether a commit may be a block of a response, according to its header.
func maybeResponse(c *commit.Commit) bool {
	return c.Op == commit.Append && !c.OriginID.IsZero() && c.Role != content.RoleUser && c.Role != content.RoleSystem
}

// yieldCosts yields the responses of a page with their costs, and reports whether the caller wants
// more. counted has the imported responses that were yielded before.
func yieldCosts(ctx context.Context, r objects.Reader, page []*responseBlocks, counted map[importKey]bool, yield func(Response, error) bool) bool {
	ids := make([]objects.ID, len(page))
	for i, a := range page {
		ids[i] = a.last.OriginID
	}
	origins, err := readOrigins(ctx, r, ids)
	if err != nil {
		yield(Response{}, err)
		return false
	}
	newest := map[importKey]*responseBlocks{}
	for _, a := range page {
		part := importKeyOf(origins[a.last.OriginID])
		switch later := newest[part]; {
		case part.response == "":
		case later != nil:
			later.other += a.other
			later.reasoning += a.reasoning
			a.counted = true
		default:
			newest[part], a.counted = a, counted[part]
			counted[part] = true
		}
	}
	for _, a := range page {
		o := origins[a.last.OriginID]
		if a.counted || o.Usage.IsZero() {
			continue
		}
		a.last.Origin = o
		if !yield(Response{a.last, a.reasoningCost(o)}, nil) {
			return false
		}
	}
	return true
}

// readOrigins reads origins. A missing one is an error.
func readOrigins(ctx context.Context, r objects.Reader, ids []objects.ID) (map[objects.ID]*commit.Origin, error) {
	found, err := objects.ReadAll(ctx, r, ids, commit.ParseOrigin)
	for i := 0; i < len(ids) && err == nil; i++ {
		if found[ids[i]] == nil {
			err = &objects.NotFoundError{ID: ids[i]}
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read origins: %w", err)
	}
	return found, nil
}
