package bedrock

import (
	"strings"

	"github.com/tract-vcs/tract/internal/llm/anthropic"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
	"github.com/tract-vcs/tract/llm"
)

// encodeSettings adds the settings and the tools to the request body. Settings that only some
// models know are members of additionalModelRequestFields.
func encodeSettings(t wire.Target, s llm.Settings, tools rawjson.Value, body *rawjson.Object) {
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
		encodeNovaReasoning(r, &more)
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

// encodeNovaReasoning writes how much one of Amazon's own models is to think.
func encodeNovaReasoning(r llm.Reasoning, more *rawjson.Object) {
	switch r.Effort {
	case "":
	case "none":
		more.Set("reasoningConfig", rawjson.NewObject("type", "disabled").Bytes())
	default:
		more.Set("reasoningConfig", rawjson.NewObject("type", "enabled", "maxReasoningEffort", wire.LowMediumHigh(r.Effort)).Bytes())
	}
}

// encodeToolConfig returns the tools and which of them to use; nil when there are none.
// The format has no word for none of them: they are left out then, unless one was
// called before, for which it demands them.
func encodeToolConfig(tools []llm.Tool, choice string, hadCalls bool) rawjson.Value {
	if len(tools) == 0 || choice == "none" && !hadCalls {
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
