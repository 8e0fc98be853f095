package openai

import (
	"strings"

	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
)

// outlineResponses returns the outline of a request body. Consecutive items of one side
// are one message.
func outlineResponses(body rawjson.Value) []wire.OutlineItem {
	var list []wire.OutlineItem
	group, before := 0, ""
	waiting := map[string]bool{} // calls whose results the client owes
	for i, item := range rawjson.Indexed(body.Get("input")) {
		s := wire.OutlineItem{Kind: wire.OutlineOther, Path: wire.Path("input", i), CallID: item.Get("call_id").Text()}
		switch kind := item.Get("type").Text(); {
		case isClientResult(item, waiting):
			s.Kind = wire.OutlineResult
		case awaitsResult(item):
			s.Kind, s.FromModel = wire.OutlineCall, true
			waiting[s.CallID] = true
		case kind == "reasoning":
			s.Kind, s.FromModel = wire.OutlineReasoning, true
		case kind == "message" || kind == "":
			s.Kind, s.FromModel = wire.OutlineText, item.Get("role").Text() == "assistant"
			s.Empty = wire.IsBlankContent(item.Get("content"))
		default:
			s.FromModel = true
		}
		side := map[bool]string{true: "model", false: "user"}[s.FromModel]
		if s.Kind == wire.OutlineResult {
			side = "tool"
		}
		if side != before {
			group, before = group+1, side
		}
		s.Message = group
		list = append(list, s)
	}
	return list
}

// responsesRules is what the Responses API refuses.
var responsesRules = []wire.Rule{
	{
		Name:     "reasoning-without-item",
		Evidence: `OpenAI 400: "Item 'rs_…' of type 'reasoning' was provided without its required following item"`,
		Find: func(c *wire.Checker) {
			for i, s := range c.Outline {
				if s.Kind == wire.OutlineReasoning && (i+1 == len(c.Outline) || !c.Outline[i+1].FromModel) {
					c.Report(s.Path, "", "reasoning goes back without the item that followed it")
				}
			}
		},
	},
	{
		Name:     "summary-missing",
		Evidence: `OpenAI 400: "Missing required parameter: 'input[…].summary'"`,
		Find: func(c *wire.Checker) {
			for i, item := range rawjson.Indexed(c.Body.Get("input")) {
				if item.Get("type").Text() == "reasoning" && item.Get("summary").Kind() != rawjson.KindArray {
					c.Report(wire.Path("input", i), "", "reasoning goes back without its summary, which may be [] and must be there")
				}
			}
		},
	},
	{
		Name:     "item-id-not-stored",
		Evidence: `OpenAI 404: "Item with id 'rs_…' not found. Items are not persisted when store is set to false"`,
		Find: func(c *wire.Checker) {
			if string(c.Body.Get("store")) != "false" || !isOpenAI(c.Provider) {
				return
			}
			for i, item := range rawjson.Indexed(c.Body.Get("input")) {
				if item.Get("type").Text() == "reasoning" && item.Get("id").Text() != "" && item.Get("encrypted_content").Text() == "" {
					c.Report(wire.Path("input", i), "", "reasoning goes back by its id alone, and the provider has not stored it")
				}
			}
		},
	},
}

// isOpenAI reports whether a provider serves OpenAI's own API.
func isOpenAI(name string) bool {
	return strings.HasPrefix(name, "openai") || strings.HasPrefix(name, "azure")
}
