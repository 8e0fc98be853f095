package refs

import (
	"context"
	"slices"
	"strings"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
)

// maxCallID is the greatest length of the id of a tool call.
const maxCallID = 256

// findToolCall returns the newest tool call with an id, first on the history of HEAD; zero when
// there is none.
func (r Resolver) findToolCall(ctx context.Context, id string) (objects.ID, error) {
	if len(id) < 2 || len(id) > maxCallID || strings.ContainsAny(id, " \t\n") {
		return objects.ID{}, nil
	}
	return r.findNewest(ctx,
		func(c *commit.Commit) bool { return c.Kind == content.KindToolCall && c.Op == commit.Append },
		func(b content.Block) bool { call, ok := b.(content.ToolCall); return ok && call.CallID == id })
}

// findText returns the commit that :/text names: the newest with the text, first on the history of HEAD.
func (r Resolver) findText(ctx context.Context, text string) (objects.ID, error) {
	rev := ":/" + text
	if text == "" {
		return objects.ID{}, &UnknownError{Rev: rev, Why: "want text after :/"}
	}
	id, err := r.findNewest(ctx,
		func(c *commit.Commit) bool { return c.Op != commit.Annotate && c.Op != commit.Merge },
		func(b content.Block) bool { return strings.Contains(b.String(), text) })
	if err == nil && id.IsZero() {
		err = &UnknownError{Rev: rev, Why: "no commit contains that text"}
	}
	return id, err
}

// searchPage is the number of commits that are read at once.
const searchPage = 256

// findNewest walks back from HEAD, then from all branches, the last moved first, and returns
// the first commit whose header and block match. It looks at no commit twice.
func (r Resolver) findNewest(ctx context.Context, matchesHeader func(*commit.Commit) bool, matchesBlock func(content.Block) bool) (objects.ID, error) {
	var tips []objects.ID
	if r.Head != "" {
		if id, err := r.resolveBase(ctx, "HEAD", "HEAD", objects.KindCommit); err == nil {
			tips = append(tips, id)
		}
	}
	branches, err := r.Store.Refs(ctx, objects.RefQuery{Prefix: Heads, Newest: true})
	if err != nil {
		return objects.ID{}, err
	}
	for _, b := range branches {
		tips = append(tips, b.Target)
	}
	seen := map[objects.ID]bool{}
	for _, tip := range tips {
		var page []*commit.Commit
		for c, err := range commit.WalkAll(ctx, r.Store, []objects.ID{tip}, seen) {
			if err != nil {
				return objects.ID{}, err
			}
			if !matchesHeader(c) {
				continue
			}
			if page = append(page, c); len(page) < searchPage {
				continue
			}
			if id, err := r.firstMatch(ctx, page, matchesBlock); err != nil || !id.IsZero() {
				return id, err
			}
			page = page[:0]
		}
		if id, err := r.firstMatch(ctx, page, matchesBlock); err != nil || !id.IsZero() {
			return id, err
		}
	}
	return objects.ID{}, nil
}

// firstMatch returns the first of some commits whose block matches; zero when none does.
func (r Resolver) firstMatch(ctx context.Context, page []*commit.Commit, matchesBlock func(content.Block) bool) (objects.ID, error) {
	err := commit.Load(ctx, r.Store, page...)
	i := slices.IndexFunc(page, func(c *commit.Commit) bool { return err == nil && matchesBlock(c.Block) })
	if i < 0 {
		return objects.ID{}, err
	}
	return page[i].ID, nil
}
