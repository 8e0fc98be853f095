package google

import (
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
	"github.com/tract-vcs/tract/llm"
)

// encodeInteractionsGenerationConfig returns the generation config; nil when it is empty. The API has no
// thinking budget, so a budget becomes an effort.
func encodeInteractionsGenerationConfig(s llm.Settings, hasTools bool) rawjson.Value {
	var o rawjson.Object
	wire.SetCommon(&o, s, "max_output_tokens")
	r := s.Reasoning
	if !r.Hidden && r.Summary != "none" {
		o.SetString("thinking_summaries", "auto")
	}
	effort := r.Effort
	if r.MaxTokens > 0 {
		effort = lowestEffortForBudget(int64(r.MaxTokens))
	}
	o.SetNonEmpty("thinking_level", thinkingLevels[effort])
	if hasTools {
		o.Set("tool_choice", encodeInteractionsToolChoice(s.ToolChoice))
	}
	return rawjson.NonEmptyObject(o.Bytes())
}

// lowestEffortForBudget returns the lowest effort whose budget is at least the given one, in tokens;
// otherwise high.
func lowestEffortForBudget(budget int64) string {
	for _, effort := range []string{"minimal", "low", "medium"} {
		if budget <= thinkingBudgets[effort] {
			return effort
		}
	}
	return "high"
}

// encodeInteractionsTools encodes the tools.
func encodeInteractionsTools(tools []llm.Tool) rawjson.Value {
	return wire.EncodeTools(tools, func(t llm.Tool) rawjson.Value {
		o := rawjson.NewObject("type", "function")
		wire.SetToolName(o, t)
		o.Set("parameters", rawjson.NonEmptyObject(t.Schema))
		return o.Bytes()
	})
}

// encodeInteractionsToolChoice returns the value of tool_choice; nil when the settings have
// none.
func encodeInteractionsToolChoice(choice string) rawjson.Value {
	switch choice {
	case "":
		return nil
	case "auto", "none":
		return rawjson.AppendString(nil, choice)
	case "required":
		return rawjson.Value(`"any"`)
	}
	return rawjson.NewObject("allowed_tools", rawjson.NewObject("mode", "any", "tools", rawjson.ArrayOfStrings(choice)).Bytes()).Bytes()
}
