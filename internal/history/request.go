package history

import (
	"context"
	"fmt"
	"strconv"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/objects"
)

// The names under which a manifest keeps how a model was asked. They are those of the
// settings where there is one.
const (
	AskedStream    = "stream"
	askedLimit     = "max_output_tokens"
	askedTemp      = "temperature"
	AskedExtra     = "request.extra"
	AskedEnabled   = "reasoning.enabled"
	AskedHidden    = "reasoning.hidden" // of a recorded request
	askedEffort    = "reasoning.effort"
	askedSummary   = "reasoning.summary"
	askedMaxTokens = "reasoning.max_tokens"
	askedFormat    = "reasoning.format"
)

// firstEncoder is the version of the encoder for which reasoning.enabled=false meant
// only that reasoning was not asked to be shown.
const firstEncoder = 1

// Asked returns everything that a request body is made with beside the messages, the tools,
// the model and the tool choice, which a manifest has in fields of their own.
func Asked(req *llm.Request) map[string]string {
	s := req.Settings
	m := map[string]string{AskedStream: strconv.FormatBool(req.Stream), AskedEnabled: strconv.FormatBool(!s.Reasoning.Disabled)}
	put := func(name, value string) {
		if value != "" && value != "0" {
			m[name] = value
		}
	}
	put(askedLimit, strconv.Itoa(s.MaxOutputTokens))
	put(AskedExtra, string(s.Extra))
	put(askedEffort, s.Reasoning.Effort)
	put(askedSummary, s.Reasoning.Summary)
	put(askedMaxTokens, strconv.Itoa(s.Reasoning.MaxTokens))
	if s.Temperature != nil {
		m[askedTemp] = strconv.FormatFloat(*s.Temperature, 'g', -1, 64)
	}
	if s.Reasoning.Hidden {
		m[AskedHidden] = "true"
	}
	if s.Reasoning.Native {
		m[askedFormat] = "native"
	}
	return m
}

// Manifest reads the manifest of the request that a response answered. The commit is any of
// the response, with its origin; one of no response is a *[refs.UnknownError].
func Manifest(ctx context.Context, r objects.Reader, c *commit.Commit) (*compile.Manifest, error) {
	if c.Origin == nil || c.Origin.Manifest.IsZero() {
		return nil, &refs.UnknownError{Rev: c.ID.Short(), Why: "it is no response of a model, so there is no prompt that it answered"}
	}
	return compile.ReadManifest(ctx, r, c.Origin.Manifest)
}

// Request returns the request of a manifest without its messages. When its tools were
// purged it comes without them, with an [objects.ErrPurged].
func Request(ctx context.Context, r objects.Reader, m *compile.Manifest) (*llm.Request, error) {
	number := func(name string) int {
		n, _ := strconv.Atoi(m.RequestSettings[name])
		return n
	}
	req := &llm.Request{Stream: m.RequestSettings[AskedStream] == "true", Settings: llm.Settings{
		Model: m.Model, ToolChoice: m.ToolChoice, MaxOutputTokens: number(askedLimit), Extra: []byte(m.RequestSettings[AskedExtra]),
		Reasoning: llm.Reasoning{
			Disabled: m.RequestSettings[AskedEnabled] == "false" && m.Encoder != firstEncoder, Effort: m.RequestSettings[askedEffort], Summary: m.RequestSettings[askedSummary],
			MaxTokens: number(askedMaxTokens), Native: m.RequestSettings[askedFormat] == "native",
			Hidden: m.RequestSettings[AskedHidden] == "true" || m.RequestSettings[AskedEnabled] == "false" && m.Encoder == firstEncoder,
		},
	}}
	if t, err := strconv.ParseFloat(m.RequestSettings[askedTemp], 64); err == nil {
		req.Settings.Temperature = &t
	}
	if m.Tools.IsZero() {
		return req, nil
	}
	obj, err := objects.Read(ctx, r, m.Tools)
	if err != nil {
		return req, fmt.Errorf("read tools: %w", err)
	}
	if req.Tools, err = llm.ReadTools(obj.Data); err != nil {
		return nil, &objects.CorruptError{ID: m.Tools, Cause: err}
	}
	return req, nil
}
