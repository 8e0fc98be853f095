package providers

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/llm/rawjson"
)

// messagesLimit is the output limit when nobody gives one: the format demands
// one, and this much every model allows that is still served.
const messagesLimit = 8192

// encodeMessages writes a request. Equal requests give equal bytes.
func encodeMessages(t target, req *llm.Request) (rawjson.Value, error) {
	s := req.Settings
	var body rawjson.Object
	if t.model != "" {
		body.SetString("model", t.model)
	}
	p := messagesPrompt{target: t, lost: map[string]bool{}}
	for _, m := range req.Messages {
		for _, b := range m.Blocks {
			if r, ok := b.(content.ToolResult); ok && r.Server && !t.own(r) {
				p.lost[r.CallID] = true
			}
		}
	}
	for _, m := range req.Messages {
		for _, b := range m.Blocks {
			p.add(m.Role, b)
		}
	}
	p.flush()
	limit := messagesThinking(t, s, &body)
	body.SetInt("max_tokens", int64(limit))
	if p.system.Bytes().At(0) != nil {
		body.Set("system", p.system.Bytes())
	}
	body.Set("messages", p.list.Bytes())
	if p.container != "" && p.loop {
		body.SetString("container", p.container)
	}
	if len(req.Tools) > 0 {
		body.Set("tools", messagesTools(req.Tools))
		body.Set("tool_choice", messagesChoice(s.ToolChoice))
	}
	if s.Temperature != nil {
		body.Set("temperature", number(*s.Temperature))
	}
	if req.Stream {
		body.SetBool("stream", true)
	}
	if len(s.Extra) > 0 {
		extra, err := rawjson.Parse(s.Extra)
		if err != nil || extra.Kind() != rawjson.KindObject {
			return nil, fmt.Errorf("messages: request.extra: want a JSON object, have %q", excerpt(s.Extra))
		}
		for key, value := range extra.Members() {
			body.Set(key, value)
		}
	}
	return sendable(body.Bytes()), nil
}

// replayMessages writes the message that stands for one response.
func replayMessages(t target, blocks []content.Block) rawjson.Value {
	p := messagesPrompt{target: t}
	for _, b := range blocks {
		p.add(content.RoleAssistant, b)
	}
	p.flush()
	return sendable(clone(p.list.Bytes().At(0)))
}

// messagesPrompt gathers blocks into messages whose roles alternate.
type messagesPrompt struct {
	target
	system rawjson.Array
	list   rawjson.Array
	lost   map[string]bool // calls of the provider's own tools whose results cannot be sent

	role      string // of the message that is being gathered
	blocks    []rawjson.Value
	results   []messagesResult
	calls     []string // ids of the last message's calls, in order
	container string   // where the code waits that called a tool
	loop      bool     // the last message has results
}

type messagesResult struct {
	id   string
	json rawjson.Value
}

// add adds a block of a message to the message of the wire that takes it.
func (p *messagesPrompt) add(role content.Role, b content.Block) {
	if n, ok := b.(content.Native); ok && n.Type == "container" && p.own(b) {
		p.container = rawjson.Value(n.JSON).Get("id").Text()
		return
	}
	v := p.block(b)
	if v == nil {
		return
	}
	result, _ := b.(content.ToolResult)
	to := "user"
	_, media := b.(content.Media)
	switch {
	case media && role == content.RoleAssistant:
		return // an answer is words only
	case b.Kind() == content.KindToolResult && !result.Server:
	case b.Kind() == content.KindToolResult, role == content.RoleAssistant:
		to = "assistant"
	case role == content.RoleSystem:
		p.system.Add(v)
		return
	case role == content.NoRole:
		return
	}
	if to != p.role {
		p.flush()
		if p.role = to; to == "assistant" {
			p.container = ""
		}
	}
	switch b := b.(type) {
	case content.ToolResult:
		if !b.Server {
			p.results = append(p.results, messagesResult{b.CallID, v})
			return
		}
	case content.ToolCall:
		p.calls = append(p.calls, b.CallID)
	}
	p.blocks = append(p.blocks, v)
}

// flush ends the message that is being gathered: results come first, in the
// order of their calls.
func (p *messagesPrompt) flush() {
	if len(p.blocks)+len(p.results) == 0 {
		return
	}
	place := func(r messagesResult) int {
		if i := slices.Index(p.calls, r.id); i >= 0 {
			return i
		}
		return len(p.calls)
	}
	slices.SortStableFunc(p.results, func(a, b messagesResult) int { return place(a) - place(b) })
	var all rawjson.Array
	for _, r := range p.results {
		all.Add(r.json)
	}
	for _, v := range p.blocks {
		all.Add(v)
	}
	var m rawjson.Object
	m.SetString("role", p.role)
	m.Set("content", all.Bytes())
	p.list.Add(m.Bytes())
	if p.loop = len(p.results) > 0; p.role == "user" {
		p.calls = nil
	}
	p.blocks, p.results = nil, nil
}

// block is a content block of the wire; nil when it cannot be sent.
func (p *messagesPrompt) block(b content.Block) rawjson.Value {
	var o rawjson.Object
	switch b := b.(type) {
	case content.Text:
		if strings.TrimSpace(b.Text) == "" || b.Kind() == content.KindNote {
			return nil // text without a word is refused
		}
		o.SetString("type", "text")
		o.SetString("text", b.Text)
	case content.Reasoning:
		if !p.reasoning(b, &o) {
			return nil
		}
	case content.ToolCall:
		if b.Server && (!p.own(b) || p.lost[b.CallID]) {
			return nil
		}
		o.SetString("type", orElse(p.typeOf(b), "tool_use"))
		o.SetString("id", p.callID(b, b.CallID))
		o.SetString("name", b.Name)
		o.Set("input", messagesInput(b.Arguments))
	case content.ToolResult:
		if b.Server && !p.own(b) {
			return nil
		}
		o.SetString("type", orElse(p.typeOf(b), "tool_result"))
		o.SetString("tool_use_id", p.callID(b, b.CallID))
		o.Set("content", messagesResultContent(b, p.own(b)))
		if b.IsError {
			o.SetBool("is_error", true)
		}
	case content.Media:
		messagesMedia(b, &o)
	case content.Native:
		v, err := rawjson.Parse([]byte(b.JSON))
		if err != nil || !p.own(b) {
			return nil
		}
		return v
	default:
		return nil
	}
	if p.own(b) {
		o.Merge(b.Form().Extra)
	}
	if _, ok := b.(content.Media); ok && o.Bytes().Get("source") == nil {
		return nil
	}
	return o.Bytes()
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// typeOf is the type that a block of this dialect came with.
func (p *messagesPrompt) typeOf(b content.Block) string {
	if p.own(b) {
		return b.Form().Type
	}
	return ""
}

// reasoning writes a thought. One goes back with the seal of its model, and to
// Anthropic never without one. Servers that only speak its format may not seal
// thoughts at all: they get their own back as they gave them.
func (p *messagesPrompt) reasoning(r content.Reasoning, o *rawjson.Object) bool {
	switch {
	case !p.own(r) || r.Incomplete:
		return false
	case p.opens(r.Seal) && r.Seal.Type == content.Redacted:
		o.SetString("type", "redacted_thinking")
		o.SetString("data", r.Seal.Data)
		return true
	case p.opens(r.Seal):
		o.SetString("type", "thinking")
		o.SetString("thinking", r.String())
		o.SetString("signature", r.Seal.Data)
		return true
	case r.Seal.Data == "" && r.String() != "" && p.profile.Name != "anthropic":
		o.SetString("type", "thinking")
		o.SetString("thinking", r.String())
		return true
	}
	return false
}

// callID is an id that the format allows: an other one's is changed, in such a
// way that different ids stay different.
func (p *messagesPrompt) callID(b content.Block, id string) string {
	clean := strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && (r == '_' || r == '-' || r >= '0' && r <= '9' || r|0x20 >= 'a' && r|0x20 <= 'z') {
			return r
		}
		return '_'
	}, id)
	if clean == id && id != "" {
		return id
	}
	h := fnv.New64a()
	h.Write([]byte(id))
	return fmt.Sprintf("%s_%016x", orElse(clean, "call"), h.Sum64())
}

// messagesInput is the arguments as the object that the format demands. What is
// none, such as the text for a custom tool, becomes a member of one.
func messagesInput(arguments string) rawjson.Value {
	if strings.TrimSpace(arguments) == "" {
		return rawjson.Value("{}")
	}
	v, err := rawjson.Parse([]byte(arguments))
	if err == nil && v.Kind() == rawjson.KindObject {
		return v
	}
	var o rawjson.Object
	o.SetString("arguments", arguments)
	return o.Bytes()
}

// sendable is v with U+FFFD for what no server takes: invalid UTF-8, and escapes
// of half a surrogate pair.
func sendable(v rawjson.Value) rawjson.Value {
	if utf8.Valid(v) && !bytes.Contains(v, []byte(`\ud`)) && !bytes.Contains(v, []byte(`\uD`)) {
		return v
	}
	switch v.Kind() {
	case rawjson.KindString:
		return rawjson.AppendString(nil, v.Text())
	case rawjson.KindArray:
		var a rawjson.Array
		for e := range v.Elements() {
			a.Add(sendable(e))
		}
		return a.Bytes()
	case rawjson.KindObject:
		var once, o rawjson.Object
		once.Merge(v) // of members with equal keys the last counts
		for key, e := range once.Bytes().Members() {
			o.Set(key, sendable(e))
		}
		return o.Bytes()
	}
	return v
}
