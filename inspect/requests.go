package inspect

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/diff"
)

// Diff compares the prompts of two revisions.
func Diff(ctx context.Context, repo *tract.Repo, a, b string, o tract.CompileOptions) (*diff.Diff, error) {
	before, err := repo.Compile(ctx, a, o)
	if err != nil {
		return nil, err
	}
	after, err := repo.Compile(ctx, b, o)
	if err != nil {
		return nil, err
	}
	return diff.Prompts(before, after), nil
}

// RequestChange is a parameter that differs between two requests. The value is empty where a
// manifest does not have the parameter.
type RequestChange struct {
	Name string `json:"name"`
	A    string `json:"a"`
	B    string `json:"b"`
}

// DiffRequests compares the requests that two responses answered: the prompts as they were
// sent, and the parameters.
func DiffRequests(ctx context.Context, repo *tract.Repo, a, b string) (*diff.Diff, []RequestChange, error) {
	var sides [2]*Reproduction
	for i, rev := range []string{a, b} {
		x, err := Reproduce(ctx, repo, rev, nil)
		if err != nil {
			return nil, nil, fmt.Errorf("diff: %w", err)
		}
		sides[i] = x
	}
	before, after := parameters(sides[0].Manifest), parameters(sides[1].Manifest)
	names := maps.Clone(before)
	maps.Copy(names, after)
	changes := []RequestChange{}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if before[name] != after[name] {
			changes = append(changes, RequestChange{name, before[name], after[name]})
		}
	}
	return diff.Prompts(sides[0].Prompt, sides[1].Prompt), changes, nil
}

// parameters returns the named values that a manifest records, without the prompt.
func parameters(m *compile.Manifest) map[string]string {
	all := maps.Clone(m.RequestSettings)
	if all == nil {
		all = map[string]string{}
	}
	put := func(name, value string, given bool) {
		if given {
			all[name] = value
		}
	}
	put("provider", m.Provider, m.Provider != "")
	put("dialect", m.Dialect, m.Dialect != "")
	put("model", m.Model, m.Model != "")
	put("tool_choice", m.ToolChoice, m.ToolChoice != "")
	put("tools", m.Tools.String(), !m.Tools.IsZero())
	put("budget", strconv.Itoa(m.Options.Budget), m.Options.Budget > 0)
	put("reasoning.include_in_context", "true", m.Options.Policy.IncludeReasoning)
	put("reasoning.strip_from_context", m.Options.Policy.Strip.String(), m.Options.Policy.Strip != 0)
	put("encoder", strconv.Itoa(m.Encoder), m.Encoder != 0)
	return all
}
