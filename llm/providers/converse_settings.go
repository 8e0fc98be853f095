package providers

import (
	"strings"

	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/llm"
)

// converseSettings writes how the model is asked. What only some models know is
// in a member of its own.
func converseSettings(t target, s llm.Settings, tools rawjson.Value, body *rawjson.Object) {
	var config, more rawjson.Object
	limit := s.MaxOutputTokens
	name := strings.ToLower(t.model)
	switch r := s.Reasoning; {
	case strings.Contains(name, "claude"):
		least := messagesThinking(t, s, &more)
		if !hollow(more.Bytes()) && r.Effort != effortNone || limit > 0 {
			limit = least
		}
		if needsBeta(name, more.Bytes().Get("thinking"), tools) {
			var beta rawjson.Array
			beta.AddString(interleavedBeta)
			more.Set("anthropic_beta", beta.Bytes())
		}
	case strings.Contains(name, "nova"):
		converseNova(r, &more)
	case r.Effort != "":
		more.SetString("reasoning_effort", r.Effort)
	}
	if limit > 0 {
		config.SetInt("maxTokens", int64(limit))
	}
	setTemperature(&config, s)
	body.Set("inferenceConfig", nonEmpty(config.Bytes()))
	body.Set("additionalModelRequestFields", nonEmpty(more.Bytes()))
}

// converseNova writes how much one of Amazon's own models is to think.
func converseNova(r llm.Reasoning, more *rawjson.Object) {
	var o rawjson.Object
	switch r.Effort {
	case "":
		return
	case "none":
		o.SetString("type", "disabled")
	default:
		o.SetString("type", "enabled")
		o.SetString("maxReasoningEffort", threeEfforts(r.Effort))
	}
	more.Set("reasoningConfig", o.Bytes())
}

// converseTools is the tools and which of them to use; nil when there are none.
// The format has no word for none of them: they are left out then, unless one was
// called before, for which it demands them.
func converseTools(tools []llm.Tool, choice string, called bool) rawjson.Value {
	if len(tools) == 0 || choice == "none" && !called {
		return nil
	}
	var config, named, one rawjson.Object
	config.Set("tools", definitions(tools, converseTool))
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
	config.Set("toolChoice", nonEmpty(one.Bytes()))
	return config.Bytes()
}

func converseTool(t llm.Tool) rawjson.Value {
	var schema, spec, o rawjson.Object
	schema.Set("json", schemaOf(t, `{"type":"object"}`))
	setTool(&spec, t)
	spec.Set("inputSchema", schema.Bytes())
	o.Set("toolSpec", spec.Bytes())
	return o.Bytes()
}
