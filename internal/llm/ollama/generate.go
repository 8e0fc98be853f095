package ollama

import (
	"github.com/tract-vcs/tract/internal/llm/rawjson"
)

// generateMessages returns the messages of a body for /api/generate
// (https://docs.ollama.com/api/generate), which has a system text and a prompt in their place.
// A body without either only loads the model.
func generateMessages(v rawjson.Value) rawjson.Value {
	var list rawjson.Array
	if system := v.Get("system"); system.Text() != "" {
		list.Add(rawjson.NewObject("role", "system", "content", system).Bytes())
	}
	if prompt, images := v.Get("prompt"), v.Get("images"); prompt.Text() != "" || !rawjson.IsEmpty(images) {
		o := rawjson.NewObject("role", "user", "content", prompt)
		o.Set("images", rawjson.NonEmpty(images))
		list.Add(o.Bytes())
	}
	return list.Bytes()
}

// messageOf returns the message of a line of a response. A line of /api/generate has the
// parts of its message among its own members.
func messageOf(line rawjson.Value) rawjson.Value {
	if text := line.Get("response"); text.Kind() == rawjson.KindString {
		o := rawjson.NewObject("role", "assistant", "content", text)
		o.Set("thinking", line.Get("thinking"))
		o.Set("tool_calls", line.Get("tool_calls"))
		return o.Bytes()
	}
	return line.Get("message")
}
