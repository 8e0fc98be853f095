package anthropic

import (
	"strconv"
	"strings"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
	"github.com/tract-vcs/tract/llm"
)

// SetThinking sets how much the model is to reason, if the settings say so, and returns
// the output limit. The limit on the wire counts reasoning too and has to exceed the
// budget: a limit that does not is taken as that of the answer alone.
func SetThinking(t wire.Target, s llm.Settings, body *rawjson.Object) (limit int) {
	limit = s.MaxOutputTokens
	if limit <= 0 {
		limit = defaultMaxTokens
	}
	r := s.Reasoning
	budget := r.MaxTokens
	switch {
	case budget > 0:
		if limit <= budget {
			limit += budget
		}
	case r.Effort == wire.EffortNone || r.Effort == wire.EffortBetweenTools:
		body.Set("thinking", rawjson.NewObject("type", strings.Replace(r.Effort, wire.EffortNone, "disabled", 1)).Bytes())
		return limit
	case wire.EffortBudgets[r.Effort] == 0:
		return limit
	case isAdaptive(t.Model):
		body.Set("output_config", rawjson.NewObject("effort", strings.Replace(r.Effort, "minimal", "low", 1)).Bytes())
		o := rawjson.NewObject("type", "adaptive")
		if !r.Hidden && r.Summary != "none" {
			o.SetString("display", "summarized")
		}
		body.Set("thinking", o.Bytes())
		return limit
	default:
		budget = wire.EffortBudgets[r.Effort]
		if s.MaxOutputTokens <= 0 {
			limit += budget
		} else if least := wire.EffortBudgets["minimal"]; limit <= least {
			return limit // there is no room to think
		} else if budget >= limit {
			budget = max(limit/2, least)
		}
	}
	body.Set("thinking", rawjson.NewObject("type", "enabled", "budget_tokens", budget).Bytes())
	return limit
}

// LoopSettings returns the settings of a request as its open tool loop allows them. With a
// thinking budget the messages of the loop have to begin with reasoning; those of another
// dialect or family cannot, so no thinking is asked for until the loop closes.
func LoopSettings(t wire.Target, req *llm.Request) llm.Settings {
	s := req.Settings
	if isAdaptive(t.Model) || wire.IsReasoningOff(s.Reasoning) {
		return s
	}
	for _, m := range req.Messages[wire.OpenTurnStart(req.Messages):] {
		for _, b := range m.Blocks {
			call, isCall := b.(content.ToolCall)
			_, isReasoning := b.(content.Reasoning)
			seal := b.Form().Seal
			if isCall && !call.Server && !t.Owns(b) || isReasoning && seal.Data != "" && !t.CanOpen(seal) {
				s.Reasoning.Effort, s.Reasoning.MaxTokens = "", 0
				return s
			}
		}
	}
	return s
}

// claudeVersion returns the numbers in the name of a Claude model, without dates; claude
// reports whether it is one.
func claudeVersion(model string) (version []int, claude bool) {
	name := strings.ToLower(model)
	at := strings.Index(name, "claude")
	if at < 0 {
		return nil, false
	}
	for _, word := range strings.FieldsFunc(name[at:], func(r rune) bool { return r < '0' || r > '9' }) {
		if n, err := strconv.Atoi(word); err == nil && len(word) <= 2 {
			version = append(version, n)
		}
	}
	return version, true
}

// isAdaptive reports whether a model takes an effort. Anthropic's models up to version
// 4.5, and all of other vendors, want a budget.
func isAdaptive(model string) bool {
	version, claude := claudeVersion(model)
	name := strings.ToLower(model)
	switch {
	case !claude:
		return false
	case strings.Contains(name, "fable"), strings.Contains(name, "mythos"): // named without a number at first
		return true
	case len(version) == 0:
		return false
	case version[0] != 4:
		return version[0] > 4
	}
	return len(version) > 1 && version[1] > 5
}

// InterleavedBeta lets a model reason between tool calls.
const InterleavedBeta = "interleaved-thinking-2025-05-14"

// NeedsInterleavedBeta reports whether a model reasons between tool calls only when
// InterleavedBeta is sent: version 4 with a thinking budget, where adaptive thinking does
// not do so unasked. Other models ignore or refuse it.
// https://platform.claude.com/docs/en/build-with-claude/extended-thinking#interleaved-thinking
func NeedsInterleavedBeta(model string, thinking, tools rawjson.Value) bool {
	version, _ := claudeVersion(model)
	if len(version) == 0 || version[0] != 4 || thinking.Get("type").Text() != "enabled" || rawjson.IsEmpty(tools) {
		return false
	}
	return !isAdaptive(model) || version[1] == 6 && strings.Contains(strings.ToLower(model), "sonnet")
}

func encodeTools(tools []llm.Tool) rawjson.Value {
	return wire.EncodeTools(tools, func(t llm.Tool) rawjson.Value {
		var o rawjson.Object
		wire.SetToolName(&o, t)
		o.Set("input_schema", wire.SchemaOr(t, `{"type":"object"}`))
		return o.Bytes()
	})
}

// encodeToolChoice returns the tool choice; nil when the settings have none.
func encodeToolChoice(choice string) rawjson.Value {
	switch choice {
	case "":
		return nil
	case "auto", "none":
		return rawjson.NewObject("type", choice).Bytes()
	case "required":
		return rawjson.NewObject("type", "any").Bytes()
	}
	return rawjson.NewObject("type", "tool", "name", choice).Bytes()
}
