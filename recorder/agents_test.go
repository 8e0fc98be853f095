package recorder_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// said is one message of an agent's history, as the agent keeps it.
type said struct {
	role    string // user, assistant, tool
	text    string
	thought string
	calls   []called
}

// called is a call of an assistant message, or, in a tool message, its result.
type called struct {
	id, name, result string
	city, unit       string
}

// agent keeps a history and sends it as clients do: never twice in the same way.
type agent struct {
	name    string
	dialect string // messages or chat
	system  string
	rng     *rand.Rand
	history []said
	steady  bool // it is never refused
	session bool // it names its session
	plants  []string
	planted int
}

// plant is a secret in its text, another one each time; nothing for an agent that has
// none.
func (a *agent) plant() string {
	if len(a.plants) == 0 {
		return ""
	}
	a.planted++
	return " " + a.plants[a.planted%len(a.plants)]
}

// object writes members in any order.
func (a *agent) object(members ...string) string {
	pairs := [][2]string{}
	for i := 0; i < len(members); i += 2 {
		if members[i+1] != "" {
			pairs = append(pairs, [2]string{members[i], members[i+1]})
		}
	}
	a.rng.Shuffle(len(pairs), func(i, j int) { pairs[i], pairs[j] = pairs[j], pairs[i] })
	var list []string
	for _, p := range pairs {
		list = append(list, text(p[0])+":"+p[1])
	}
	return "{" + strings.Join(list, [2]string{",", ", "}[a.rng.IntN(2)]) + "}"
}

func array(list ...string) string { return "[" + strings.Join(list, ",") + "]" }

func text(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// padded is words as some clients send them: with white space around, or without.
func (a *agent) padded(s string) string {
	return text([]string{s, s, strings.TrimSpace(s), s + "\n", " " + s}[a.rng.IntN(5)])
}

// mark is a mark for caches, which moves from request to request.
func (a *agent) mark() string {
	if a.rng.IntN(4) == 0 {
		return `{"type":"ephemeral"}`
	}
	return ""
}

func (a *agent) arguments(c called) string {
	if a.rng.IntN(3) == 0 {
		return fmt.Sprintf(`{ "unit" : %s, "city":%s , "days": 3.0}`, text(c.unit), text(c.city))
	}
	return fmt.Sprintf(`{"city":%s,"unit":%s,"days":3}`, text(c.city), text(c.unit))
}

// body is the request with the history as it is now.
func (a *agent) body(stream bool) string {
	if a.dialect == "chat" {
		return a.chat(stream)
	}
	return a.messages(stream)
}

func (a *agent) messages(stream bool) string {
	keepThoughts := a.rng.IntN(3) > 0
	var list []string
	for i := range len(a.history) {
		m := a.history[i]
		var parts []string
		part := func(members ...string) {
			parts = append(parts, a.object(append(members, "cache_control", a.mark())...))
		}
		role := "assistant"
		switch m.role {
		case "user", "tool":
			role = "user"
			for _, c := range m.calls {
				result := text(c.result)
				if a.rng.IntN(2) == 0 {
					result = array(a.object("type", `"text"`, "text", a.padded(c.result), "cache_control", a.mark()))
				}
				part("type", `"tool_result"`, "tool_use_id", text(c.id), "content", result)
			}
			a.rng.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
			if m.text != "" && len(m.calls) == 0 && a.rng.IntN(3) == 0 {
				list = append(list, a.object("role", `"user"`, "content", a.padded(m.text)))
				continue
			}
			if m.text != "" {
				part("type", `"text"`, "text", a.padded(m.text))
			}
		default:
			if m.thought != "" && (keepThoughts || i == len(a.history)-2) {
				parts = append(parts, a.object("type", `"thinking"`, "thinking", text(m.thought), "signature", text("sig-"+m.thought)))
			}
			if m.text != "" {
				part("type", `"text"`, "text", a.padded(m.text))
			}
			first := len(parts)
			for _, c := range m.calls {
				part("type", `"tool_use"`, "id", text(c.id), "name", text(c.name), "input", a.arguments(c))
			}
			a.rng.Shuffle(len(parts)-first, func(i, j int) { parts[first+i], parts[first+j] = parts[first+j], parts[first+i] })
		}
		list = append(list, a.object("role", text(role), "content", array(parts...)))
	}
	system := array(a.object("type", `"text"`, "text", text(a.system), "cache_control", a.mark()))
	if a.rng.IntN(2) == 0 {
		system = text(a.system)
	}
	tools := []string{
		a.object("name", `"weather"`, "description", `"Looks."`, "input_schema", `{"type":"object"}`),
		a.object("name", `"spawn"`, "description", `"Asks another."`, "input_schema", `{"type":"object"}`),
	}
	if a.rng.IntN(2) == 0 {
		slices.Reverse(tools)
	}
	return a.object("model", `"claude-test"`, "max_tokens", "4000", "stream", fmt.Sprint(stream), "system", system,
		"tools", array(tools...), "messages", array(list...))
}

func (a *agent) chat(stream bool) string {
	list := []string{a.object("role", `"system"`, "content", text(a.system))}
	for _, m := range a.history {
		switch m.role {
		case "user":
			c := a.padded(m.text)
			if a.rng.IntN(3) == 0 {
				c = array(a.object("type", `"text"`, "text", c, "cache_control", a.mark()))
			}
			list = append(list, a.object("role", `"user"`, "content", c))
		case "tool":
			var results []string
			for _, c := range m.calls {
				results = append(results, a.object("role", `"tool"`, "tool_call_id", text(c.id), "content", a.padded(c.result)))
			}
			a.rng.Shuffle(len(results), func(i, j int) { results[i], results[j] = results[j], results[i] })
			list = append(list, results...)
		default:
			var calls []string
			for _, c := range m.calls {
				calls = append(calls, a.object("id", text(c.id), "type", `"function"`, "function", a.object("name", text(c.name), "arguments", text(a.arguments(c)))))
			}
			members := []string{"role", `"assistant"`, "content", `null`}
			if m.text != "" {
				members[3] = a.padded(m.text)
			}
			if len(calls) > 0 {
				members = append(members, "tool_calls", array(calls...))
			}
			if m.thought != "" && a.rng.IntN(2) == 0 {
				members = append(members, "reasoning_content", text(m.thought))
			}
			list = append(list, a.object(members...))
		}
	}
	return a.object("model", `"chat-test"`, "stream", fmt.Sprint(stream), "messages", array(list...), "tools", array(
		a.object("type", `"function"`, "function", a.object("name", `"weather"`, "parameters", `{"type":"object"}`)),
	))
}

// answer is what the server says in the words of the dialect.
func (a *agent) answer(m said, stream bool) string {
	switch {
	case a.dialect == "chat" && stream:
		return chatStream(a, m)
	case a.dialect == "chat":
		var calls []string
		for _, c := range m.calls {
			calls = append(calls, a.object("id", text(c.id), "type", `"function"`, "function", a.object("name", text(c.name), "arguments", text(a.arguments(c)))))
		}
		message := []string{"role", `"assistant"`, "content", text(m.text), "reasoning_content", text(m.thought)}
		if len(calls) > 0 {
			message = append(message, "tool_calls", array(calls...))
		}
		return a.object("id", text("chat-"+m.thought), "object", `"chat.completion"`, "model", `"chat-test-1"`, "usage", `{"prompt_tokens":9,"completion_tokens":7}`,
			"choices", array(a.object("index", "0", "finish_reason", `"stop"`, "message", a.object(message...))))
	case stream:
		return messagesStream(a, m)
	}
	parts := []string{a.object("type", `"thinking"`, "thinking", text(m.thought), "signature", text("sig-"+m.thought)), a.object("type", `"text"`, "text", text(m.text))}
	for _, c := range m.calls {
		parts = append(parts, a.object("type", `"tool_use"`, "id", text(c.id), "name", text(c.name), "input", a.arguments(c)))
	}
	return a.object("id", text("msg_"+m.thought), "type", `"message"`, "role", `"assistant"`, "model", `"claude-test-1"`, "stop_reason", `"end_turn"`,
		"usage", `{"input_tokens":9,"output_tokens":7}`, "content", array(parts...))
}

func chatStream(a *agent, m said) string {
	var out strings.Builder
	chunk := func(delta, finish string) {
		fmt.Fprintf(&out, "data: %s\n\n", a.object("id", text("chat-"+m.thought), "model", `"chat-test-1"`, "choices", array(a.object("index", "0", "delta", delta, "finish_reason", finish))))
	}
	chunk(a.object("reasoning_content", text(m.thought)), "")
	half := len(m.text) / 2
	chunk(a.object("content", text(m.text[:half])), "")
	chunk(a.object("content", text(m.text[half:])), "")
	for i, c := range m.calls {
		chunk(a.object("tool_calls", array(a.object("index", fmt.Sprint(i), "id", text(c.id), "type", `"function"`,
			"function", a.object("name", text(c.name), "arguments", text(a.arguments(c)))))), "")
	}
	chunk("{}", `"stop"`)
	out.WriteString("data: [DONE]\n\n")
	return out.String()
}

func messagesStream(a *agent, m said) string {
	var out strings.Builder
	event := func(kind string, members ...string) {
		fmt.Fprintf(&out, "event: %s\ndata: %s\n\n", kind, a.object(append(members, "type", text(kind))...))
	}
	event("message_start", "message", a.object("id", text("msg_"+m.thought), "role", `"assistant"`, "model", `"claude-test-1"`, "content", "[]", "usage", `{"input_tokens":9,"output_tokens":1}`))
	n := 0
	block := func(start string, deltas ...string) {
		event("content_block_start", "index", fmt.Sprint(n), "content_block", start)
		for _, d := range deltas {
			event("content_block_delta", "index", fmt.Sprint(n), "delta", d)
		}
		event("content_block_stop", "index", fmt.Sprint(n))
		n++
	}
	block(`{"type":"thinking","thinking":"","signature":""}`,
		a.object("type", `"thinking_delta"`, "thinking", text(m.thought)), a.object("type", `"signature_delta"`, "signature", text("sig-"+m.thought)))
	half := len(m.text) / 2
	block(`{"type":"text","text":""}`, a.object("type", `"text_delta"`, "text", text(m.text[:half])), a.object("type", `"text_delta"`, "text", text(m.text[half:])))
	for _, c := range m.calls {
		block(a.object("type", `"tool_use"`, "id", text(c.id), "name", text(c.name), "input", "{}"),
			a.object("type", `"input_json_delta"`, "partial_json", text(a.arguments(c))))
	}
	event("message_delta", "delta", `{"stop_reason":"end_turn"}`, "usage", `{"output_tokens":7}`)
	event("message_stop")
	return out.String()
}
