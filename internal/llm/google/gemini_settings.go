package google

import (
	"strings"

	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
	"github.com/tract-vcs/tract/llm"
)

// thinkingBudgets is the thinking budget in tokens for an effort, for models that take no
// level.
var thinkingBudgets = map[string]int64{
	"none": 0, "minimal": 512, "low": 2048, "medium": 8192, "high": 16384, "xhigh": 24576, "max": 24576,
}

// minThinkingBudget is the smallest budget of a model that takes one and cannot stop
// reasoning.
const minThinkingBudget = 128

// thinkingLevels is the thinking level for an effort. No level turns reasoning off.
var thinkingLevels = map[string]string{
	"none": "minimal", "minimal": "minimal", "low": "low", "medium": "medium", "high": "high", "xhigh": "high", "max": "high",
}

// takesThinkingLevel reports whether a model takes a thinking level: those of version 3
// and later, and those whose name has no version.
func takesThinkingLevel(model string) bool {
	_, version, ok := strings.Cut(strings.ToLower(model), "gemini-")
	return ok && !strings.HasPrefix(version, "1") && !strings.HasPrefix(version, "2")
}

// encodeGenerationConfig returns the generation config; nil when it is empty. It asks for
// reasoning to be shown, and sets how much the model is to reason only if the settings do:
// the API refuses a budget beside a level, so a budget goes before an effort.
func encodeGenerationConfig(t wire.Target, s llm.Settings) rawjson.Value {
	var config, think rawjson.Object
	wire.SetCommon(&config, s, "maxOutputTokens")
	r := s.Reasoning
	budget, given := thinkingBudgets[r.Effort]
	takesLevel := takesThinkingLevel(t.Model) || isGemma(t.Model)
	if r.MaxTokens > 0 {
		budget, given, takesLevel = int64(r.MaxTokens), true, false
	}
	if r.Disabled && given && budget > 0 { // the model cannot stop: it gets the least that it takes
		budget = minThinkingBudget
	}
	// With a budget of nothing the field is refused, and Gemma does not know it.
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

// encodeGeminiTools writes tools: functions in one list, and tools of the provider as they
// are.
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
			o.Set("parametersJsonSchema", t.Schema) // parameters knows a part of JSON Schema only
		}
		functions.Add(o.Bytes())
	}
	if functions.Bytes().At(0) != nil {
		list.Add(rawjson.NewObject("functionDeclarations", functions.Bytes()).Bytes())
	}
	return list.Bytes()
}

// encodeGeminiToolChoice returns the tool choice; nil when the settings have none.
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
