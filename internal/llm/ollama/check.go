package ollama

import (
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
)

// outline returns the outline of a request body. Calls have no ids; they are told apart by
// name and order.
func outline(body rawjson.Value) []wire.OutlineItem {
	var list []wire.OutlineItem
	made, answered := wire.CallCounter{}, wire.CallCounter{}
	for i, m := range rawjson.Indexed(body.Get("messages")) {
		role := m.Get("role").Text()
		s := wire.OutlineItem{Message: i, Path: wire.Path("messages", i), FromModel: role == "assistant"}
		if role == "tool" {
			s.Kind, s.CallID = wire.OutlineResult, answered.Next(m.Get("tool_name").Text())
			list = append(list, s)
			continue
		}
		calls := 0
		for j, call := range rawjson.Indexed(m.Get("tool_calls")) {
			id := made.Next(call.Get("function", "name").Text())
			list = append(list, wire.OutlineItem{Kind: wire.OutlineCall, CallID: id, Message: i, Path: wire.Path("messages", i, "tool_calls", j), FromModel: true})
			calls++
		}
		if calls == 0 {
			s.Empty = wire.IsBlankContent(m.Get("content")) && wire.IsBlankContent(m.Get("thinking")) && wire.IsBlankContent(m.Get("images"))
			list = append(list, s)
		}
	}
	return list
}
