package providers

import (
	"github.com/tract-vcs/tract/llm/rawjson"
)

// outlineConverse says what a request body of the converse dialect says.
func outlineConverse(body rawjson.Value) []said {
	var list []said
	for i, m := range numbered(body.Get("messages")) {
		model, count := m.Get("role").Text() == "assistant", 0
		for j, b := range numbered(m.Get("content")) {
			s := said{what: saidOther, group: i, path: at("messages", i, "content", j), model: model}
			switch {
			case b.Get("toolUse") != nil:
				s.what, s.id = saidCall, b.Get("toolUse", "toolUseId").Text()
			case b.Get("toolResult") != nil:
				s.what, s.id = saidResult, b.Get("toolResult", "toolUseId").Text()
			case b.Get("reasoningContent") != nil:
				s.what = saidThought
			case b.Get("text") != nil:
				s.what, s.empty = saidText, b.Get("text").Text() == ""
			}
			list = append(list, s)
			count++
		}
		if count == 0 {
			list = append(list, said{group: i, path: at("messages", i), empty: true, model: model})
		}
	}
	return list
}

// converseRules is what Bedrock Converse refuses.
var converseRules = []rule{
	{
		name:     "first-message",
		evidence: `Bedrock 400: "A conversation must start with a user message"`,
		find: func(c *checking) {
			if len(c.said) == 0 {
				c.found("messages", "", "there is no message: an instruction alone is not answered")
			} else if c.said[0].model {
				c.found(c.said[0].path, "", "the first message is the model's; one of the user must come before it")
			}
		},
	},
}
