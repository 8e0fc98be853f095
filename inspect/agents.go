package inspect

import (
	"context"
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
	agents := map[objects.ID][]string{}
	for b, err := range repo.Refs(ctx, tract.RefQuery{Limit: limit, Newest: true}) {
		if err != nil {
			return nil, fmt.Errorf("find sub-agents: %w", err)
		}
		if !strings.Contains(b.Name, "/agent-") {
			continue
		}
		c, err := commit.Read(ctx, repo.Store(), b.Tip)
		if err != nil || c.OriginID.IsZero() {
			continue
		}
		origin, err := commit.ReadOrigin(ctx, repo.Store(), c.OriginID)
		if err != nil {
			continue
		}
		if call, err := objects.ParseID(origin.Original[history.LinkParent]); err == nil {
			agents[call] = append(agents[call], b.Name)
		}
	}
	return agents, nil
}
