package fakeprovider

import (
	"encoding/json"
	"regexp"
	"strings"
)

// dialect is the API of a request.
type dialect int

const (
	messagesAPI dialect = iota
	responsesAPI
	chatAPI
	geminiAPI
)

// request is what a script needs of a request, in any dialect.
type request struct {
	dialect  dialect
	model    string
	system   string
	messages []message
	tools    map[string]string // schema by name
	spaces   map[string]string // namespace of a tool by name
	stream   bool
	reasons  bool   // the client wants reasoning
	schema   bool   // the client wants JSON
	spawned  string // id of the newest sub-agent that a tool result names
	size     int    // bytes of the body
}

type message struct{ role, text string }

type object = map[string]any

// parseRequest reads a body.
func parseRequest(d dialect, body []byte) (*request, error) {
	var o object
	if err := json.Unmarshal(body, &o); err != nil {
		return nil, err
	}
	r := &request{dialect: d, tools: map[string]string{}, spaces: map[string]string{}, size: len(body)}
	r.model, _ = o["model"].(string)
	r.stream, _ = o["stream"].(bool)
	for _, t := range list(o["tools"]) {
		r.addTool(t, "")
		for _, f := range list(member(t, "functionDeclarations")) {
			r.addTool(f, "")
		}
	}
	switch d {
	case messagesAPI:
		r.system = text(o["system"])
		kind, _ := member(o["thinking"], "type").(string)
		r.reasons = kind != "" && kind != "disabled"
		r.schema = member(o["output_config"], "format") != nil
		r.addMessages(list(o["messages"]))
	case chatAPI:
		r.reasons = true
		r.addMessages(list(o["messages"]))
	case responsesAPI:
		r.system, _ = o["instructions"].(string)
		r.reasons = o["reasoning"] != nil
		if s, ok := o["input"].(string); ok {
			r.messages = append(r.messages, message{"user", s})
		}
		r.addItems(list(o["input"]))
	case geminiAPI:
		r.system = text(member(o["systemInstruction"], "parts"))
		r.schema = member(o["generationConfig"], "responseMimeType") == "application/json"
		r.reasons = !r.schema
		for _, c := range list(o["contents"]) {
			role, _ := member(c, "role").(string)
			if role == "model" {
				role = "assistant"
			}
			r.messages = append(r.messages, message{role, text(member(c, "parts"))})
		}
	}
	return r, nil
}

func (r *request) addTool(v any, space string) {
	if f := member(v, "function"); f != nil {
		v = f
	}
	name, _ := member(v, "name").(string)
	if member(v, "type") == "namespace" {
		for _, t := range list(member(v, "tools")) {
			r.addTool(t, name)
		}
		return
	}
	if name == "" {
		return
	}
	r.tools[name] = encode(v)
	if space != "" {
		r.spaces[name] = space
	}
}

func (r *request) addMessages(all []any) {
	for _, m := range all {
		role, _ := member(m, "role").(string)
		if role == "system" || role == "developer" {
			r.system += text(member(m, "content"))
			continue
		}
		r.messages = append(r.messages, message{role, text(member(m, "content"))})
	}
}

var agentID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`)

// addItems adds the input items of the responses API. Items of the model that follow each
// other are one message.
func (r *request) addItems(items []any) {
	previous := ""
	for _, item := range items {
		kind, _ := member(item, "type").(string)
		role, _ := member(item, "role").(string)
		switch {
		case role == "assistant" || kind == "reasoning" || kind == "function_call" || kind == "custom_tool_call" || kind == "item_reference":
			role = "assistant"
		case strings.HasSuffix(kind, "_call_output"):
			role = "tool"
			if id := agentID.FindString(encode(member(item, "output"))); id != "" {
				r.spawned = id
			}
		case role == "system" || role == "developer":
			r.system += text(member(item, "content"))
			continue
		}
		if role == "user" || role != previous {
			r.messages = append(r.messages, message{role, text(member(item, "content"))})
		}
		previous = role
	}
}

// text returns all text in the content of a message, without that of tool results.
func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []any:
		var all strings.Builder
		for _, part := range v {
			all.WriteString(text(part) + "\n")
		}
		return all.String()
	case object:
		if v["type"] == "tool_result" || v["functionResponse"] != nil {
			return ""
		}
		s, _ := v["text"].(string)
		return s
	}
	return ""
}

// member returns a member of an object; nil: v is none, or has none of that name.
func member(v any, name string) any {
	o, _ := v.(object)
	return o[name]
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}
