package providers

import (
	"strings"

	"github.com/tract-vcs/tract/internal/llm/rawjson"
)

// outlineInteractions says what a request body of the interactions dialect says. A
// run of steps of one side is a message.
func outlineInteractions(body rawjson.Value) []said {
	var list []said
	group, before := 0, ""
	for i, step := range numbered(body.Get("input")) {
		kind := step.Get("type").Text()
		s := said{what: saidOther, path: at("input", i), model: true}
		side := "model"
		switch {
		case kind == "function_call":
			s.what, s.id = saidCall, step.Get("id").Text()
		case kind == "function_result":
			s.what, s.id, s.model = saidResult, step.Get("call_id").Text(), false
			side = "tool"
		case kind == "thought":
			s.what = saidThought
		case kind == interactionsOutput, kind == "user_input":
			s.what, s.model = saidText, kind == interactionsOutput
			s.empty = interactionsBlank(step.Get("content"))
			side = strings.TrimSuffix(kind, "_output")
		}
		if side != before {
			group, before = group+1, side
		}
		s.group = group
		list = append(list, s)
	}
	return list
}

// interactionsBlank tells whether contents say nothing.
func interactionsBlank(list rawjson.Value) bool {
	for c := range list.Elements() {
		if c.Get("type").Text() != "text" || strings.TrimSpace(c.Get("text").Text()) != "" {
			return false
		}
	}
	return true
}

// interactionsRules is what the Interactions API refuses.
var interactionsRules = []rule{
	{
		name:     "thought-signature-missing",
		evidence: "https://ai.google.dev/gemini-api/docs/interactions/thinking: a thought step always has its signature, and goes back with it",
		find: func(c *checking) {
			for i, step := range numbered(c.body.Get("input")) {
				if step.Get("type").Text() == "thought" && step.Get("signature").Text() == "" {
					c.found(at("input", i), "", "a thought goes back without its signature")
				}
			}
		},
	},
	mustSay("no-input", "https://ai.google.dev/api/interactions-api: input is required", "input"),
}
