package inspect_test

import (
	"context"
	"strings"
	"testing"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/inspect"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/objects"
)

func TestVerifyOutcomes(t *testing.T) {
	repo := open(t)
	main := repo.Branch("main")
	m := speaking{model: says(assistant("one")).then(think("kept in memory"), call("c1")).then(assistant("two"))}
	must(main.Ask(t.Context(), m, "first", tract.AskOptions{}))(t)
	outcomes := func(targets inspect.Targets) string {
		var list []string
		for x, err := range inspect.Verify(t.Context(), repo, targets, inspect.VerifyOptions{Revs: []string{"main"}}) {
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, string(x.Outcome))
		}
		return strings.Join(list, ", ")
	}
	if got := outcomes(lines); got != "same" {
		t.Errorf("outcome %q", got)
	}
	other := func(encoder int) inspect.Targets {
		return func(*compile.Manifest) (llm.Target, error) { return shouting{encoder: encoder}, nil }
	}
	if got := outcomes(other(1)); got != "differs" {
		t.Errorf("another body: %q", got)
	}
	if got := outcomes(other(2)); got != "older encoder" {
		t.Errorf("another body of another encoder: %q", got)
	}
	unknown := func(*compile.Manifest) (llm.Target, error) { return nil, nil }
	if got := outcomes(unknown); got != "not reproducible" {
		t.Errorf("an unknown dialect: %q", got)
	}
	wants := speaking{model: m.model, plainTarget: plainTarget{wantsTurn: true}}
	must(main.Ask(t.Context(), wants, "second", tract.AskOptions{Settings: map[string]string{"reasoning.commit": "false"}}))(t)
	must(main.Append(t.Context(), []content.Block{result("c1")}, tract.AppendOptions{}))(t)
	must(main.Generate(t.Context(), wants, tract.AskOptions{Force: true}))(t)
	if got := outcomes(lines); got != "same, same, not reproducible" {
		t.Errorf("with a thought that was not committed: %q", got)
	}
	forgetful := says(assistant("three"))
	must(main.Ask(t.Context(), forgetful, "third", tract.AskOptions{}))(t)
	if got := outcomes(lines); !strings.HasSuffix(got, "not reproducible, not reproducible") {
		t.Errorf("a client without a form: %q", got)
	}
}

// shouting is a wire format that has changed.
type shouting struct {
	plainTarget
	encoder int
}

func (s shouting) Address() llm.Address {
	a := s.plainTarget.Address()
	a.Encoder = s.encoder
	return a
}

func (s shouting) Encode(req *llm.Request) ([]byte, error) {
	b, err := s.plainTarget.Encode(req)
	return []byte(strings.ToUpper(string(b))), err
}

// dropping is a client that sends less than it was given, and says so.
type dropping struct{ speaking }

func (d dropping) Generate(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	req.OnSent(req.Body[1:])
	return d.speaking.Generate(ctx, req)
}

func TestManifestRecordsWhatWasSent(t *testing.T) {
	repo := open(t)
	must(repo.Branch("main").Ask(t.Context(), dropping{speaking{model: says(assistant("ok"))}}, "hello", tract.AskOptions{}))(t)
	x := must(inspect.Reproduce(t.Context(), repo, "main", lines))(t)
	if x.Outcome != inspect.Same || x.Manifest.Sent != objects.Hash(x.Request.Body[1:]) {
		t.Errorf("%s, sent %s", x.Outcome, x.Manifest.Sent.Short())
	}

	// One of an older version does not say how the model was asked.
	old := *x.Manifest
	old.RequestSettings = nil
	manifest := old.Object()
	question := must(commit.Read(t.Context(), repo.Store(), old.Head))(t)
	reply, put, err := commit.Write(question, commit.Draft{Block: assistant("ok"), Origin: &commit.Origin{Source: commit.SourceModel, Manifest: manifest.ID}})
	if err == nil {
		err = repo.Store().Apply(t.Context(), objects.Batch{Put: append(put, manifest), Refs: []objects.RefUpdate{{Name: "refs/heads/old", New: reply[0].ID}}})
	}
	if err != nil {
		t.Fatal(err)
	}
	if x := must(inspect.Reproduce(t.Context(), repo, "old", lines))(t); x.Outcome != inspect.NotReproducible {
		t.Errorf("a manifest of an older version: %s", x.Outcome)
	}
}
