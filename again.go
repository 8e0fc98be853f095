package tract

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/refs"
	"github.com/tract-vcs/tract/settings"
)

// Replayed is the prompt of a reply, asked again.
type Replayed struct {
	Branch   *Branch    // that the new reply is on
	Old      objects.ID // the last block of the old reply
	Response *Response
	Same     bool // the body was the same, byte for byte
}

// Replay asks the prompt of a reply again on a new branch, which begins where the
// prompt was: of the same model in the same way, where the options do not say
// otherwise. Calls of tools wait for their results there as they did before. A
// branch of that name must not exist: objects.ErrExists.
func (r *Repo) Replay(ctx context.Context, client llm.Client, rev, branch string, opts ...Option) (*Replayed, error) {
	ctx = inOperation(ctx)
	x, err := r.Remake(ctx, rev, func(*compile.Manifest) (llm.Target, error) { return nil, nil })
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	again := &Replayed{}
	if again.Old, err = r.endOfReply(ctx, x.Commit); err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	if err := r.newRef(ctx, "replay on branch", refs.Heads, branch, x.Manifest.Head, opts); err != nil {
		return nil, err
	}
	again.Branch = r.Branch(branch)
	again.Response, err = again.Branch.Generate(ctx, client, append(asBefore(x), opts...)...)
	if again.Response == nil || err != nil {
		return again, err
	}
	m, err := compile.ReadManifest(ctx, r.store, again.Response.Manifest)
	if err != nil {
		return again, err
	}
	again.Same = !m.Compiled.IsZero() && m.Compiled == x.Manifest.Compiled
	return again, nil
}

// asBefore is the options that ask as a request was asked.
func asBefore(x *Remade) []Option {
	m := x.Manifest
	opts := []Option{
		onlyCommit,
		Tools(x.Request.Tools...), Budget(m.Options.Budget), Stream(x.Request.Stream),
		Set("reasoning.strip_from_context", m.Options.Policy.Strip.String()),
		Set("reasoning.include_in_context", strconv.FormatBool(m.Options.Policy.IncludeReasoning)),
	}
	for _, name := range slices.Sorted(maps.Keys(m.Asked)) {
		if repeats(name) {
			opts = append(opts, Set(name, m.Asked[name]))
		}
	}
	if m.Model != "" {
		opts = append(opts, Set("model", m.Model))
	}
	if m.ToolChoice != "" {
		opts = append(opts, Set("tool_choice", m.ToolChoice))
	}
	return opts
}

// repeats reports whether a setting is the same again. A store may come from somebody
// else, and so may the settings in a manifest: they may shape the request, and nothing
// else.
func repeats(name string) bool {
	key, err := settings.Find(name)
	return err == nil && (key.Safety == settings.Safe || key.Name == askedExtra)
}

// onlyCommit forgets the settings of today, but for what becomes of thoughts.
func onlyCommit(c *call) (err error) {
	kept := c.settings.Text("secrets.mask")
	commits := c.settings.Bool("reasoning.commit")
	if c.settings, err = (settings.Values{}).With("reasoning.commit", strconv.FormatBool(commits)); err == nil {
		c.settings, err = c.settings.With("secrets.mask", kept)
	}
	return err
}

// endOfReply is the last block of the reply that a commit belongs to, on the
// branch that it was made on, or else the commit.
func (r *Repo) endOfReply(ctx context.Context, id objects.ID) (objects.ID, error) {
	c, err := commit.Read(ctx, r.store, id)
	if err != nil {
		return id, err
	}
	origin, err := commit.ReadOrigin(ctx, r.store, c.Origin)
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
		if at.Op == commit.Append && at.Origin == c.Origin {
			return at.ID, nil
		}
	}
	return id, nil
}
