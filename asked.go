package tract

import (
	"context"
	"fmt"
	"strconv"

	"github.com/tract-vcs/tract/compile"
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
	askedEffort    = "reasoning.effort"
	askedSummary   = "reasoning.summary"
	askedMaxTokens = "reasoning.max_tokens"
	askedFormat    = "reasoning.format"
)

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
	if s.Reasoning.Native {
		m[askedFormat] = "native"
	}
	return m
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
			Disabled: m.Asked[askedEnabled] == "false", Effort: m.Asked[askedEffort], Summary: m.Asked[askedSummary],
			MaxTokens: number(askedMaxTokens), Native: m.Asked[askedFormat] == "native",
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
		return nil, fmt.Errorf("read tools: %w", err)
	}
	if req.Tools, err = llm.ReadTools(obj.Data); err != nil {
		return nil, &objects.CorruptError{ID: m.Tools, Cause: err}
	}
	return req, nil
}
