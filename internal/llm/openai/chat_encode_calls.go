package openai

import (
	"bytes"
	"slices"
	"strings"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
)

// addCall adds a call. A tool that the server ran is sent back only to a server that is not
// strict.
func (m *chatMessageEncoder) addCall(b content.ToolCall) {
	own := m.Owns(b)
	extra := rawjson.Value(nil)
	if own && !m.Quirks.Strict {
		extra = rawjson.Value(b.Form().Extra)
	}
	var o rawjson.Object
	switch {
	case b.Server:
		if !m.Quirks.Strict {
			m.addServerTool(b)
		}
		return
	case own && b.Form().Type == typeFunctionCall:
		m.functionCall = bytes.Clone(m.encodeFunction(b, "arguments", extra.Get("function")))
		return
	}
	if b.CallID != "" {
		o.SetString("id", m.CallID(b.CallID))
	}
	key, argumentsMember := "function", "arguments"
	switch {
	case !own:
		o.SetString("type", key)
	case b.Form().Type == "custom":
		key, argumentsMember = "custom", "input"
		fallthrough
	case b.Form().Type != "":
		o.SetString("type", b.Form().Type)
	}
	o.Set(key, m.encodeFunction(b, argumentsMember, extra.Get(key)))
	if own && m.CanOpen(b.Form().Seal) && !m.Quirks.Strict {
		o.Set("extra_content", withGoogleSeal(extra.Get("extra_content"), b.Form().Seal.Data))
	}
	o.Merge(rawjson.Without(extra, extraMessage, extraJSONArguments, key))
	m.calls.Add(o.Bytes())
}

// encodeFunction returns the object with the name and the arguments of a call; argumentsMember is
// the name of the member for the arguments. Arguments from another dialect that are not JSON are
// wrapped in an object.
func (m *chatMessageEncoder) encodeFunction(b content.ToolCall, argumentsMember string, extra rawjson.Value) rawjson.Value {
	own := m.Owns(b)
	var o rawjson.Object
	o.SetNonEmpty("name", b.Name)
	v, err := rawjson.Parse([]byte(b.Arguments))
	switch {
	case own && err == nil && rawjson.Value(b.Form().Extra).Get(extraJSONArguments).Bool():
		o.Set(argumentsMember, v)
	case own && b.Arguments == "" && extra.Get(argumentsMember) != nil: // it was null
	case own || err == nil:
		o.SetString(argumentsMember, b.Arguments)
	case strings.TrimSpace(b.Arguments) == "":
		o.SetString(argumentsMember, "{}")
	default:
		o.SetString(argumentsMember, string(rawjson.NewObject("input", b.Arguments).Bytes()))
	}
	return o.Merge(extra).Bytes()
}

// addServerTool adds the call of a tool that the server ran.
func (m *chatMessageEncoder) addServerTool(b content.ToolCall) {
	var o rawjson.Object
	form := b.Form()
	o.SetNonEmpty("type", form.Type)
	o.SetNonEmpty("id", form.ID)
	o.SetNonEmpty("arguments", b.Arguments)
	if b.Name != form.Type {
		o.SetString("name", b.Name)
	}
	o.Merge(rawjson.Without(form.Extra, extraMessage))
	m.serverTools, m.serverToolIDs = append(m.serverTools, o), append(m.serverToolIDs, b.CallID)
}

// addServerResult adds the result of a tool that the server ran.
func (m *chatMessageEncoder) addServerResult(r content.ToolResult) {
	i := slices.Index(m.serverToolIDs, r.CallID)
	if i < 0 || !m.Owns(r) || !r.Server {
		return
	}
	if r.Text != "" {
		m.serverTools[i].SetString("output", r.Text)
	}
	m.serverTools[i].Merge(rawjson.Without(r.Form().Extra, extraMessage))
}
