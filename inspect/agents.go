package inspect

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/internal/history"
	"github.com/tract-vcs/tract/objects"
)

// StartedAgents returns the branches of recorded sub-agents, by the tool call that started them.
// It examines the newest branches, at most limit of them, and among these the branches with
// "/agent-" in their name. It skips a branch whose tip is damaged or is no commit of the recorder.
func StartedAgents(ctx context.Context, repo *tract.Repo, limit int) (map[objects.ID][]string, error) {
	var branches []tract.RefInfo
	var tips []objects.ID
	for b, err := range repo.Refs(ctx, tract.RefQuery{Limit: limit, Newest: true}) {
		if err != nil {
			return nil, fmt.Errorf("find sub-agents: %w", err)
		}
		if strings.Contains(b.Name, "/agent-") {
			branches, tips = append(branches, b), append(tips, b.Tip)
		}
	}
	commits, err := readIntact(ctx, repo.Store(), tips, commit.Parse)
	if err != nil {
		return nil, fmt.Errorf("find sub-agents: %w", err)
	}
	var ids []objects.ID
	for _, c := range commits {
		ids = append(ids, c.OriginID)
	}
	origins, err := readIntact(ctx, repo.Store(), ids, commit.ParseOrigin)
	if err != nil {
		return nil, fmt.Errorf("find sub-agents: %w", err)
	}
	agents := map[objects.ID][]string{}
	for _, b := range branches {
		c := commits[b.Tip]
		if c == nil || origins[c.OriginID] == nil {
			continue
		}
		if call, err := objects.ParseID(origins[c.OriginID].Original[history.LinkParent]); err == nil {
			agents[call] = append(agents[call], b.Name)
		}
	}
	return agents, nil
}

// readIntact is objects.ReadAll without the objects that are damaged.
func readIntact[T any](ctx context.Context, r objects.Reader, ids []objects.ID, parse func(objects.Object) (*T, error)) (map[objects.ID]*T, error) {
	found := map[objects.ID]*T{}
	for o, err := range r.Get(ctx, ids) {
		var v *T
		if err == nil {
			v, err = parse(o)
		}
		if err == nil {
			found[o.ID] = v
		} else if !history.IsDamaged(err) && !errors.Is(err, objects.ErrPurged) {
			return nil, err
		}
	}
	return found, nil
}
