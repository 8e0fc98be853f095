package providers

import (
	"strings"

	"github.com/tract-vcs/tract/internal/llm/rawjson"
)

// outlineResponses says what a request body of the responses dialect says. A run
// of items of one side is a message.
func outlineResponses(body rawjson.Value) []said {
	var list []said
	group, before := 0, ""
	waiting := map[string]bool{} // calls whose results the asker owes
	for i, item := range numbered(body.Get("input")) {
		s := said{what: saidOther, path: at("input", i), id: item.Get("call_id").Text()}
		switch kind := item.Get("type").Text(); {
		case responsesAnswers(item, waiting):
			s.what = saidResult
		case responsesWaits(item):
			s.what, s.model = saidCall, true
			waiting[s.id] = true
		case kind == "reasoning":
			s.what, s.model = saidThought, true
		case kind == "message" || kind == "":
			s.what, s.model = saidText, item.Get("role").Text() == "assistant"
			s.empty = isBlank(item.Get("content"))
		default:
			s.model = true
		}
		side := map[bool]string{true: "model", false: "user"}[s.model]
		if s.what == saidResult {
			side = "tool"
		}
		if side != before {
			group, before = group+1, side
		}
		s.group = group
		list = append(list, s)
	}
	return list
}

// responsesRules is what the Responses API refuses.
var responsesRules = []rule{
	{
		name:     "reasoning-without-item",
		evidence: `OpenAI 400: "Item 'rs_…' of type 'reasoning' was provided without its required following item"`,
		find: func(c *checking) {
			for i, s := range c.said {
				if s.what == saidThought && (i+1 == len(c.said) || !c.said[i+1].model) {
					c.found(s.path, "", "a thought goes back without the item that followed it")
				}
			}
		},
	},
	{
		name:     "summary-missing",
		evidence: `OpenAI 400: "Missing required parameter: 'input[…].summary'"`,
		find: func(c *checking) {
			for i, item := range numbered(c.body.Get("input")) {
				if item.Get("type").Text() == "reasoning" && item.Get("summary").Kind() != rawjson.KindArray {
					c.found(at("input", i), "", "a thought goes back without its summary, which may be [] and must be there")
				}
			}
		},
	},
	{
		name:     "item-id-not-stored",
		evidence: `OpenAI 404: "Item with id 'rs_…' not found. Items are not persisted when store is set to false"`,
		find: func(c *checking) {
			if string(c.body.Get("store")) != "false" || !isOpenAI(c.provider) {
				return
			}
			for i, item := range numbered(c.body.Get("input")) {
				if item.Get("type").Text() == "reasoning" && item.Get("id").Text() != "" && item.Get("encrypted_content").Text() == "" {
					c.found(at("input", i), "", "a thought goes back by its id alone, and the provider has not stored it")
				}
			}
		},
	},
}

// isOpenAI tells whether a provider serves OpenAI's own API.
func isOpenAI(name string) bool {
	return strings.HasPrefix(name, "openai") || strings.HasPrefix(name, "azure")
}
