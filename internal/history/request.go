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

// The names of the settings of a request in a manifest. A setting of tract has the same name here.
const (
	SettingStream    = "stream"
	settingLimit     = "max_output_tokens"
	settingTemp      = "temperature"
	SettingExtra     = "request.extra"
	SettingEnabled   = "reasoning.enabled"
	SettingHidden    = "reasoning.hidden" // of a recorded request
	settingEffort    = "reasoning.effort"
	settingSummary   = "reasoning.summary"
	settingMaxTokens = "reasoning.max_tokens"
	settingFormat    = "reasoning.format"
)

// encoderWithoutDisabled is the version of the encoder for which reasoning.enabled=false
// only hid the reasoning, and did not disable it.
const encoderWithoutDisabled = 1

// RequestSettings returns the settings that determine a request body, except the messages, the
// tools, the model and the tool choice, for which a manifest has fields.
func RequestSettings(req *llm.Request) map[string]string {
	s := req.Settings
	m := map[string]string{SettingStream: strconv.FormatBool(req.Stream), SettingEnabled: strconv.FormatBool(!s.Reasoning.Disabled)}
	put := func(name, value string) {
		if value != "" && value != "0" {
			m[name] = value
		}
	}
	put(settingLimit, strconv.Itoa(s.MaxOutputTokens))
	put(SettingExtra, string(s.Extra))
	put(settingEffort, s.Reasoning.Effort)
	put(settingSummary, s.Reasoning.Summary)
	put(settingMaxTokens, strconv.Itoa(s.Reasoning.MaxTokens))
	if s.Temperature != nil {
		m[settingTemp] = strconv.FormatFloat(*s.Temperature, 'g', -1, 64)
	}
	if s.Reasoning.Hidden {
		m[SettingHidden] = "true"
	}
	if s.Reasoning.Native {
		m[settingFormat] = "native"
	}
	return m
}

// Manifest reads the manifest of the request that a response answered. c may be any commit of the
// response, with its origin loaded; for another commit the error is a *[refs.UnknownError].
func Manifest(ctx context.Context, r objects.Reader, c *commit.Commit) (*compile.Manifest, error) {
	if c.Origin == nil || c.Origin.Manifest.IsZero() {
		return nil, &refs.UnknownError{Rev: c.ID.Short(), Why: "it is no response of a model, so there is no prompt that it answered"}
	}
	return compile.ReadManifest(ctx, r, c.Origin.Manifest)
}

// Request returns the request of a manifest without its messages. When its tools were
// purged, they are missing, and the error is an [objects.ErrPurged].
func Request(ctx context.Context, r objects.Reader, m *compile.Manifest) (*llm.Request, error) {
	number := func(name string) int {
		n, _ := strconv.Atoi(m.RequestSettings[name])
		return n
	}
	req := &llm.Request{Stream: m.RequestSettings[SettingStream] == "true", Settings: llm.Settings{
		Model: m.Model, ToolChoice: m.ToolChoice, MaxOutputTokens: number(settingLimit), Extra: []byte(m.RequestSettings[SettingExtra]),
		Reasoning: llm.Reasoning{
			Disabled: m.RequestSettings[SettingEnabled] == "false" && m.Encoder != encoderWithoutDisabled, Effort: m.RequestSettings[settingEffort], Summary: m.RequestSettings[settingSummary],
			MaxTokens: number(settingMaxTokens), Native: m.RequestSettings[settingFormat] == "native",
			Hidden: m.RequestSettings[SettingHidden] == "true" || m.RequestSettings[SettingEnabled] == "false" && m.Encoder == encoderWithoutDisabled,
		},
	}}
	if t, err := strconv.ParseFloat(m.RequestSettings[settingTemp], 64); err == nil {
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
