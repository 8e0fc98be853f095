package tract

import (
	"context"
	"fmt"
	"strings"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/objects"
)

// summaryRequest is what a model is told that sums a conversation up.
const summaryRequest = `Sum up the conversation that the user gives you, for a reader who goes on with the
work and will not see it. Keep what was decided and why, facts, names, numbers, paths and
what is still open. Leave out greetings and detours. Write no introduction.`

// summarize asks a model to sum up what is brought, as it would be sent.
func (b *Branch) summarize(ctx context.Context, c *call, client llm.Client, brings []*commit.Commit) (content.Block, *commit.Origin, error) {
	said, err := b.repo.transcript(ctx, brings)
	if err != nil {
		return nil, nil, err
	}
	req := &llm.Request{Settings: c.modelSettings(), Messages: []content.Message{
		{Role: content.RoleSystem, Blocks: []content.Block{content.System(summaryRequest)}},
		{Role: content.RoleUser, Blocks: []content.Block{content.User(said)}},
	}}
	origin := &commit.Origin{Source: commit.SourceModel, Session: b.name, Settings: c.asked(), Started: b.repo.clock()}
	if t, ok := client.(llm.Target); ok {
		at := t.Address()
		origin.Provider, origin.Dialect, origin.Endpoint, origin.Model = at.Provider, at.Dialect, at.Endpoint, at.Model
		if req.Body, err = t.Encode(req); err != nil {
			return nil, nil, fmt.Errorf("ask for a summary: %w", err)
		}
	}
	reply, err := client.Generate(ctx, req)
	if err != nil {
		return nil, nil, fmt.Errorf("ask for a summary: %w", err)
	}
	if reply.Model != "" {
		origin.Model = reply.Model
	}
	origin.ResponseID, origin.Finish, origin.Usage = reply.ID, reply.Finish, reply.Usage
	origin.Duration = b.repo.clock().Sub(origin.Started)
	text := strings.TrimSpace(reply.Text())
	if text == "" || reply.Incomplete {
		return nil, nil, fmt.Errorf("ask for a summary: %w", llm.ErrTruncated)
	}
	return content.Text{Of: content.KindSummary, Text: text}, origin, nil
}

// transcript is what the prompt of the last of some commits sends of them, as text.
func (r *Repo) transcript(ctx context.Context, of []*commit.Commit) (string, error) {
	p, err := compile.Chain(ctx, r.store, of[len(of)-1].ID, compile.Options{})
	if err != nil {
		return "", err
	}
	wanted := map[objects.ID]bool{}
	for _, c := range of {
		wanted[c.ID] = true
	}
	var text strings.Builder
	for i, m := range p.Messages {
		for j, block := range m.Blocks {
			if !wanted[p.Commits[i][j]] {
				continue
			}
			name := block.Kind().String()
			if call, ok := block.(content.ToolCall); ok {
				name += " " + call.Name
			}
			fmt.Fprintf(&text, "## %s\n\n%s\n\n", name, block)
		}
	}
	return text.String(), nil
}
