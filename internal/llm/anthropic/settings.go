package anthropic

import (
	"strconv"
	"strings"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
	"github.com/tract-vcs/tract/llm"
)

// SetThinking sets the thinking mode, budget or effort of body from the settings, and returns
// max_tokens. The API counts reasoning in max_tokens, which must exceed the budget. If the
// limit of the settings does not exceed it, it is taken as the limit of the answer alone, and
// the budget is added.
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
	case supportsAdaptiveThinking(t.Model):
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
			return limit // the limit leaves no room for reasoning
		} else if budget >= limit {
			budget = max(limit/2, least)
		}
	}
	body.Set("thinking", rawjson.NewObject("type", "enabled", "budget_tokens", budget).Bytes())
	return limit
}

// LoopSettings returns the settings of a request, without reasoning if its open tool loop does
// not allow it. With a thinking budget, the messages of the loop must begin with reasoning.
// Messages from another dialect or model family cannot, so thinking stays off until the loop
// closes.
func LoopSettings(t wire.Target, req *llm.Request) llm.Settings {
	s := req.Settings
	if supportsAdaptiveThinking(t.Model) || wire.IsReasoningOff(s.Reasoning) {
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

// claudeVersion returns the version numbers in the name of a Claude model, without dates. isClaude
// reports whether the name is that of a Claude model.
func claudeVersion(model string) (version []int, isClaude bool) {
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

// supportsAdaptiveThinking reports whether a model accepts an effort (adaptive thinking). Anthropic's models
// up to version 4.5, and all models of other vendors, need a budget.
func supportsAdaptiveThinking(model string) bool {
	version, claude := claudeVersion(model)
	name := strings.ToLower(model)
	switch {
	case !claude:
		return false
	case strings.Contains(name, "fable"), strings.Contains(name, "mythos"): // the first of these have no version number
		return true
	case len(version) == 0:
		return false
	case version[0] != 4:
		return version[0] > 4
	}
	return len(version) > 1 && version[1] > 5
}

// InterleavedBeta is the beta that lets a model reason between tool calls.
const InterleavedBeta = "interleaved-thinking-2025-05-14"

// NeedsInterleavedBeta reports whether a model needs InterleavedBeta to reason between tool
// calls: models of version 4 with a thinking budget do. Models with adaptive thinking do so
// without it, except Sonnet 4.6. Other models ignore or refuse the beta.
// https://platform.claude.com/docs/en/build-with-claude/extended-thinking#interleaved-thinking
func NeedsInterleavedBeta(model string, thinking, tools rawjson.Value) bool {
	version, _ := claudeVersion(model)
	if len(version) == 0 || version[0] != 4 || thinking.Get("type").Text() != "enabled" || rawjson.IsEmpty(tools) {
		return false
	}
	return !supportsAdaptiveThinking(model) || version[1] == 6 && strings.Contains(strings.ToLower(model), "sonnet")
}

// encodeTools encodes the tools.
func encodeTools(tools []llm.Tool) rawjson.Value {
	return wire.EncodeTools(tools, func(t llm.Tool) rawjson.Value {
		var o rawjson.Object
		wire.SetToolName(&o, t)
		o.Set("input_schema", wire.SchemaOr(t, `{"type":"object"}`))
		return o.Bytes()
	})
}

// encodeToolChoice returns the value of tool_choice; nil when the settings have none.
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
