package ollama

import (
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
)

// outlineMessages returns the outline of the messages of a request body. Calls have no ids;
// they are told apart by name and order.
func outlineMessages(body rawjson.Value) []wire.OutlineItem {
	made, answered := wire.CallCounter{}, wire.CallCounter{}
	callID := func(call rawjson.Value) string { return made.Next(call.Get("function", "name").Text()) }
	resultID := func(m rawjson.Value) string { return answered.Next(m.Get("tool_name").Text()) }
	return wire.OutlineMessages(body, callID, resultID, "content", "thinking", "images")
}
