package importers

import (
	"slices"
	"strings"

	"github.com/tract-vcs/tract/internal/llm/rawjson"
)

// detectFormat returns the format of a request body, by what only one of the two has. What
// could be both is OpenAI's, unless it asks a Claude.
func detectFormat(v rawjson.Value) Format {
	if _, api := holder(v); api == "responses" || api == "gemini" {
		return OpenAI // or what is not Anthropic's
	}
	list := v.Get("messages")
	v = rawjson.Without(v, "messages")
	for _, key := range []string{"system", "anthropic_version", "stop_sequences", "thinking"} {
		if v.Get(key) != nil {
			return Anthropic
		}
	}
	for m := range list.Elements() {
		if f := shapeOf(m).format(); f != Auto {
			return f
		}
	}
	if v.Get("tools").At(0).Get("input_schema") != nil || strings.Contains(v.Get("model").Text(), "claude") {
		return Anthropic
	}
	return OpenAI
}

// listShape is what is known of an array of messages.
type listShape struct {
	format Format // empty when it could be both
	items  bool   // it is of the items that OpenAI's Responses take: calls and results are no parts of messages there
}

// add takes one more message into account. When they are items no other counts.
func (l *listShape) add(v rawjson.Value) {
	m := shapeOf(v)
	if l.items = m.isItem(); !l.items && l.format == "" {
		if f := m.format(); f != Auto {
			l.format = f
		}
	}
}

// dialect is what to read the array in when a format is asked for, and the member of a
// request that holds it there.
func (l *listShape) dialect(asked Format) (key, api string) {
	if asked != Auto {
		l.format = asked
	}
	switch {
	case asked != Anthropic && l.items:
		return "input", "responses"
	case l.format == Anthropic:
		return "messages", "messages"
	}
	return "messages", "chat"
}

// messageShape is what the format of a message is detected from.
type messageShape struct {
	role, kind, content rawjson.Value
	own                 bool // it has a member that only OpenAI's have
}

func shapeOf(message rawjson.Value) (m messageShape) {
	for key, v := range message.Members() {
		switch key {
		case "role":
			m.role = v
		case "type":
			m.kind = v
		case "content":
			m.content = v
		case "tool_calls", "function_call", "reasoning_content", "reasoning_details":
			m.own = true
		}
	}
	return m
}

// isItem reports whether it is an item of OpenAI's Responses.
func (m messageShape) isItem() bool {
	if m.role == nil && m.kind != nil {
		return true
	}
	part := m.content.At(0).Get("type").Text()
	return part == "input_text" || part == "output_text"
}

// format is the format of the message, Auto when it could be both.
func (m messageShape) format() Format {
	if m.own || slices.Contains([]string{"system", "developer", "tool", "function"}, m.role.Text()) {
		return OpenAI
	}
	for part := range m.content.Elements() {
		switch part.Get("type").Text() {
		case "tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document", "server_tool_use":
			return Anthropic
		case "image_url", "input_audio", "file":
			return OpenAI
		}
	}
	return Auto
}
