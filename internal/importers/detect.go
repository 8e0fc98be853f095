package importers

import (
	"slices"
	"strings"

	"github.com/tract-vcs/tract/internal/llm/rawjson"
)

// isAnthropicBody reports whether a request body is Anthropic's and not OpenAI's. It looks for
// members that only one of the two has. A body that could be of both is OpenAI's, unless its model
// is a Claude model.
func isAnthropicBody(v rawjson.Value) bool {
	if _, api := conversationMember(v); api == "responses" || api == "gemini" {
		return false
	}
	list := v.Get("messages")
	v = rawjson.Without(v, "messages")
	for _, key := range []string{"system", "anthropic_version", "stop_sequences", "thinking"} {
		if v.Get(key) != nil {
			return true
		}
	}
	for m := range list.Elements() {
		if f := messageShapeOf(m).format(); f != Auto {
			return f == Anthropic
		}
	}
	return v.Get("tools").At(0).Get("input_schema") != nil || strings.Contains(v.Get("model").Text(), "claude")
}

// listShape is the format of an array of messages as far as it is known.
type listShape struct {
	format  Format // empty when it could be both
	isItems bool   // the elements are items of OpenAI's Responses API, in which calls and results are not parts of messages
}

// add takes one more message into account. Once the elements are known to be items, no other
// message matters.
func (l *listShape) add(v rawjson.Value) {
	m := messageShapeOf(v)
	if l.isItems = m.isItem(); !l.isItems && l.format == "" {
		if f := m.format(); f != Auto {
			l.format = f
		}
	}
}

// dialectFor returns the dialect for decoding the array, and the member of a request that holds
// the array in that dialect. requested is the format that the caller asked for, or Auto.
func (l *listShape) dialectFor(requested Format) (member, dialect string) {
	if requested != Auto {
		l.format = requested
	}
	switch {
	case requested != Anthropic && l.isItems:
		return "input", "responses"
	case l.format == Anthropic:
		return "messages", "messages"
	}
	return "messages", "chat"
}

// messageShape has the members of a message from which its format is detected.
type messageShape struct {
	role, kind, content rawjson.Value
	openAIOnly          bool // it has a member that only OpenAI messages have
}

func messageShapeOf(message rawjson.Value) (m messageShape) {
	for key, v := range message.Members() {
		switch key {
		case "role":
			m.role = v
		case "type":
			m.kind = v
		case "content":
			m.content = v
		case "tool_calls", "function_call", "reasoning_content", "reasoning_details":
			m.openAIOnly = true
		}
	}
	return m
}

// isItem reports whether the value is an item of OpenAI's Responses API.
func (m messageShape) isItem() bool {
	if m.role == nil && m.kind != nil {
		return true
	}
	part := m.content.At(0).Get("type").Text()
	return part == "input_text" || part == "output_text"
}

// format returns the format of the message; Auto if it could be both.
func (m messageShape) format() Format {
	if m.openAIOnly || slices.Contains([]string{"system", "developer", "tool", "function"}, m.role.Text()) {
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
