package tract

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/diff"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/objects"
)

// The names under which a manifest keeps how a request was asked. They are those
// of the settings where there is one.
const (
	askedStream    = "stream"
	askedLimit     = "max_output_tokens"
	askedTemp      = "temperature"
	askedExtra     = "request.extra"
	askedEnabled   = "reasoning.enabled"
	askedHidden    = "reasoning.hidden" // of a request that was seen from beside
	askedEffort    = "reasoning.effort"
	askedSummary   = "reasoning.summary"
	askedMaxTokens = "reasoning.max_tokens"
	askedFormat    = "reasoning.format"
)

// firstEncoder is the version of the encoder for which reasoning.enabled=false meant
// only that reasoning was not asked to be shown.
const firstEncoder = 1

// asked is everything that a body is made with beside the messages, the tools,
// the model and the tool choice, which a manifest has in fields of their own.
func asked(req *llm.Request) map[string]string {
	s := req.Settings
	m := map[string]string{askedStream: strconv.FormatBool(req.Stream), askedEnabled: strconv.FormatBool(!s.Reasoning.Disabled)}
	put := func(name, value string) {
		if value != "" && value != "0" {
			m[name] = value
		}
	}
	put(askedLimit, strconv.Itoa(s.MaxOutputTokens))
	put(askedExtra, string(s.Extra))
	put(askedEffort, s.Reasoning.Effort)
	put(askedSummary, s.Reasoning.Summary)
	put(askedMaxTokens, strconv.Itoa(s.Reasoning.MaxTokens))
	if s.Temperature != nil {
		m[askedTemp] = strconv.FormatFloat(*s.Temperature, 'g', -1, 64)
	}
	if s.Reasoning.Hidden {
		m[askedHidden] = "true"
	}
	if s.Reasoning.Native {
		m[askedFormat] = "native"
	}
	return m
}

// AskedChange is how one part of a request was asked, by two manifests. What one
// does not say is empty.
type AskedChange struct {
	Name string `json:"name"`
	A    string `json:"a"`
	B    string `json:"b"`
}

// DiffRequests compares what two replies were given: the prompts as they were
// sent, and in which way they were asked.
func (r *Repo) DiffRequests(ctx context.Context, a, b string) (*diff.Diff, []AskedChange, error) {
	var sides [2]*Remade
	for i, rev := range []string{a, b} {
		x, err := r.Remake(ctx, rev, func(*compile.Manifest) (llm.Target, error) { return nil, nil })
		if err != nil {
			return nil, nil, fmt.Errorf("diff: %w", err)
		}
		sides[i] = x
	}
	before, after := askedWhole(sides[0].Manifest), askedWhole(sides[1].Manifest)
	names := maps.Clone(before)
	maps.Copy(names, after)
	changes := []AskedChange{}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if before[name] != after[name] {
			changes = append(changes, AskedChange{name, before[name], after[name]})
		}
	}
	return diff.Prompts(sides[0].Prompt, sides[1].Prompt), changes, nil
}

// askedWhole is everything that a manifest says beside the prompt.
func askedWhole(m *compile.Manifest) map[string]string {
	all := maps.Clone(m.Asked)
	if all == nil {
		all = map[string]string{}
	}
	put := func(name, value string, said bool) {
		if said {
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

// askedAgain is the request of a manifest without its messages.
func (r *Repo) askedAgain(ctx context.Context, m *compile.Manifest) (*llm.Request, error) {
	number := func(name string) int {
		n, _ := strconv.Atoi(m.Asked[name])
		return n
	}
	req := &llm.Request{Stream: m.Asked[askedStream] == "true", Settings: llm.Settings{
		Model: m.Model, ToolChoice: m.ToolChoice, MaxOutputTokens: number(askedLimit), Extra: []byte(m.Asked[askedExtra]),
		Reasoning: llm.Reasoning{
			Disabled: m.Asked[askedEnabled] == "false" && m.Encoder != firstEncoder, Effort: m.Asked[askedEffort], Summary: m.Asked[askedSummary],
			MaxTokens: number(askedMaxTokens), Native: m.Asked[askedFormat] == "native",
			Hidden: m.Asked[askedHidden] == "true" || m.Asked[askedEnabled] == "false" && m.Encoder == firstEncoder,
		},
	}}
	if t, err := strconv.ParseFloat(m.Asked[askedTemp], 64); err == nil {
		req.Settings.Temperature = &t
	}
	if m.Tools.IsZero() {
		return req, nil
	}
	obj, err := objects.Read(ctx, r.store, m.Tools)
	if err != nil {
		return req, fmt.Errorf("read tools: %w", err)
	}
	if req.Tools, err = llm.ReadTools(obj.Data); err != nil {
		return nil, &objects.CorruptError{ID: m.Tools, Cause: err}
	}
	return req, nil
}
