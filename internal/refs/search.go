package refs

import (
	"context"
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
	return r.search(ctx,
		func(c *commit.Commit) bool { return c.Kind == content.KindToolCall && c.Op == commit.Append },
		func(b content.Block) bool { call, ok := b.(content.ToolCall); return ok && call.CallID == id })
}

// findText returns the newest commit whose text contains text.
func (r Resolver) findText(ctx context.Context, rev, text string) (objects.ID, error) {
	if text == "" {
		return objects.ID{}, &UnknownError{Rev: rev, Why: "want text after :/"}
	}
	id, err := r.search(ctx,
		func(c *commit.Commit) bool { return c.Op != commit.Annotate && c.Op != commit.Merge },
		func(b content.Block) bool { return strings.Contains(b.String(), text) })
	if err == nil && id.IsZero() {
		err = &UnknownError{Rev: rev, Why: "no commit contains that text"}
	}
	return id, err
}

// searchPage is the number of commits that are read at once.
const searchPage = 256

// search walks back from HEAD, then from all branches, the last moved first, and returns
// the first commit whose header and block match. It looks at no commit twice.
func (r Resolver) search(ctx context.Context, header func(*commit.Commit) bool, block func(content.Block) bool) (objects.ID, error) {
	var tips []objects.ID
	if r.Head != "" {
		if id, err := r.base(ctx, "HEAD", "HEAD", objects.KindCommit); err == nil {
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
		if id, err := r.searchLine(ctx, tip, seen, header, block); err != nil || !id.IsZero() {
			return id, err
		}
	}
	return objects.ID{}, nil
}

func (r Resolver) searchLine(ctx context.Context, tip objects.ID, seen map[objects.ID]bool, header func(*commit.Commit) bool, block func(content.Block) bool) (objects.ID, error) {
	var page []*commit.Commit
	look := func() (objects.ID, error) {
		if err := commit.Load(ctx, r.Store, page...); err != nil {
			return objects.ID{}, err
		}
		for _, c := range page {
			if block(c.Block) {
				return c.ID, nil
			}
		}
		page = page[:0]
		return objects.ID{}, nil
	}
	var merged []objects.ID
	for c, err := range commit.Walk(ctx, r.Store, tip, 0) {
		if err != nil {
			return objects.ID{}, err
		}
		if seen[c.ID] {
			break
		}
		seen[c.ID] = true
		if c.Op == commit.Merge {
			merged = append(merged, c.SecondParent())
		}
		if !header(c) {
			continue
		}
		if page = append(page, c); len(page) == searchPage {
			if id, err := look(); err != nil || !id.IsZero() {
				return id, err
			}
		}
	}
	id, err := look()
	for i := 0; i < len(merged) && err == nil && id.IsZero(); i++ {
		id, err = r.searchLine(ctx, merged[i], seen, header, block)
	}
	return id, err
}
