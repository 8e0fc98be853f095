package bedrock

import (
	"strings"

	"github.com/tract-vcs/tract/internal/llm/anthropic"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
	"github.com/tract-vcs/tract/llm"
)

// encodeSettings writes how the model is asked. What only some models know is
// in a member of its own.
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
			var beta rawjson.Array
			beta.AddString(anthropic.InterleavedBeta)
			more.Set("anthropic_beta", beta.Bytes())
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
}

// encodeNovaReasoning writes how much one of Amazon's own models is to think.
func encodeNovaReasoning(r llm.Reasoning, more *rawjson.Object) {
	var o rawjson.Object
	switch r.Effort {
	case "":
		return
	case "none":
		o.SetString("type", "disabled")
	default:
		o.SetString("type", "enabled")
		o.SetString("maxReasoningEffort", wire.LowMediumHigh(r.Effort))
	}
	more.Set("reasoningConfig", o.Bytes())
}

// encodeTools returns the tools and which of them to use; nil when there are none.
// The format has no word for none of them: they are left out then, unless one was
// called before, for which it demands them.
func encodeTools(tools []llm.Tool, choice string, hadCalls bool) rawjson.Value {
	if len(tools) == 0 || choice == "none" && !hadCalls {
		return nil
	}
	var config, named, one rawjson.Object
	config.Set("tools", wire.EncodeTools(tools, encodeTool))
	switch choice {
	case "", "none":
	case "auto":
		one.Set("auto", rawjson.Value("{}"))
	case "required":
		one.Set("any", rawjson.Value("{}"))
	default:
		named.SetString("name", choice)
		one.Set("tool", named.Bytes())
	}
	config.Set("toolChoice", rawjson.NonEmpty(one.Bytes()))
	return config.Bytes()
}

func encodeTool(t llm.Tool) rawjson.Value {
	var schema, spec, o rawjson.Object
	schema.Set("json", wire.SchemaOr(t, `{"type":"object"}`))
	wire.SetToolName(&spec, t)
	spec.Set("inputSchema", schema.Bytes())
	o.Set("toolSpec", spec.Bytes())
	return o.Bytes()
}
