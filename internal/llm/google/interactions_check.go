package google

import (
	"strings"

	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
)

// outlineInteractions returns the outline of a request body. Consecutive steps of one side
// are one message.
func outlineInteractions(body rawjson.Value) []wire.OutlineItem {
	var list []wire.OutlineItem
	group, before := 0, ""
	for i, step := range rawjson.Indexed(body.Get("input")) {
		kind := step.Get("type").Text()
		s := wire.OutlineItem{Kind: wire.OutlineOther, Path: wire.Path("input", i), FromModel: true}
		side := "model"
		switch {
		case kind == "function_call":
			s.Kind, s.CallID = wire.OutlineCall, step.Get("id").Text()
		case kind == "function_result":
			s.Kind, s.CallID, s.FromModel = wire.OutlineResult, step.Get("call_id").Text(), false
			side = "tool"
		case kind == "thought":
			s.Kind = wire.OutlineReasoning
		case kind == typeModelOutput, kind == "user_input":
			s.Kind, s.FromModel = wire.OutlineText, kind == typeModelOutput
			s.Empty = isBlankContents(step.Get("content"))
			side = strings.TrimSuffix(kind, "_output")
		}
		if side != before {
			group, before = group+1, side
		}
		s.Message = group
		list = append(list, s)
	}
	return list
}

// isBlankContents reports whether contents have no text.
func isBlankContents(list rawjson.Value) bool {
	for c := range list.Elements() {
		if c.Get("type").Text() != "text" || strings.TrimSpace(c.Get("text").Text()) != "" {
			return false
		}
	}
	return true
}

// interactionsRules are what the Interactions API refuses.
var interactionsRules = []wire.Rule{
	{
		Name:     "thought-signature-missing",
		Evidence: "https://ai.google.dev/gemini-api/docs/interactions/thinking: a thought step always has its signature, and goes back with it",
		Find: func(c *wire.Checker) {
			for i, step := range rawjson.Indexed(c.Body.Get("input")) {
				if step.Get("type").Text() == "thought" && step.Get("signature").Text() == "" {
					c.Report(wire.Path("input", i), "", "a thought step goes back without its signature")
				}
			}
		},
	},
	wire.RequireMessages("no-input", "https://ai.google.dev/api/interactions-api: input is required", "input"),
}
