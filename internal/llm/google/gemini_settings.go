package google

import (
	"strings"

	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
	"github.com/tract-vcs/tract/llm"
)

// thinkingBudgets maps an effort to a thinking budget in tokens, for models that accept no
// level.
var thinkingBudgets = map[string]int64{
	"none": 0, "minimal": 512, "low": 2048, "medium": 8192, "high": 16384, "xhigh": 24576, "max": 24576,
}

// minThinkingBudget is the smallest budget, in tokens, that a model which cannot stop
// reasoning accepts.
const minThinkingBudget = 128

// thinkingLevels maps an effort to a thinking level. No level turns reasoning off.
var thinkingLevels = map[string]string{
	"none": "minimal", "minimal": "minimal", "low": "low", "medium": "medium", "high": "high", "xhigh": "high", "max": "high",
}

// takesThinkingLevel reports whether a model accepts a thinking level: Gemini models of version
// 3 and later do, and those without a version in their name.
func takesThinkingLevel(model string) bool {
	_, version, ok := strings.Cut(strings.ToLower(model), "gemini-")
	return ok && !strings.HasPrefix(version, "1") && !strings.HasPrefix(version, "2")
}

// encodeGeminiGenerationConfig returns the generation config; nil when it is empty. It requests the
// reasoning, and sets a thinking level or a budget only if the settings do. The API refuses a
// budget and a level together, so a budget overrides an effort.
func encodeGeminiGenerationConfig(t wire.Target, s llm.Settings) rawjson.Value {
	var config, think rawjson.Object
	wire.SetCommon(&config, s, "maxOutputTokens")
	r := s.Reasoning
	budget, given := thinkingBudgets[r.Effort]
	takesLevel := takesThinkingLevel(t.Model) || isGemma(t.Model)
	if r.MaxTokens > 0 {
		budget, given, takesLevel = int64(r.MaxTokens), true, false
	}
	if r.Disabled && given && budget > 0 { // the model cannot stop reasoning, so it gets the smallest budget
		budget = minThinkingBudget
	}
	// The API refuses includeThoughts with a budget of 0, and Gemma does not know the field.
	off := given && !takesLevel && budget == 0
	if !r.Hidden && r.Summary != "none" && !off && !isGemma(t.Model) {
		think.SetBool("includeThoughts", true)
	}
	switch {
	case given && takesLevel:
		think.SetString("thinkingLevel", thinkingLevels[r.Effort])
	case given:
		think.SetInt("thinkingBudget", budget)
	}
	config.Set("thinkingConfig", rawjson.NonEmptyObject(think.Bytes()))
	return rawjson.NonEmptyObject(config.Bytes())
}

// isGemma reports whether a model is one of Google's open models.
func isGemma(model string) bool { return strings.Contains(strings.ToLower(model), "gemma") }

// encodeGeminiTools encodes the functions as one list, and the provider's tools in their JSON
// form.
func encodeGeminiTools(tools []llm.Tool) rawjson.Value {
	var list, functions rawjson.Array
	for _, t := range tools {
		if len(t.Native) > 0 {
			list.Add(t.Native)
			continue
		}
		var o rawjson.Object
		wire.SetToolName(&o, t)
		if rawjson.NonEmptyObject(t.Schema) != nil {
			o.Set("parametersJsonSchema", t.Schema) // the field parameters accepts only a subset of JSON Schema
		}
		functions.Add(o.Bytes())
	}
	if functions.Bytes().At(0) != nil {
		list.Add(rawjson.NewObject("functionDeclarations", functions.Bytes()).Bytes())
	}
	return list.Bytes()
}

// encodeGeminiToolChoice returns the value of toolConfig; nil when the settings have no tool
// choice.
func encodeGeminiToolChoice(choice string) rawjson.Value {
	calling := rawjson.NewObject("mode", "ANY")
	switch choice {
	case "":
		return nil
	case "auto", "none":
		calling.SetString("mode", strings.ToUpper(choice))
	case "required":
	default:
		calling.Set("allowedFunctionNames", rawjson.ArrayOfStrings(choice))
	}
	return rawjson.NewObject("functionCallingConfig", calling).Bytes()
}
