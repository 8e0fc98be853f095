package openai

import (
	"strings"

	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
)

// outlineResponsesInput returns the outline of the input of a request body.
func outlineResponsesInput(body rawjson.Value) []wire.OutlineItem {
	clientCalls := map[string]bool{} // ids of calls that need a result from the client
	return wire.OutlineItems(body, "input", func(s *wire.OutlineItem) {
		s.CallID = s.JSON.Get("call_id").Text()
		switch kind := s.JSON.Get("type").Text(); {
		case isClientResult(s.JSON, clientCalls[s.CallID]):
			s.Kind, s.FromModel = wire.OutlineResult, false
		case isClientCall(s.JSON):
			s.Kind = wire.OutlineCall
			clientCalls[s.CallID] = true
		case kind == "reasoning":
			s.Kind = wire.OutlineReasoning
		case kind == "message" || kind == "":
			s.Kind, s.FromModel = wire.OutlineText, s.JSON.Get("role").Text() == "assistant"
			s.Empty = wire.IsBlankContent(s.JSON.Get("content"))
		}
	})
}

// responsesRules are the rules for requests that the Responses API refuses.
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
			for _, s := range c.Outline {
				if s.Kind == wire.OutlineReasoning && s.JSON.Get("summary").Kind() != rawjson.KindArray {
					c.Report(s.Path, "", "reasoning goes back without its summary, which may be [] and must be there")
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
			for _, s := range c.Outline {
				if s.Kind == wire.OutlineReasoning && s.JSON.Get("id").Text() != "" && s.JSON.Get("encrypted_content").Text() == "" {
					c.Report(s.Path, "", "reasoning goes back by its id alone, and the provider has not stored it")
				}
			}
		},
	},
}

// isOpenAI reports whether a provider serves OpenAI's own API.
func isOpenAI(name string) bool {
	return strings.HasPrefix(name, "openai") || strings.HasPrefix(name, "azure")
}
