package providers

import (
	"github.com/tract-vcs/tract/internal/llm/rawjson"
)

// outlineOllama says what a request body of the ollama dialect says. Calls have
// no ids there: they are told apart by name and order.
func outlineOllama(body rawjson.Value) []said {
	var list []said
	made, answered := counter{}, counter{}
	for i, m := range numbered(body.Get("messages")) {
		role := m.Get("role").Text()
		s := said{group: i, path: at("messages", i), model: role == "assistant"}
		if role == "tool" {
			s.what, s.id = saidResult, answered.next(m.Get("tool_name").Text())
			list = append(list, s)
			continue
		}
		calls := 0
		for j, call := range numbered(m.Get("tool_calls")) {
			id := made.next(call.Get("function", "name").Text())
			list = append(list, said{what: saidCall, id: id, group: i, path: at("messages", i, "tool_calls", j), model: true})
			calls++
		}
		if calls == 0 {
			s.empty = isBlank(m.Get("content")) && isBlank(m.Get("thinking")) && isBlank(m.Get("images"))
			list = append(list, s)
		}
	}
	return list
}
