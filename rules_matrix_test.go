package tract_test

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tract-vcs/tract"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/llm/providers"
	"github.com/tract-vcs/tract/maintain"
	"github.com/tract-vcs/tract/priority"
)

// Servers that apply the rule of each provider for reasoning that has to come back,
// and answer otherwise. What a rule is known from is said in docs/providers.md.

type object = map[string]any

// scripted is one answer of a server.
type scripted struct {
	n       int
	thought string // empty: the model was asked not to reason
	seal    string
	calls   []string // their ids; none: the turn ends
	text    string
}

// ruled is a provider with its rule.
type ruled struct {
	party
	dialect string // in the place of the provider's own
	path    string // of the base URL
	effort  string // asked for, so that there is reasoning; empty: there is without

	// answer is the body of an answer, in one piece or as a stream.
	answer func(a scripted, stream bool) string
	// refuse says why a request is refused; empty: it is answered.
	refuse func(s *ruleServer, body object, h http.Header) string
	// quiet reports whether a request asks for no reasoning.
	quiet func(body object) bool
}

// ruleServer is a server with a rule, and what it has said so far.
type ruleServer struct {
	ruled
	url string

	mu      sync.Mutex
	asked   int
	said    map[string]scripted // by the ids of calls, and by seals
	refused []string
	last    object
}

// stepsOfTurn is how many answers a turn takes: two that call tools, and the end.
const stepsOfTurn = 3

func serveRule(t *testing.T, r ruled) *ruleServer {
	t.Helper()
	s := &ruleServer{ruled: r, said: map[string]scripted{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.url = server.URL + r.path
	return s
}

func (s *ruleServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var body object
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		s.refused = append(s.refused, err.Error())
	}
	s.last = body
	if why := s.refuse(s, body, r.Header); why != "" {
		s.refused = append(s.refused, fmt.Sprintf("request %d: %s", s.asked, why))
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(object{"error": object{"message": why}})
		return
	}
	a := scripted{n: s.asked, text: fmt.Sprintf("Answer %d.", s.asked)}
	s.asked++
	if !s.quiet(body) {
		a.thought, a.seal = fmt.Sprintf("Thought %d.", a.n), fmt.Sprintf("U2VhbA%02d=", a.n)
		s.said[a.seal] = a
	}
	switch a.n % stepsOfTurn {
	case 0:
		a.calls, a.text = []string{fmt.Sprintf("call_%da", a.n), fmt.Sprintf("call_%db", a.n)}, ""
	case 1:
		a.calls, a.text = []string{fmt.Sprintf("call_%da", a.n)}, ""
	}
	for _, id := range a.calls {
		s.said[id] = a
	}
	stream, _ := body["stream"].(bool)
	stream = stream || strings.Contains(r.URL.Path, "tream")
	_, _ = io.WriteString(w, s.answer(a, stream))
}

// at is a value inside another, by keys and places; nil where there is none.
func at(v any, path ...any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, _ := v.(object)
			v = m[step]
		case int:
			l, _ := v.([]any)
			if step < 0 || step >= len(l) {
				return nil
			}
			v = l[step]
		}
	}
	return v
}

func items(v any, path ...any) []any { l, _ := at(v, path...).([]any); return l }

func word(v any, path ...any) string { w, _ := at(v, path...).(string); return w }

func toJSON(v any) string { b, _ := json.Marshal(v); return string(b) }

func sse(events ...object) string {
	var b strings.Builder
	for _, e := range events {
		if kind := word(e, "type"); kind != "" {
			b.WriteString("event: " + kind + "\n")
		}
		b.WriteString("data: " + toJSON(e) + "\n\n")
	}
	return b.String()
}

// chatSays writes an answer of a chat server whose reasoning is in a field.
func chatSays(field string) func(a scripted, stream bool) string {
	return func(a scripted, stream bool) string {
		message := object{"role": "assistant", "content": a.text}
		var calls []any
		for i, id := range a.calls {
			calls = append(calls, object{"index": i, "id": id, "type": "function", "function": object{"name": "weather", "arguments": "{}"}})
		}
		if calls != nil {
			message["tool_calls"] = calls
		}
		if a.thought != "" {
			message[field] = a.thought
			switch field {
			case "reasoning_details":
				message[field] = []any{object{"type": "reasoning.text", "text": a.thought, "signature": a.seal, "index": 0}}
				message["reasoning"] = a.thought
			case "reasoning_text":
				message["reasoning_opaque"] = a.seal
			}
		}
		if !stream {
			return toJSON(object{"id": "c", "model": "m", "choices": []any{object{"index": 0, "message": message, "finish_reason": "stop"}}})
		}
		var events []object
		chunk := func(delta object) {
			events = append(events, object{"id": "c", "choices": []any{object{"index": 0, "delta": delta}}})
		}
		if text, ok := message[field].(string); ok {
			for _, piece := range []string{text[:3], text[3:]} {
				chunk(object{field: piece})
			}
			if opaque := message["reasoning_opaque"]; opaque != nil {
				chunk(object{"reasoning_opaque": opaque})
			}
		} else if message[field] != nil {
			chunk(object{field: message[field], "reasoning": message["reasoning"]})
		}
		chunk(object{"content": a.text})
		for _, c := range calls {
			chunk(object{"tool_calls": []any{c}})
		}
		events = append(events, object{"id": "c", "choices": []any{object{"index": 0, "delta": object{}, "finish_reason": "stop"}}})
		return sse(events...) + "data: [DONE]\n\n"
	}
}

// chatCalls yields the messages of the model, and the first of their calls.
func chatCalls(body object) func(yield func(m any, call string) bool) {
	return func(yield func(m any, call string) bool) {
		for _, m := range items(body, "messages") {
			if word(m, "role") == "assistant" && !yield(m, word(m, "tool_calls", 0, "id")) {
				return
			}
		}
	}
}

// kimiRule: every message with tool calls has its reasoning_content, which is not
// empty.
func kimiRule(s *ruleServer, body object, _ http.Header) string {
	i := 0
	for m, call := range chatCalls(body) {
		if i++; call == "" {
			continue
		}
		was, thought := s.said[call].thought, word(m, "reasoning_content")
		if thought == "" || was != "" && thought != was {
			return fmt.Sprintf("thinking is enabled but reasoning_content is missing in assistant tool call message at index %d", i)
		}
	}
	return ""
}

// deepseekRule: in a request with tools every message of the model has its
// reasoning_content, and those with calls the whole of it.
func deepseekRule(s *ruleServer, body object, _ http.Header) string {
	for m, call := range chatCalls(body) {
		thought, there := at(m, "reasoning_content").(string)
		if !there || call != "" && thought != s.said[call].thought {
			return "The `reasoning_content` in the thinking mode must be passed back to the API."
		}
	}
	return ""
}

// unless applies a rule to requests that ask for reasoning.
func unless(quiet func(object) bool, rule func(*ruleServer, object, http.Header) string) func(*ruleServer, object, http.Header) string {
	return func(s *ruleServer, body object, h http.Header) string {
		if quiet(body) {
			return ""
		}
		return rule(s, body, h)
	}
}

func thinkingDisabled(body object) bool { return word(body, "thinking", "type") == "disabled" }

func never(object) bool { return false }

// openLoopResponses is where the open tool loop begins in a list of messages.
func openLoopResponses(messages []any, spoken func(m any) bool) int {
	for i := len(messages) - 1; i >= 0; i-- {
		if spoken(messages[i]) {
			return i + 1
		}
	}
	return 0
}

func hasPart(m any, member string, is func(part any) bool) bool {
	return slices.ContainsFunc(items(m, member), is)
}

// messagesSays writes an answer of Anthropic.
func messagesSays(a scripted, stream bool) string {
	var blocks []any
	if a.thought != "" {
		blocks = append(blocks, object{"type": "thinking", "thinking": a.thought, "signature": a.seal})
	}
	for _, id := range a.calls {
		blocks = append(blocks, object{"type": "tool_use", "id": id, "name": "weather", "input": object{}})
	}
	if a.text != "" {
		blocks = append(blocks, object{"type": "text", "text": a.text})
	}
	if !stream {
		return toJSON(object{"type": "message", "role": "assistant", "id": "m", "model": "claude", "content": blocks, "stop_reason": "end_turn"})
	}
	events := []object{{"type": "message_start", "message": object{"id": "m", "model": "claude", "content": []any{}}}}
	for i, b := range blocks {
		begin, deltas := b.(object), []object{}
		switch word(b, "type") {
		case "thinking":
			begin = object{"type": "thinking", "thinking": "", "signature": ""}
			deltas = []object{{"type": "thinking_delta", "thinking": a.thought}, {"type": "signature_delta", "signature": a.seal}}
		case "text":
			begin, deltas = object{"type": "text", "text": ""}, []object{{"type": "text_delta", "text": a.text}}
		}
		events = append(events, object{"type": "content_block_start", "index": i, "content_block": begin})
		for _, d := range deltas {
			events = append(events, object{"type": "content_block_delta", "index": i, "delta": d})
		}
		events = append(events, object{"type": "content_block_stop", "index": i})
	}
	return sse(append(events, object{"type": "message_delta", "delta": object{"stop_reason": "end_turn"}}, object{"type": "message_stop"})...)
}

func userSpoke(m any) bool {
	return word(m, "role") == "user" && (word(m, "content") != "" || hasPart(m, "content", func(p any) bool { return word(p, "type") == "text" || word(p, "text") != "" }))
}

// anthropicRule: thinking comes back with its signature; with a budget, the messages of
// the open loop begin with it. Interleaved thinking has to be asked for there.
func anthropicRule(s *ruleServer, body object, h http.Header) string {
	messages := items(body, "messages")
	for _, m := range messages {
		for _, p := range items(m, "content") {
			if word(p, "type") == "thinking" && s.said[word(p, "signature")].thought != word(p, "thinking") {
				return "Invalid `signature` in `thinking` block"
			}
		}
	}
	if word(body, "thinking", "type") != "enabled" {
		return ""
	}
	if h.Get("Anthropic-Beta") != "interleaved-thinking-2025-05-14" {
		return "no interleaved thinking: " + h.Get("Anthropic-Beta")
	}
	for _, m := range messages[openLoopResponses(messages, userSpoke):] {
		if word(m, "role") == "assistant" && hasPart(m, "content", func(p any) bool { return word(p, "type") == "tool_use" }) && word(m, "content", 0, "type") != "thinking" {
			return "Expected `thinking` or `redacted_thinking`, but found `tool_use`"
		}
	}
	return ""
}

// thinkingBackRule is DeepSeek's in Anthropic's format: the thinking before a tool
// call comes back in every request.
func thinkingBackRule(s *ruleServer, body object, _ http.Header) string {
	for _, m := range items(body, "messages") {
		thought := ""
		for _, p := range items(m, "content") {
			switch word(p, "type") {
			case "thinking":
				thought = word(p, "thinking")
			case "tool_use":
				if s.said[word(p, "id")].thought != thought {
					return "The `content[].thinking` in the thinking mode must be passed back to the API."
				}
			}
		}
	}
	return ""
}

// responsesSays writes an answer of the Responses API.
func responsesSays(a scripted, stream bool) string {
	var items []any
	if a.thought != "" {
		items = append(items, object{
			"type": "reasoning", "id": fmt.Sprintf("rs_%d", a.n), "encrypted_content": a.seal,
			"summary": []any{object{"type": "summary_text", "text": a.thought}},
		})
	}
	for _, id := range a.calls {
		items = append(items, object{"type": "function_call", "id": "fc_" + id, "call_id": id, "name": "weather", "arguments": "{}", "status": "completed"})
	}
	if a.text != "" {
		items = append(items, object{"type": "message", "id": "msg", "role": "assistant", "status": "completed", "content": []any{object{"type": "output_text", "text": a.text, "annotations": []any{}}}})
	}
	response := object{"id": "r", "object": "response", "status": "completed", "model": "m", "output": items}
	if !stream {
		return toJSON(response)
	}
	events := []object{{"type": "response.created", "response": object{"id": "r", "status": "in_progress", "output": []any{}}}}
	for i, item := range items {
		events = append(events,
			object{"type": "response.output_item.added", "output_index": i, "item": object{"type": word(item, "type"), "id": word(item, "id"), "call_id": word(item, "call_id"), "name": word(item, "name"), "summary": []any{}}},
			object{"type": "response.output_item.done", "output_index": i, "item": item})
	}
	return sse(append(events, object{"type": "response.completed", "response": response})...)
}

// responsesRule: a reasoning item has its summary and its seal, and the item after it;
// nothing is stored, so no id is known. In the open loop it stands before its call.
func responsesRule(s *ruleServer, body object, _ http.Header) string {
	input := items(body, "input")
	open := openLoopResponses(input, func(m any) bool { return word(m, "role") == "user" })
	before := "" // the seal of the reasoning item before
	for i, item := range input {
		kind := word(item, "type")
		if id := word(item, "id"); strings.HasPrefix(id, "rs_") || strings.HasPrefix(id, "fc_") {
			return "Item with id '" + id + "' not found. Items are not persisted when `store` is set to false"
		}
		switch kind {
		case "reasoning":
			next := at(input, i+1)
			if at(item, "summary") == nil {
				return "Missing required parameter: 'input[].summary'"
			}
			if word(next, "type") != "function_call" && word(next, "role") != "assistant" {
				return "Item of type 'reasoning' was provided without its required following item."
			}
			if before = word(item, "encrypted_content"); s.said[before].thought == "" {
				return "The encrypted content could not be verified."
			}
		case "function_call":
			if was := s.said[word(item, "call_id")]; i >= open && was.calls[0] == word(item, "call_id") && before != was.seal {
				return "Item of type 'function_call' was provided without its required 'reasoning' item"
			}
		}
	}
	return ""
}

// geminiSays writes an answer of Gemini: the seal is on the first call, or on the text.
func geminiSays(a scripted, stream bool) string {
	var parts []any
	if a.thought != "" {
		parts = append(parts, object{"text": a.thought, "thought": true})
	}
	for i := range a.calls {
		part := object{"functionCall": object{"name": "weather", "args": object{"n": float64(a.n), "i": float64(i)}}}
		if i == 0 {
			part["thoughtSignature"] = a.seal
		}
		parts = append(parts, part)
	}
	if a.text != "" {
		parts = append(parts, object{"text": a.text, "thoughtSignature": a.seal})
	}
	if !stream {
		return toJSON(object{"candidates": []any{object{"content": object{"role": "model", "parts": parts}, "finishReason": "STOP"}}})
	}
	var events []object
	for i, part := range parts {
		candidate := object{"content": object{"role": "model", "parts": []any{part}}}
		if i == len(parts)-1 {
			candidate["finishReason"] = "STOP"
		}
		events = append(events, object{"candidates": []any{candidate}})
	}
	return sse(events...)
}

// geminiRule: a signature is on the part that it came on; the first call of each step
// of the current turn has one.
func geminiRule(s *ruleServer, body object, _ http.Header) string {
	contents := items(body, "contents")
	open := openLoopResponses(contents, func(m any) bool {
		return word(m, "role") == "user" && hasPart(m, "parts", func(p any) bool { return at(p, "text") != nil })
	})
	for i, c := range contents {
		first := true
		for _, p := range items(c, "parts") {
			seal := word(p, "thoughtSignature")
			if _, known := s.said[seal]; seal != "" && !known {
				return "Thought signature is not valid"
			}
			if at(p, "functionCall") == nil {
				continue
			}
			n, _ := at(p, "functionCall", "args", "n").(float64)
			if i >= open && first && seal != fmt.Sprintf("U2VhbA%02d=", int(n)) {
				return "Function call is missing a thought_signature in functionCall parts."
			}
			first = false
		}
	}
	return ""
}

// converseSays writes an answer of a Claude on Bedrock.
func converseSays(a scripted, stream bool) string {
	var blocks []any
	if a.thought != "" {
		blocks = append(blocks, object{"reasoningContent": object{"reasoningText": object{"text": a.thought, "signature": a.seal}}})
	}
	for _, id := range a.calls {
		blocks = append(blocks, object{"toolUse": object{"toolUseId": id, "name": "weather", "input": object{}}})
	}
	if a.text != "" {
		blocks = append(blocks, object{"text": a.text})
	}
	if !stream {
		return toJSON(object{"output": object{"message": object{"role": "assistant", "content": blocks}}, "stopReason": "end_turn"})
	}
	frames := awsEvent("messageStart", object{"role": "assistant"})
	for i, b := range blocks {
		deltas := []object{{"text": a.text}}
		switch {
		case at(b, "reasoningContent") != nil:
			deltas = []object{{"reasoningContent": object{"text": a.thought}}, {"reasoningContent": object{"signature": a.seal}}}
		case at(b, "toolUse") != nil:
			use := object{"toolUseId": word(b, "toolUse", "toolUseId"), "name": "weather"}
			frames += awsEvent("contentBlockStart", object{"contentBlockIndex": i, "start": object{"toolUse": use}})
			deltas = []object{{"toolUse": object{"input": "{}"}}}
		}
		for _, d := range deltas {
			frames += awsEvent("contentBlockDelta", object{"contentBlockIndex": i, "delta": d})
		}
		frames += awsEvent("contentBlockStop", object{"contentBlockIndex": i})
	}
	return frames + awsEvent("messageStop", object{"stopReason": "end_turn"})
}

// awsEvent is a message of Amazon's binary event stream.
func awsEvent(kind string, payload object) string {
	var head []byte
	for _, h := range [][2]string{{":event-type", kind}, {":content-type", "application/json"}, {":message-type", "event"}} {
		head = append(append(append(head, byte(len(h[0]))), h[0]...), 7, 0, byte(len(h[1])))
		head = append(head, h[1]...)
	}
	body := toJSON(payload)
	m := binary.BigEndian.AppendUint32(nil, uint32(16+len(head)+len(body)))
	m = binary.BigEndian.AppendUint32(m, uint32(len(head)))
	m = binary.BigEndian.AppendUint32(m, crc32.ChecksumIEEE(m))
	m = append(append(m, head...), body...)
	return string(binary.BigEndian.AppendUint32(m, crc32.ChecksumIEEE(m)))
}

// bedrockRule is Anthropic's, in Amazon's format.
func bedrockRule(s *ruleServer, body object, _ http.Header) string {
	messages := items(body, "messages")
	for _, m := range messages {
		for _, p := range items(m, "content") {
			text := at(p, "reasoningContent", "reasoningText")
			if text != nil && s.said[word(text, "signature")].thought != word(text, "text") {
				return "Invalid `signature` in `thinking` block"
			}
		}
	}
	if word(body, "additionalModelRequestFields", "thinking", "type") != "enabled" {
		return ""
	}
	if word(body, "additionalModelRequestFields", "anthropic_beta", 0) != "interleaved-thinking-2025-05-14" {
		return "no interleaved thinking"
	}
	for _, m := range messages[openLoopResponses(messages, userSpoke):] {
		if word(m, "role") == "assistant" && hasPart(m, "content", func(p any) bool { return at(p, "toolUse") != nil }) && at(m, "content", 0, "reasoningContent") == nil {
			return "Expected `thinking` or `redacted_thinking`, but found `tool_use`"
		}
	}
	return ""
}

// sealedInLoop is the rule of a gateway: in the open loop each message with calls has
// its reasoning, as it came, in a field.
func sealedInLoop(field string, want func(a scripted) any) func(*ruleServer, object, http.Header) string {
	return func(s *ruleServer, body object, _ http.Header) string {
		messages := items(body, "messages")
		for _, m := range messages[openLoopResponses(messages, userSpoke):] {
			if call := word(m, "tool_calls", 0, "id"); call != "" && !reflect.DeepEqual(at(m, field), want(s.said[call])) {
				return "the reasoning of the tool call " + call + " is missing in " + field
			}
		}
		return ""
	}
}

// knownFields is the rule of servers that refuse a message with a field that they do
// not know.
func knownFields(_ *ruleServer, body object, _ http.Header) string {
	for _, m := range items(body, "messages") {
		for key := range m.(object) {
			if !slices.Contains([]string{"role", "content", "tool_calls", "tool_call_id", "name"}, key) {
				return "Extra inputs are not permitted: " + key
			}
		}
	}
	return ""
}

// rulesOfProviders is a server for each rule.
var rulesOfProviders = map[string]ruled{
	"DeepSeek": {
		party: party{"deepseek", "deepseek-v4-pro"}, answer: chatSays("reasoning_content"),
		quiet: thinkingDisabled, refuse: unless(thinkingDisabled, deepseekRule),
	},
	"DeepSeek, in reasoning_text": {
		party: party{"deepseek", "deepseek-v4-flash"}, answer: chatSays("reasoning_text"),
		quiet: thinkingDisabled, refuse: unless(thinkingDisabled, deepseekRule),
	},
	"DeepSeek, in Anthropic's format": {
		party: party{"deepseek", "deepseek-v4-pro"}, dialect: "messages", answer: messagesSays,
		quiet: thinkingDisabled, refuse: unless(thinkingDisabled, thinkingBackRule),
	},
	"Kimi": {
		party: party{"moonshotai", "kimi-k2.6"}, answer: chatSays("reasoning_content"),
		quiet: thinkingDisabled, refuse: unless(thinkingDisabled, kimiRule),
	},
	"Kimi, which cannot stop": {
		party: party{"moonshotai", "kimi-k2-thinking"}, answer: chatSays("reasoning_content"), quiet: never, refuse: kimiRule,
	},
	"Kimi behind a relay, in reasoning": {
		party: party{"chat", "kimi-k2.5"}, path: "/v1", answer: chatSays("reasoning"),
		quiet:  func(b object) bool { return word(b, "reasoning_effort") == "none" },
		refuse: unless(func(b object) bool { return word(b, "reasoning_effort") == "none" }, kimiRule),
	},
	"Anthropic": {
		party: party{"anthropic", "claude-sonnet-4-5"}, effort: "high", answer: messagesSays, quiet: thinkingDisabled, refuse: anthropicRule,
	},
	"Anthropic, adaptive": {
		party: party{"anthropic", "claude-opus-4-8"}, effort: "high", answer: messagesSays, quiet: thinkingDisabled, refuse: anthropicRule,
	},
	"Bedrock": {
		party: party{"bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"}, effort: "high", answer: converseSays, refuse: bedrockRule,
		quiet: func(b object) bool {
			return word(b, "additionalModelRequestFields", "thinking", "type") == "disabled"
		},
	},
	"OpenAI Responses": {
		party: party{"openai-responses", "gpt-5.2"}, path: "/v1", answer: responsesSays, refuse: responsesRule,
		quiet: func(b object) bool { return word(b, "reasoning", "effort") == "none" },
	},
	"OpenAI Responses, which cannot stop": {
		party: party{"openai-responses", "o3"}, path: "/v1", answer: responsesSays, quiet: never, refuse: responsesRule,
	},
	"OpenAI chat": {
		party: party{"openai", "gpt-5.2"}, path: "/v1", answer: chatSays("-"), quiet: func(object) bool { return true }, refuse: knownFields,
	},
	"Gemini": {
		party: party{"google", "gemini-3-pro-preview"}, answer: geminiSays, quiet: never, refuse: geminiRule,
	},
	"OpenRouter": {
		party: party{"openrouter", "anthropic/claude-haiku-4.5"}, path: "/v1", answer: chatSays("reasoning_details"),
		quiet: func(b object) bool { return word(b, "reasoning", "effort") == "none" },
		refuse: sealedInLoop("reasoning_details", func(a scripted) any {
			if a.thought == "" {
				return nil
			}
			return []any{object{"type": "reasoning.text", "text": a.thought, "signature": a.seal, "index": 0.0}}
		}),
	},
	"GitHub Copilot": {
		party: party{"github-copilot", "gemini-3-pro"}, answer: chatSays("reasoning_text"), quiet: never,
		refuse: sealedInLoop("reasoning_opaque", func(a scripted) any { return a.seal }),
	},
	"Mistral": {
		party: party{"mistral", "magistral-medium-latest"}, path: "/v1", answer: chatSays("-"), quiet: func(object) bool { return true }, refuse: knownFields,
	},
}

// client asks the server.
func (s *ruleServer) client(t *testing.T) *providers.Client {
	t.Helper()
	return must(providers.Open(s.provider, providers.Config{Model: s.model, Dialect: s.ruled.dialect, BaseURL: s.url, APIKey: "k", Retries: -1}))(t)
}

var weatherTool = []llm.Tool{{Name: "weather"}}

// converse has turns of conversation with a server, each with its tool loops.
func (s *ruleServer) converse(t *testing.T, repo *tract.Repo, turns int, o ...tract.AskOptions) (replies []*tract.Response) {
	t.Helper()
	client, main := s.client(t), repo.Branch("main")
	options := opt(o)
	options.Tools, options.OnWarning = weatherTool, func(tract.Problem) {}
	for turn := range turns {
		must(main.AppendUser(t.Context(), fmt.Sprintf("Question %d?", turn)))(t)
		for range stepsOfTurn {
			r := must(main.Generate(t.Context(), client, options))(t)
			replies = append(replies, r)
			if results := resultsOf(r); len(results) > 0 {
				must(main.Append(t.Context(), results, tract.AppendOptions{}))(t)
			}
		}
	}
	if s.asked != turns*stepsOfTurn {
		t.Fatalf("%d requests came", s.asked)
	}
	return replies
}

// TestNoProviderRefusesARequest checks that with every setting about reasoning, no provider refuses
// a request of a conversation with several turns and tool loops.
func TestNoProviderRefusesARequest(t *testing.T) {
	for name, r := range rulesOfProviders {
		for _, strip := range []string{"none", "all-but-last", "all"} {
			for _, include := range []string{"true", "false"} {
				for _, enabled := range []string{"true", "false"} {
					for _, stream := range []bool{true, false} {
						t.Run(fmt.Sprintf("%s/strip %s include %s enabled %s stream %t", name, strip, include, enabled, stream), func(t *testing.T) {
							t.Parallel()
							s := serveRule(t, r)
							asked := tract.AskOptions{NoStream: !stream, Settings: map[string]string{
								"reasoning.strip_from_context": strip, "reasoning.include_in_context": include,
								"reasoning.enabled": enabled, "reasoning.effort": r.effort,
							}}
							s.converse(t, open(t), 3, asked)
							if len(s.refused) > 0 {
								t.Error(s.refused)
							}
						})
					}
				}
			}
		}
	}
}

// TestUncommittedReasoningGoesBack: what is not committed is sent all the same, as long
// as the process lives that has it.
func TestUncommittedReasoningGoesBack(t *testing.T) {
	for _, name := range []string{"DeepSeek", "Kimi", "Anthropic"} {
		t.Run(name, func(t *testing.T) {
			s := serveRule(t, rulesOfProviders[name])
			s.converse(t, open(t), 3, tract.AskOptions{Settings: map[string]string{"reasoning.commit": "false", "reasoning.effort": "high"}})
			if len(s.refused) > 0 {
				t.Error(s.refused)
			}
		})
	}
}

// TestPurgedReasoningDoesNotPreventARequest purges reasoning that should be sent: the server gets a
// placeholder, and check warns.
func TestPurgedReasoningDoesNotPreventARequest(t *testing.T) {
	for _, name := range []string{"DeepSeek", "Kimi"} {
		t.Run(name, func(t *testing.T) {
			s := serveRule(t, rulesOfProviders[name])
			repo := open(t)
			s.converse(t, repo, 1)
			must(repo.Branch("main").AppendUser(t.Context(), "And now?"))(t)
			must(maintain.Purge(t.Context(), repo, maintain.PurgeOptions{Reasoning: true}))(t)
			clear(s.said) // it knows of no text that would have to come back
			problems := must(repo.Check(t.Context(), "main", s.client(t), tract.RequestOptions{}))(t)
			for _, p := range problems {
				if p.Rule != "reasoning-left-out" || !p.Warning {
					t.Errorf("%+v", p)
				}
			}
			if len(problems) != 2 {
				t.Errorf("%d problems, want one for each message with calls", len(problems))
			}
			must(repo.Branch("main").Generate(t.Context(), s.client(t), tract.AskOptions{Tools: weatherTool}))(t)
			if len(s.refused) > 0 {
				t.Error(s.refused)
			}
		})
	}
}

// TestServersRefuseInvalidRequests is the control of TestNoProviderRefusesARequest: each simulated
// server refuses what an encoder would send that keeps no reasoning.
func TestServersRefuseInvalidRequests(t *testing.T) {
	for name, r := range rulesOfProviders {
		t.Run(name, func(t *testing.T) {
			s := serveRule(t, r)
			repo := open(t)
			asked := tract.AskOptions{Settings: map[string]string{"reasoning.effort": r.effort}}
			s.converse(t, repo, 1, asked)
			asked.Tools = weatherTool
			must(repo.Branch("main").AppendUser(t.Context(), "More?"))(t)
			must(repo.Branch("main").Generate(t.Context(), s.client(t), asked))(t)
			h := http.Header{"Anthropic-Beta": {"interleaved-thinking-2025-05-14"}}
			if why := s.refuse(s, s.last, h); why != "" {
				t.Fatalf("a good request is refused: %s", why)
			}
			if s.spoil(s.last); s.refuse(s, s.last, h) == "" {
				t.Errorf("a request without reasoning is not refused: %s", toJSON(s.last))
			}
		})
	}
}

// spoil takes the reasoning out of a request; where none may be in it, puts some in.
// The last step of it is in an open loop.
func (s *ruleServer) spoil(body object) {
	call := fmt.Sprintf("call_%da", s.asked-1)
	switch {
	case items(body, "input") != nil:
		body["input"] = append(items(body, "input"), object{"type": "function_call", "call_id": call})
	case items(body, "contents") != nil:
		part := object{"functionCall": object{"name": "weather", "args": object{"n": float64(s.asked - 1)}}}
		body["contents"] = append(items(body, "contents"), object{"role": "model", "parts": []any{part}})
	case s.ruled.dialect == "messages" || s.provider == "anthropic" || s.provider == "bedrock":
		part := object{"type": "tool_use", "id": call, "toolUse": object{"toolUseId": call}}
		forged := object{"type": "thinking", "thinking": "Thought 0.", "signature": "forged"} // which matters to adaptive thinking
		body["messages"] = append(items(body, "messages"), object{"role": "assistant", "content": []any{part, forged}})
	default:
		body["messages"] = append(items(body, "messages"), object{"role": "assistant", "tool_calls": []any{object{"id": call}}, "refusal": ""})
	}
}

// TestSkippedReasoningIsNotSentAndReported skips reasoning: it is not sent, and check reports the
// consequence, also for reasoning of a closed turn.
func TestSkippedReasoningIsNotSentAndReported(t *testing.T) {
	for _, name := range []string{"DeepSeek", "Kimi"} {
		t.Run(name, func(t *testing.T) {
			s := serveRule(t, rulesOfProviders[name])
			repo := open(t)
			first := s.converse(t, repo, 1)[0]
			main, client := repo.Branch("main"), s.client(t)
			must(main.AppendUser(t.Context(), "And now?"))(t)
			if problems := must(repo.Check(t.Context(), "main", client, tract.RequestOptions{}))(t); len(problems) > 0 {
				t.Fatal(problems)
			}
			must(main.Annotate(t.Context(), first.ReasoningCommits[0].String(), priority.Skip, "not this one"))(t)
			problems := must(repo.Check(t.Context(), "main", client, tract.RequestOptions{}))(t)
			if len(problems) != 1 || problems[0].Rule != "reasoning-left-out" || problems[0].Warning || problems[0].Commit != first.ReasoningCommits[0] {
				t.Errorf("%+v", problems)
			}
			var refused *tract.RuleError
			if _, err := main.Generate(t.Context(), client, tract.AskOptions{Tools: weatherTool}); !errors.As(err, &refused) {
				t.Errorf("generate: %v", err)
			}
			req := must(repo.Request(t.Context(), "main", client, tract.RequestOptions{}))(t)
			if len(find(t, req.Body, first.Reasoning)) > 0 {
				t.Errorf("what was skipped is sent: %s", req.Body)
			}
			// Elsewhere nobody minds, and nothing of closed turns is sent.
			other := must(providers.Open("zai", providers.Config{Model: "glm-5"}))(t)
			if problems := must(repo.Check(t.Context(), "main", other, tract.RequestOptions{}))(t); len(problems) > 0 {
				t.Error(problems)
			}
			if req := must(repo.Request(t.Context(), "main", other, tract.RequestOptions{}))(t); len(find(t, req.Body, "Thought")) > 0 {
				t.Errorf("reasoning goes to a provider that does not demand it: %s", req.Body)
			}
		})
	}
}
