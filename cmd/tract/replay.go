package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/diff"
	"github.com/tract-vcs/tract/format"
	"github.com/tract-vcs/tract/inspect"
	"github.com/tract-vcs/tract/objects"
)

type replayOptions struct {
	requestFlags
	format.DiffStyle
	to string
}

func newReplay(a *app) *cobra.Command {
	o := &replayOptions{}
	cmd := &cobra.Command{
		Use: "replay [REV]", Short: "Send the prompt of a response again and compare",
		Long: `Send the prompt of a response again, on a new branch, and show how the new response differs.
The same model and settings are used unless flags change them. HEAD does not move.`,
		Example: `  tract replay
  tract replay toolu_01A --model claude-opus-4-5
  tract replay :/Rayleigh --provider openai --model gpt-5 --to gpt --word`,
		Args: cobra.MaximumNArgs(1),
		RunE: a.atRevision(func(ctx context.Context, id objects.ID) error { return a.replay(ctx, o, id) }),
	}
	o.addTarget(a, cmd)
	f := cmd.Flags()
	f.StringVar(&o.to, "to", "", "name of the new branch (default: replay-TIME)")
	f.BoolVar(&o.Word, "word", false, "compare words, not lines")
	return cmd
}

func (a *app) replay(ctx context.Context, o *replayOptions, id objects.ID) error {
	client, opts, err := a.replayClientAndOptions(ctx, o, id)
	if err != nil {
		return err
	}
	name := o.to
	if name == "" {
		name = timestampedName("replay")
	}
	if err := checkName("branch", name); err != nil {
		return err
	}
	repo, err := a.open(ctx, true)
	if err != nil {
		return err
	}
	again, err := repo.Replay(ctx, client, id.String(), name, opts)
	if err != nil {
		return withBranchExistsHint(err)
	}
	tip := again.Response.Commits[len(again.Response.Commits)-1]
	d, err := inspect.Diff(ctx, repo, again.Old.String(), tip.String(), tract.CompileOptions{IncludeReasoning: true, Settings: map[string]string{"reasoning.strip_from_context": "none"}})
	if err != nil {
		return err
	}
	if a.json {
		return format.Encode(a.out, replayJSON{
			Branch: name, Old: again.Old, Target: tip, Same: again.Same, Equal: d.Equal(), Model: again.Response.Model,
			Reply: format.NewReply(again.Response), Diff: format.DiffJSON(d),
		})
	}
	return a.printReplay(o, again, name, d)
}

type replayJSON struct {
	Branch string       `json:"branch"`
	Old    objects.ID   `json:"old"`    // the last block of the old reply
	Target objects.ID   `json:"target"` // and of the new one
	Same   bool         `json:"same_request"`
	Equal  bool         `json:"equal"`
	Model  string       `json:"model,omitempty"`
	Reply  format.Reply `json:"reply"`
	Diff   any          `json:"diff"`
}

// printReplay prints how the new response differs.
func (a *app) printReplay(o *replayOptions, again *tract.ReplayResult, name string, d *diff.Diff) error {
	request := "another request"
	if again.Same {
		request = "the same request, byte for byte"
	}
	a.info("branch %s: %s, answered by %s", name, request, firstNonEmpty(again.Response.Model, "the model"))
	if d.Equal() {
		p := a.printer()
		p.Text("both responses are the same\n")
		return p.Err()
	}
	return a.printPaged(func(p *format.Printer) {
		p.Diff(d, o.DiffStyle)
	})
}

// replayClientAndOptions returns the client of the response, or the one that the flags name.
func (a *app) replayClientAndOptions(ctx context.Context, o *replayOptions, id objects.ID) (client model, opts tract.AskOptions, err error) {
	opts = tract.AskOptions{Settings: map[string]string{}, OnWarning: a.warn, OnRequest: a.debugRequestSize, OnResponse: a.debugReasoning}
	x, err := inspect.Reproduce(ctx, a.repo, id.String(), nil)
	if err != nil {
		return nil, opts, err
	}
	c, err := a.repo.Show(ctx, id.String())
	if err != nil {
		return nil, opts, err
	}
	v := a.configured
	for name, value := range map[string]string{"reasoning.effort": o.effort, "max_output_tokens": o.maxTokens, "model": o.model} {
		if value != "" {
			opts.Settings[name] = value
		}
	}
	name, base := firstNonEmpty(o.provider, x.Manifest.Provider), o.baseURL
	if base == "" && (o.provider == "" || o.provider == v.Text("provider")) && name == firstNonEmpty(v.Text("provider"), "chat") {
		base = v.Text("base_url") // which is that of the provider of the settings
	}
	if o.model == "" && x.Manifest.Model != "" {
		own, err := a.loaded.With("model", x.Manifest.Model)
		if err != nil {
			return nil, opts, err
		}
		a.loaded = &own
	}
	client, err = a.clientOf(name, base)
	if err != nil && errors.As(err, new(*failure)) {
		err = withHint(err, "the response came from %s at %s; name another with --provider and --base-url", c.Origin.Provider, c.Origin.Endpoint)
	}
	if err == nil {
		err = a.checkToolReasoningStored(client, false, len(x.Request.Tools) > 0, string(x.Request.Settings.Extra))
	}
	return client, opts, err
}
