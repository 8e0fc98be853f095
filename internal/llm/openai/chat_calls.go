package openai

import (
	"fmt"
	"strings"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
)

// How pieces of tool calls are matched.
//
// A stream brings the arguments of a call in pieces. In OpenAI's API each piece has the index
// of its call, and only the first piece has the id and the name. Other servers give all calls
// one index, leave the index out, or repeat the name and the id in every piece. findCall
// decides whether a piece continues a call: by index; without an index by id; without
// either it continues the last call unless it has a name. A piece with an index and a name
// begins another call if its id differs, or if it has arguments and those of the call are
// complete JSON already. Tools that the server ran come in executed_tools, and are matched by
// index.

// chatCalls is the state of the tool calls of a response.
type chatCalls struct {
	first, last     *chatCall
	count           int
	byIndex         map[int64]*chatCall
	byID            map[string]*chatCall
	functionCall    *wire.BlockBuilder // the call in function_call, the old field for one call
	serverTools     map[int64]*chatServerTool
	serverToolCount int
}

// chatCall is a tool call while it arrives.
type chatCall struct {
	*wire.BlockBuilder
	id            string // as the provider gave it
	argumentBytes int    // length of the arguments so far
}

// maxCheckedArguments is the largest number of bytes of arguments that the reader parses to
// find out whether a call is complete, so that the next piece begins another call.
const maxCheckedArguments = 64 << 10

// chatFunction is the name and the arguments of a call.
type chatFunction struct {
	member, argumentsMember string // the member with the function, and its member with the arguments
	name                    string
	arguments               string
	isJSON                  bool // the arguments are JSON, not a string of JSON
	fields                  rawjson.ObjectReader
}

// parseCallFunction reads the function or the custom tool of a call.
func parseCallFunction(i *rawjson.ObjectReader) chatFunction {
	member, argumentsMember := "function", "arguments"
	if i.Get("type").Text() == "custom" || i.Get("function") == nil && i.Get("custom") != nil {
		member, argumentsMember = "custom", "input"
	}
	f := parseFunction(i.Get(member), argumentsMember)
	f.member = member
	return f
}

// parseFunction reads the object with the name and the arguments of a call. argumentsMember is
// the name of the member for the arguments.
func parseFunction(v rawjson.Value, argumentsMember string) chatFunction {
	f := chatFunction{fields: rawjson.ObjectReader{Value: v}, argumentsMember: argumentsMember}
	f.name = f.fields.TakeText("name")
	switch args := v.Get(f.argumentsMember); args.Kind() {
	case rawjson.KindString:
		f.arguments = f.fields.Take(f.argumentsMember).Text()
	case rawjson.KindAbsent, rawjson.KindNull:
	default:
		f.arguments, f.isJSON = string(f.fields.Take(f.argumentsMember)), true
	}
	return f
}

// readToolCall reads a call, or a piece of one. A later piece may repeat the name and the
// id, or have empty ones.
func (c *chatReader) readToolCall(v rawjson.Value) {
	if v.Kind() != rawjson.KindObject {
		return
	}
	i := rawjson.ObjectReader{Value: v}
	f := parseCallFunction(&i)
	index, ok := v.Get("index").Int()
	if !ok {
		index = -1
	}
	id := v.Get("id").Text()
	call := c.findCall(index, id, f)
	if call == nil {
		c.beginCall(&i, f, index)
		return
	}
	b := call.Block.(content.ToolCall)
	previous := b.Name + b.CallID
	if b.Name == "" {
		b.Name = f.name
	}
	if call.id == "" && id != "" {
		call.id, b.CallID = id, id
		c.calls.byID[id] = call
	}
	if b.Name+b.CallID != previous {
		call.Block = b
		c.MarkChanged(call.BlockBuilder)
	}
	c.readCallSeal(call.BlockBuilder, v.Get("extra_content"))
	call.argumentBytes += len(f.arguments)
	c.AppendText(call.BlockBuilder, f.arguments)
}

// findCall returns the call that a piece belongs to; nil: the piece begins another call. Some
// servers give all calls one index: then a different id with a name begins another call, and
// so does a name with arguments after a call with complete arguments.
func (c *chatReader) findCall(index int64, id string, f chatFunction) *chatCall {
	switch {
	case c.fromBody:
		return nil
	case index < 0 && id != "":
		return c.calls.byID[id]
	case index < 0 && f.name == "":
		return c.calls.last
	case index < 0:
		return nil
	}
	call := c.calls.byIndex[index]
	if call == nil || f.name == "" || id != "" && id == call.id {
		return call
	}
	other := id != "" && call.id != ""
	if other || f.arguments != "" && call.argumentBytes < maxCheckedArguments && isWholeJSON(call.Text) {
		return nil
	}
	return call
}

// beginCall begins a call. A call of an unknown type becomes a native block.
func (c *chatReader) beginCall(i *rawjson.ObjectReader, f chatFunction, index int64) {
	kind := i.TakeText("type")
	b := content.ToolCall{Wire: c.TypedForm(kind), CallID: i.TakeText("id"), Name: f.name}
	if f.name == "" && f.arguments == "" && b.CallID == "" && (kind == "" || kind == "function") {
		return
	}
	if i.Get(f.member) == nil {
		c.emitBlock(content.Native{Wire: c.TypedForm(typeNativeCall + kind), JSON: string(i.Value)})
		return
	}
	id := b.CallID
	if b.CallID == "" {
		b.CallID = c.makeCallID(c.calls.count)
	}
	var unwanted []string
	if !c.fromBody {
		unwanted = []string{"index"}
	}
	extra := i.Rest(append(unwanted, f.member, "extra_content", "function", "custom")...)
	if unwanted = nil; !c.fromBody {
		unwanted = []string{"name", f.argumentsMember}
	}
	extra = rawjson.WithMember(extra, f.member, f.fields.Rest(unwanted...))
	if f.isJSON {
		extra = rawjson.WithMember(extra, extraJSONArguments, rawjson.Value("true"))
	}
	b.SetExtra(extra)
	p := c.beginBlock(b)
	c.calls.add(&chatCall{BlockBuilder: p, id: id, argumentBytes: len(f.arguments)}, index)
	c.readCallSeal(p, i.Get("extra_content"))
	c.AppendText(p, f.arguments)
}

func (l *chatCalls) add(call *chatCall, index int64) {
	if l.first == nil {
		l.first, l.byIndex, l.byID = call, map[int64]*chatCall{}, map[string]*chatCall{}
	}
	l.last, l.byIndex[index], l.byID[call.id] = call, call, call
	l.count++
}

// makeCallID returns an id for call number n, which has none, so that its result can refer
// to it.
func (c *chatReader) makeCallID(n int) string {
	id := c.BlockWriter.Head.ID
	if id == "" {
		id = "call"
	}
	return fmt.Sprintf("%s/%d", id, n)
}

// readFunctionCall reads function_call, the older field for one call; OpenAI replaced it by
// tool_calls.
func (c *chatReader) readFunctionCall(v rawjson.Value) {
	f := parseFunction(v, "arguments")
	if f.name == "" && f.arguments == "" {
		return
	}
	if c.calls.functionCall == nil {
		b := content.ToolCall{Wire: c.TypedForm(typeFunctionCall), CallID: c.makeCallID(0), Name: f.name}
		b.SetExtra(rawjson.WithMember(nil, "function", f.fields.Rest()))
		if f.isJSON {
			b.SetExtra(rawjson.WithMember(b.Form().Extra, extraJSONArguments, rawjson.Value("true")))
		}
		c.calls.functionCall = c.beginBlock(b)
	}
	c.AppendText(c.calls.functionCall, f.arguments)
}

// chatServerTool is a tool that the server ran.
type chatServerTool struct {
	call      *wire.BlockBuilder
	hasResult bool
}

// readExecutedTool reads an entry of executed_tools, a tool that the server ran. A stream
// brings the entry twice: first without its result, then with it.
func (c *chatReader) readExecutedTool(v rawjson.Value) {
	if v.Kind() != rawjson.KindObject {
		return
	}
	i := rawjson.ObjectReader{Value: v}
	index, ok := v.Get("index").Int()
	if !ok {
		index = int64(c.calls.serverToolCount)
	}
	run := c.calls.serverTools[index]
	if c.fromBody {
		run = nil
	}
	kind, id, args := i.TakeText("type"), i.TakeText("id"), i.TakeText("arguments")
	b := content.ToolCall{Wire: c.TypedForm(kind), CallID: id, Name: kind, Server: true}
	b.SetID(id)
	if name := v.Get("name").Text(); name != "" && name != kind {
		b.Name = i.TakeText("name")
	}
	if id == "" {
		b.CallID = c.makeCallID(c.calls.serverToolCount) + "s"
	}
	r := content.ToolResult{Wire: c.TypedForm(kind), Name: b.Name, Text: i.TakeText("output"), Server: true}
	r.SetRole(content.RoleAssistant)
	r.SetExtra(i.Rest())
	answered := r.Text != ""
	for key := range rawjson.Value(r.Form().Extra).Members() {
		answered = answered || key != "index" && key != "name"
	}
	if !answered {
		b.SetExtra(r.Form().Extra)
	}
	if run == nil {
		run = &chatServerTool{call: c.beginBlock(b)}
		if c.calls.serverTools == nil {
			c.calls.serverTools = map[int64]*chatServerTool{}
		}
		c.calls.serverTools[index] = run
		c.calls.serverToolCount++
	}
	if args != "" && len(run.call.Text) == 0 {
		c.AppendText(run.call, args)
	}
	if !answered || run.hasResult {
		return
	}
	run.hasResult = true
	r.CallID = run.call.Block.(content.ToolCall).CallID
	if !c.fromBody {
		c.End(run.call)
	}
	c.emitBlock(r)
}

// endOpenCalls ends the open calls. A provider that reached the output limit stops in the middle
// of their arguments; such calls are marked.
func (c *chatReader) endOpenCalls() {
	for _, p := range c.OpenBlocks() {
		if !wire.IsCall(p.Block) {
			continue
		}
		if p.Block.Form().Type != "custom" {
			p.MarkTruncatedCall()
		}
		if !c.fromBody {
			c.End(p)
		}
	}
}

// readCallSeal reads the seal that Google puts on a call.
func (c *chatReader) readCallSeal(p *wire.BlockBuilder, extraContent rawjson.Value) {
	if extraContent == nil {
		return
	}
	b := p.Block.(content.ToolCall)
	if seal := extraContent.Get("google", "thought_signature").Text(); seal != "" {
		b.SetSeal(c.NewSeal(content.Signature, seal))
	}
	if rest := withoutGoogleSeal(extraContent); rest != nil {
		b.SetExtra(rawjson.WithMember(b.Form().Extra, "extra_content", rest))
	}
	p.Block = b
	c.MarkChanged(p)
}

// readTextSeal reads the seal that Google puts on a message. The seal belongs to the text
// before it; without a text it becomes a block of its own.
func (c *chatReader) readTextSeal(extraContent rawjson.Value) {
	if rest := withoutGoogleSeal(extraContent); rest != nil {
		c.keepUnknownField("extra_content", rest)
	}
	data := extraContent.Get("google", "thought_signature").Text()
	if data == "" {
		return
	}
	seal := c.NewSeal(content.Signature, data)
	if n := len(c.text.blocks); n > 0 {
		p := c.text.blocks[n-1]
		b := p.Block.(content.Text)
		b.SetSeal(seal)
		p.Block = b
		c.MarkChanged(p)
		return
	}
	c.emitSealWithoutText(seal, "extra_content")
}

// withoutGoogleSeal returns extra_content without Google's members thought_signature and thought;
// nil when nothing remains.
func withoutGoogleSeal(extraContent rawjson.Value) rawjson.Value {
	if extraContent.Kind() != rawjson.KindObject {
		return nil
	}
	var o rawjson.Object
	google := rawjson.Without(extraContent.Get("google"), "thought_signature", "thought")
	o.Merge(rawjson.Without(extraContent, "google"))
	o.Set("google", rawjson.NonEmpty(google))
	if rawjson.IsEmpty(o.Bytes()) {
		return nil
	}
	return o.Bytes()
}

// isWholeJSON reports whether a text is one complete JSON text.
func isWholeJSON(text []string) bool {
	_, err := rawjson.Parse([]byte(strings.Join(text, "")))
	return err == nil
}
