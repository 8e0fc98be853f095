package bedrock

import (
	"strings"

	"github.com/tract-vcs/tract/internal/llm/anthropic"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
	"github.com/tract-vcs/tract/llm"
)

// setSettings adds the settings and the tools to the request body. Settings that only some
// models know are members of additionalModelRequestFields.
func setSettings(t wire.Target, s llm.Settings, tools rawjson.Value, body *rawjson.Object) {
	var config, more rawjson.Object
	limit := s.MaxOutputTokens
	name := strings.ToLower(t.Model)
	switch r := s.Reasoning; {
	case strings.Contains(name, "claude"):
		least := anthropic.SetThinking(t, s, &more)
		if !rawjson.IsEmpty(more.Bytes()) && r.Effort != wire.EffortNone || limit > 0 {
			limit = least
		}
		if anthropic.NeedsInterleavedBeta(name, more.Bytes().Get("thinking"), tools) {
			more.Set("anthropic_beta", rawjson.ArrayOfStrings(anthropic.InterleavedBeta))
		}
	case strings.Contains(name, "nova"):
		setNovaReasoning(r, &more)
	case r.Effort != "":
		more.SetString("reasoning_effort", r.Effort)
	}
	if limit > 0 {
		config.SetInt("maxTokens", int64(limit))
	}
	wire.SetTemperature(&config, s)
	body.Set("inferenceConfig", rawjson.NonEmpty(config.Bytes()))
	body.Set("additionalModelRequestFields", rawjson.NonEmpty(more.Bytes()))
	body.Set("toolConfig", tools)
}

// setNovaReasoning sets the reasoning effort of one of Amazon's own models.
func setNovaReasoning(r llm.Reasoning, more *rawjson.Object) {
	switch r.Effort {
	case "":
	case "none":
		more.Set("reasoningConfig", rawjson.NewObject("type", "disabled").Bytes())
	default:
		more.Set("reasoningConfig", rawjson.NewObject("type", "enabled", "maxReasoningEffort", wire.LowMediumHigh(r.Effort)).Bytes())
	}
}

// encodeToolConfig returns the tools and the tool choice; nil when there are no tools. The format has
// no choice of none: the tools are left out then, unless keepForChoiceNone is true. It must be true
// if a message has a call, because the API then requires the tools.
func encodeToolConfig(tools []llm.Tool, choice string, keepForChoiceNone bool) rawjson.Value {
	if len(tools) == 0 || choice == "none" && !keepForChoiceNone {
		return nil
	}
	config := rawjson.NewObject("tools", wire.EncodeTools(tools, encodeTool))
	switch choice {
	case "", "none":
	case "auto":
		config.Set("toolChoice", rawjson.Value(`{"auto":{}}`))
	case "required":
		config.Set("toolChoice", rawjson.Value(`{"any":{}}`))
	default:
		config.Set("toolChoice", rawjson.NewObject("tool", rawjson.NewObject("name", choice)).Bytes())
	}
	return config.Bytes()
}

func encodeTool(t llm.Tool) rawjson.Value {
	var spec rawjson.Object
	wire.SetToolName(&spec, t)
	spec.Set("inputSchema", rawjson.NewObject("json", wire.SchemaOr(t, `{"type":"object"}`)).Bytes())
	return rawjson.NewObject("toolSpec", &spec).Bytes()
}
