package cohere

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
)

// Version 1 of the chat (https://docs.cohere.com/v1/reference/chat) is read, and never
// written: the functions of this file turn its requests and responses into those of
// version 2.

// convertV1Request returns the request of version 2 for a request of version 1.
func convertV1Request(v rawjson.Value) rawjson.Value {
	r := v1Reader{}
	if preamble := v.Get("preamble"); preamble.Text() != "" {
		r.addMessage("system", preamble)
	}
	for message := range v.Get("chat_history").Elements() {
		r.addHistoryMessage(message)
	}
	r.addResults(v.Get("tool_results"))
	if message := v.Get("message"); message.Text() != "" {
		r.addMessage("user", message)
	}
	body := rawjson.NewObject("messages", r.list.Bytes(), "tools", convertV1Tools(v.Get("tools")))
	return body.Merge(rawjson.Without(v, "message", "chat_history", "preamble", "tool_results", "tools")).Bytes()
}

// v1Reader reads the conversation of a request of version 1.
type v1Reader struct {
	list  rawjson.Array
	calls int
	open  []rawjson.Value // calls without a result, with their ids
}

// addMessage adds a message with a text, which may be empty.
func (r *v1Reader) addMessage(role string, text rawjson.Value) {
	r.list.Add(rawjson.NewObject("role", role, "content", text).Bytes())
}

// addHistoryMessage adds a message of chat_history.
func (r *v1Reader) addHistoryMessage(v rawjson.Value) {
	text := v.Get("message")
	switch v.Get("role").Text() {
	case "SYSTEM":
		r.addMessage("system", text)
	case "USER":
		r.addMessage("user", text)
	case "TOOL":
		r.addResults(v.Get("tool_results"))
	default:
		o := rawjson.NewObject("role", "assistant")
		if text.Text() != "" {
			o.Set("content", text)
		}
		calls := convertV1Calls(v.Get("tool_calls"), fmt.Sprintf("call-%d", r.calls))
		for call := range calls.Elements() {
			r.open = append(r.open, call)
			r.calls++
		}
		o.Set("tool_calls", rawjson.NonEmpty(calls))
		r.list.Add(o.Bytes())
	}
}

// addResults adds results.
func (r *v1Reader) addResults(list rawjson.Value) {
	for v := range list.Elements() {
		o := rawjson.NewObject("role", "tool", "content", string(v.Get("outputs")))
		o.Set("tool_call_id", r.takeCall(v.Get("call")).Get("id"))
		r.list.Add(o.Bytes())
	}
}

// takeCall removes the call that a result repeats from open, and returns it; nil if there is none. A
// call has no id: it is the first with the same name and arguments, or else the first with the
// same name, because some clients repeat the name alone.
func (r *v1Reader) takeCall(repeated rawjson.Value) (call rawjson.Value) {
	sameName := func(call rawjson.Value) bool {
		return call.Get("function", "name").Text() == repeated.Get("name").Text()
	}
	same := slices.IndexFunc(r.open, func(call rawjson.Value) bool {
		return sameName(call) && rawjson.Equal(rawjson.Value(call.Get("function", "arguments").Text()), repeated.Get("parameters"))
	})
	if same < 0 {
		same = slices.IndexFunc(r.open, sameName)
	}
	if same >= 0 {
		call = r.open[same]
		r.open = slices.Delete(r.open, same, same+1)
	}
	return call
}

// convertV1Calls returns calls in the form of version 2. The id of a call is idPrefix, a slash and
// the index of the call.
func convertV1Calls(list rawjson.Value, idPrefix string) rawjson.Value {
	var calls rawjson.Array
	for i, v := range rawjson.Indexed(list) {
		f := rawjson.NewObject("name", v.Get("name"), "arguments", string(v.Get("parameters")))
		calls.Add(rawjson.NewObject("id", fmt.Sprintf("%s/%d", idPrefix, i), "type", "function", "function", f.Bytes()).Bytes())
	}
	return calls.Bytes()
}

// convertV1Tools returns definitions of tools in the form of version 2.
func convertV1Tools(list rawjson.Value) rawjson.Value {
	types := map[string]string{"str": "string", "int": "integer", "float": "number", "bool": "boolean", "list": "array", "dict": "object"}
	var tools rawjson.Array
	for v := range list.Elements() {
		var properties rawjson.Object
		var required rawjson.Array
		for name, p := range v.Get("parameter_definitions").Members() {
			kind, _, _ := strings.Cut(strings.ToLower(p.Get("type").Text()), "[")
			if known, ok := types[kind]; ok {
				kind = known
			}
			property := rawjson.NewObject("type", kind, "description", p.Get("description"))
			properties.Set(name, property.Bytes())
			if p.Get("required").Bool() {
				required.AddString(name)
			}
		}
		schema := rawjson.NewObject("type", "object", "properties", properties.Bytes(), "required", rawjson.NonEmpty(required.Bytes()))
		f := rawjson.NewObject("name", v.Get("name"), "description", v.Get("description"), "parameters", schema.Bytes())
		tools.Add(rawjson.NewObject("type", "function", "function", f.Bytes()).Bytes())
	}
	return rawjson.NonEmpty(tools.Bytes())
}

// isV1Response reports whether a body is a response of version 1.
func isV1Response(v rawjson.Value) bool {
	return v.Get("text").Kind() == rawjson.KindString && v.Get("message") == nil
}

// convertV1Response returns the response of version 2 for a response of version 1.
func convertV1Response(v rawjson.Value) rawjson.Value {
	id := v.Get("generation_id")
	message := rawjson.NewObject("role", "assistant", "content", v.Get("text"), "tool_calls", rawjson.NonEmpty(convertV1Calls(v.Get("tool_calls"), id.Text())))
	message.Merge(rawjson.Without(v, "text", "tool_calls", "generation_id", "response_id", "finish_reason", "meta", "chat_history", "is_search_required"))
	return rawjson.NewObject("id", id, "message", message.Bytes(), "finish_reason", v.Get("finish_reason"), "usage", v.Get("meta"), "error", v.Get("error")).Bytes()
}

// readV1Event reads an event of a stream of version 1. The last one has the whole response;
// the text before it is read as it comes, and the rest from the last one.
func (c *reader) readV1Event(v rawjson.Value) error {
	switch v.Get("event_type").Text() {
	case "stream-start":
		c.readMessage(v.Get("generation_id"), nil)
		return nil
	case "text-generation":
		c.streamed = true
		c.addDelta(0, rawjson.NewObject("text", v.Get("text")).Bytes())
		return nil
	case "stream-end":
		body := v.Get("response")
		if c.streamed {
			body = rawjson.NewObject("text", "").Merge(body).Bytes()
		}
		if reason := v.Get("finish_reason"); body.Get("finish_reason") == nil {
			body = rawjson.NewObject("finish_reason", reason).Merge(body).Bytes()
		}
		return c.ReadBody(body)
	}
	if v.Get("error") != nil {
		return wire.NewAPIError(c.Provider, v)
	}
	return nil
}
