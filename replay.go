package tract

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/internal/history"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/internal/settings"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/objects"
)

// ReplayResult is the result of [Repo.Replay].
type ReplayResult struct {
	Branch   *Branch    // with the new response
	Old      objects.ID // the last block of the earlier response
	Response *Response
	Same     bool // the body was the same, byte for byte
}

// Replay sends the prompt of an earlier response again, on a new branch that begins where
// the prompt ended. The model, the settings, the tools and the budget are those of the
// earlier request unless o sets them. Tool calls of the new response wait for their results
// as usual. When a branch of that name exists, the error is an [objects.ErrExists]. When the
// request fails, the result still names the new branch.
func (r *Repo) Replay(ctx context.Context, client llm.Client, rev, branch string, o AskOptions) (*ReplayResult, error) {
	ctx = history.InOperation(ctx, "replay")
	c, err := r.Show(ctx, rev)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	asked, err := history.Manifest(ctx, r.store, c)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	req, err := history.Request(ctx, r.store, asked)
	if err != nil && !errors.Is(err, objects.ErrPurged) { // its tools were purged: the request is repeated without them
		return nil, fmt.Errorf("replay: %w", err)
	}
	again := &ReplayResult{}
	if again.Old, err = r.lastBlockOfResponse(ctx, c.ID); err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	call, err := r.replayOptions(asked, req, o)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	if err := r.createRef(ctx, "replay on branch", refs.Heads, branch, asked.Head); err != nil {
		return nil, err
	}
	again.Branch = r.Branch(branch)
	again.Response, err = again.Branch.generate(ctx, call, client, req.Stream && !o.NoStream)
	if again.Response == nil || err != nil {
		return again, err
	}
	m, err := compile.ReadManifest(ctx, r.store, again.Response.Manifest)
	if err != nil {
		return again, err
	}
	again.Same = !m.Compiled.IsZero() && m.Compiled == asked.Compiled
	return again, nil
}

// replayOptions returns the options that repeat a request; those of o override them. Only
// the Repo's settings that control what is stored apply.
func (r *Repo) replayOptions(m *compile.Manifest, req *llm.Request, o AskOptions) (*callOptions, error) {
	set := map[string]string{
		"reasoning.commit":             strconv.FormatBool(r.settings.Bool("reasoning.commit")),
		maskSetting:                    r.settings.Text(maskSetting),
		"reasoning.strip_from_context": m.Options.Policy.Strip.String(),
		"reasoning.include_in_context": strconv.FormatBool(m.Options.Policy.IncludeReasoning),
		"model":                        m.Model,
		"tool_choice":                  m.ToolChoice,
	}
	for name, value := range m.RequestSettings {
		if canReplaySetting(name) {
			set[name] = value
		}
	}
	v, err := settings.Values{}.WithAll(set)
	if err == nil {
		v, err = v.WithAll(o.Settings)
	}
	if err != nil {
		return nil, err
	}
	if o.Tools == nil {
		o.Tools = req.Tools
	}
	o.Budget = cmp.Or(o.Budget, m.Options.Budget)
	return r.resolveAskWithSettings(v, o)
}

// canReplaySetting reports whether a replay repeats a setting of a manifest. The manifests of a
// store are not trusted, because the store may come from somebody else: their settings may
// shape the request and nothing more.
func canReplaySetting(name string) bool {
	key, err := settings.Find(name)
	return err == nil && (key.Safety == settings.Safe || key.Name == history.SettingExtra)
}

// lastBlockOfResponse returns the last block of the response that a commit belongs to, if
// the branch that the response was committed on still has it; otherwise the commit itself.
func (r *Repo) lastBlockOfResponse(ctx context.Context, id objects.ID) (objects.ID, error) {
	c, err := commit.Read(ctx, r.store, id)
	if err != nil {
		return id, err
	}
	origin, err := commit.ReadOrigin(ctx, r.store, c.OriginID)
	if err != nil {
		return id, err
	}
	tip, err := r.Branch(origin.Session).Tip(ctx)
	if err != nil || tip.IsZero() {
		return id, nil
	}
	for at, err := range commit.Walk(ctx, r.store, tip, 0, id) {
		if err != nil {
			return id, nil
		}
		if at.Op == commit.Append && at.OriginID == c.OriginID {
			return at.ID, nil
		}
	}
	return id, nil
}
