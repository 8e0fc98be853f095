package tract_test

import (
	"bytes"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/importers"
	"github.com/tract-vcs/tract/llm/llmtest"
	"github.com/tract-vcs/tract/llm/providers"
	"github.com/tract-vcs/tract/priority"
)

// off is by what part an estimate misses what was reported.
func off(estimate int, reported int64) float64 {
	return math.Abs(float64(estimate)-float64(reported)) / float64(reported)
}

func median(list []float64) float64 {
	slices.Sort(list)
	if len(list) == 0 {
		return math.NaN()
	}
	return list[len(list)/2]
}

// TestEstimateOfRecordedRequests plays the first answer of each recorded pair,
// adds what the recorded second request adds, and compares the estimate of the
// prompt with what the provider counted then.
func TestEstimateOfRecordedRequests(t *testing.T) {
	dir, list := recordings(t)
	byName := map[string]recording{}
	for _, r := range list {
		byName[r.File] = r
	}
	var before, after []float64
	for _, r := range list {
		second, ok := byName[strings.Replace(r.File, "-t1.", "-t2.", 1)]
		if !ok || second.File == r.File || len(r.Request) == 0 || second.Expected.Usage.InputTotal == 0 {
			continue
		}
		plain, scaled := estimates(t, dir, r, second)
		want := second.Expected.Usage.InputTotal
		t.Logf("%-90s reported %4d, estimate %4d, scaled %4d: %4.1f %%", r.File, want, plain, scaled, 100*off(scaled, want))
		before, after = append(before, off(plain, want)), append(after, off(scaled, want))
	}
	t.Logf("%d pairs: median error %.1f %%, scaled %.1f %%", len(after), 100*median(before), 100*median(after))
	if len(after) < 25 || median(after) > 0.35 {
		t.Errorf("%d pairs, median error %.1f %%", len(after), 100*median(after))
	}
}

// estimates is that of the second request of a pair, as the formula has it and
// scaled by what the first reported.
func estimates(t *testing.T, dir string, first, second recording) (plain, scaled int) {
	t.Helper()
	body, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(first.File)))
	if err != nil {
		t.Fatal(err)
	}
	server := llmtest.Start(t, llmtest.Exchange{Body: string(body)})
	client, err := providers.Open(first.Provider, providers.Config{Dialect: first.API, BaseURL: server.URL() + "/v1", Model: first.Model, APIKey: "k", Retries: -1})
	if err != nil {
		t.Fatal(err)
	}
	main := open(t)
	b := main.Branch("main")
	for _, m := range blocksOf(t, dir, first.Request) {
		if _, err := b.Append(t.Context(), m.Parts, tract.AppendOptions{Role: m.role}); err != nil {
			t.Fatal(err)
		}
	}
	reply, err := b.Generate(t.Context(), client, tract.AskOptions{NoStream: !(first.Container != "json"), Force: true})
	if err != nil {
		t.Fatalf("%s: %v", first.File, err)
	}
	all := blocksOf(t, dir, second.Request)
	if !thinks(all) && second.API != "gemini" { // the client that was recorded left the thoughts out
		for _, id := range reply.ReasoningCommits {
			if _, err := b.Annotate(t.Context(), id.String(), priority.Skip, ""); err != nil {
				t.Fatal(err)
			}
		}
	}
	calls, err := b.Pending(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all[len(all)-1:] {
		for i, part := range m.Parts { // a request without ids has its results in the order of the calls
			if result, ok := part.(content.ToolResult); ok && i < len(calls) {
				result.CallID = calls[i].CallID
				m.Parts[i] = result
			}
		}
		if _, err := b.Append(t.Context(), m.Parts, tract.AppendOptions{Role: m.role}); err != nil {
			t.Fatal(err)
		}
	}
	p, err := main.Compile(t.Context(), "main", tract.CompileOptions{Target: client})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range p.Entries {
		if e.InPrompt {
			plain += int((e.Kind.PromptBytes(int64(e.Size)) + 3) / 4)
		}
	}
	return plain, p.Tokens.Effective
}

func thinks(list []replayed) bool {
	return slices.ContainsFunc(list, func(s replayed) bool {
		return slices.ContainsFunc(s.Parts, func(b content.Block) bool { return b.Kind() == content.KindReasoning })
	})
}

type replayed struct {
	role  content.Role
	Parts []content.Block
}

func blocksOf(t *testing.T, dir, request string) (list []replayed) {
	t.Helper()
	body, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(request)))
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range importers.Read(request, bytes.NewReader(body), importers.Auto) {
		if err != nil {
			t.Fatal(err)
		}
		s := replayed{}
		for _, p := range e.Parts {
			s.Parts = append(s.Parts, p.Block)
			s.role = p.Block.Kind().Traits().Role
		}
		list = append(list, s)
	}
	return list
}

// TestEstimateOfRealSessions imports session logs and compares, for every reply,
// the estimate of the prompt before it with the input it reported.
func TestEstimateOfRealSessions(t *testing.T) {
	logs := sessionLogs(t)
	var all []float64
	for _, name := range slices.Sorted(maps.Keys(logs)) {
		repo := open(t)
		if _, err := repo.Import(t.Context(), foreign(logs[name]), tract.ImportOptions{}); err != nil {
			t.Fatal(err)
		}
		var errors []float64
		for info, err := range repo.Refs(t.Context(), tract.RefQuery{}) {
			if err != nil {
				t.Fatal(err)
			}
			last := ""
			for c, err := range repo.Log(t.Context(), info.Name, tract.LogOptions{}) {
				if err != nil {
					t.Fatal(err)
				}
				if c.Origin == nil || c.Origin.Usage.Input == 0 || c.Index != 0 || c.Origin.ResponseID == last || c.Depth < 8 {
					continue
				}
				last = c.Origin.ResponseID
				p, err := repo.Compile(t.Context(), c.Parent().String(), tract.CompileOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if p.Scale.Responses > 0 {
					errors = append(errors, off(p.Tokens.Effective, c.Origin.Usage.Input))
				}
			}
		}
		t.Logf("%s: %d replies, median %.1f %%", name, len(errors), 100*median(errors))
		all = append(all, errors...)
	}
	t.Logf("%d replies: median error %.1f %%, a tenth over %.1f %%", len(all), 100*median(all), 100*all[len(all)*9/10])
	if len(all) > 100 && median(all) > 0.20 {
		t.Errorf("median error %.1f %%", 100*median(all))
	}
}
