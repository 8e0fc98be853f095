package google

import (
	"strings"

	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
)

// outlineInteractionsInput returns the outline of the input of a request body.
func outlineInteractionsInput(body rawjson.Value) []wire.OutlineItem {
	return wire.OutlineItems(body, "input", func(s *wire.OutlineItem) {
		switch kind := s.JSON.Get("type").Text(); kind {
		case "function_call":
			s.Kind, s.CallID = wire.OutlineCall, s.JSON.Get("id").Text()
		case "function_result":
			s.Kind, s.CallID, s.FromModel = wire.OutlineResult, s.JSON.Get("call_id").Text(), false
		case "thought":
			s.Kind = wire.OutlineReasoning
		case typeModelOutput, "user_input":
			s.Kind, s.FromModel = wire.OutlineText, kind == typeModelOutput
			s.Empty = isBlankContents(s.JSON.Get("content"))
		}
	})
}

// isBlankContents reports whether a list of contents has nothing but blank text.
func isBlankContents(list rawjson.Value) bool {
	for c := range list.Elements() {
		if c.Get("type").Text() != "text" || strings.TrimSpace(c.Get("text").Text()) != "" {
			return false
		}
	}
	return true
}

// interactionsRules are the rules for requests that the Interactions API refuses.
var interactionsRules = []wire.Rule{
	{
		Name:     "thought-signature-missing",
		Evidence: "https://ai.google.dev/gemini-api/docs/interactions/thinking: a thought step always has its signature, and goes back with it",
		Find: func(c *wire.Checker) {
			for _, s := range c.Outline {
				if s.Kind == wire.OutlineReasoning && s.JSON.Get("signature").Text() == "" {
					c.Report(s.Path, "", "a thought step goes back without its signature")
				}
			}
		},
	},
	wire.RequireMessages("no-input", "https://ai.google.dev/api/interactions-api: input is required", "input"),
}
