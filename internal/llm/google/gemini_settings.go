package google

import (
	"strings"

	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
	"github.com/tract-vcs/tract/llm"
)

// geminiBudgets is how many tokens an effort may think, where a model takes no
// word for it.
var thinkingBudgets = map[string]int64{
	"none": 0, "minimal": 512, "low": 2048, "medium": 8192, "high": 16384, "xhigh": 24576, "max": 24576,
}

// geminiLeast is the smallest budget of a model that takes one and cannot stop.
const minThinkingBudget = 128

// geminiWords is an effort in the words of the models that take one. There is none
// for no thought at all.
var thinkingLevels = map[string]string{
	"none": "minimal", "minimal": "minimal", "low": "low", "medium": "medium", "high": "high", "xhigh": "high", "max": "high",
}

// geminiLevels tells whether a model is told its effort by a word: those of
// version 3 and later, and those whose name has no version.
func takesThinkingLevel(model string) bool {
	_, version, ok := strings.Cut(strings.ToLower(model), "gemini-")
	return ok && !strings.HasPrefix(version, "1") && !strings.HasPrefix(version, "2")
}

// geminiConfig is how the model is asked; nil when nothing is to be said. Thoughts
// that it has anyway are to be shown, and how much it thinks is only said when
// somebody told: a budget counts more than an effort, since both are refused.
func encodeGenerationConfig(t wire.Target, s llm.Settings) rawjson.Value {
	var config, think rawjson.Object
	wire.SetCommon(&config, s, "maxOutputTokens")
	r := s.Reasoning
	budget, given := thinkingBudgets[r.Effort]
	texts := takesThinkingLevel(t.Model) || isGemma(t.Model)
	if r.MaxTokens > 0 {
		budget, given, texts = int64(r.MaxTokens), true, false
	}
	if r.Disabled && given && budget > 0 { // the model cannot stop: it gets the least that it takes
		budget = minThinkingBudget
	}
	// With a budget of nothing the field is refused, and Gemma does not know it.
	off := given && !texts && budget == 0
	if !r.Hidden && r.Summary != "none" && !off && !isGemma(t.Model) {
		think.SetBool("includeThoughts", true)
	}
	switch {
	case given && texts:
		think.SetString("thinkingLevel", thinkingLevels[r.Effort])
	case given:
		think.SetInt("thinkingBudget", budget)
	}
	config.Set("thinkingConfig", rawjson.NonEmptyObject(think.Bytes()))
	return rawjson.NonEmptyObject(config.Bytes())
}

// geminiOpen tells whether a model is one of those that anybody may run.
func isGemma(model string) bool { return strings.Contains(strings.ToLower(model), "gemma") }

// geminiTools writes tools: functions in one list, tools of the provider as they
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

// geminiChoice is the tool choice; nil when it is unsaid.
func encodeGeminiToolChoice(choice string) rawjson.Value {
	var calling, o rawjson.Object
	switch choice {
	case "":
		return nil
	case "auto", "none":
		calling.SetString("mode", strings.ToUpper(choice))
	case "required":
		calling.SetString("mode", "ANY")
	default:
		var names rawjson.Array
		names.AddString(choice)
		calling.SetString("mode", "ANY")
		calling.Set("allowedFunctionNames", names.Bytes())
	}
	o.Set("functionCallingConfig", calling.Bytes())
	return o.Bytes()
}
