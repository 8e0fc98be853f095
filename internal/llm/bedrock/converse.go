package bedrock

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
	"github.com/tract-vcs/tract/llm"
)

// The converse dialect: Amazon Bedrock's Converse and ConverseStream
// (https://docs.aws.amazon.com/bedrock/latest/APIReference). A response is one
// message whose content is a list of blocks, each an object with one member that
// names its sort. It goes back as that list.
var Converse = &wire.Dialect{
	Name: "converse",
	Path: func(model string, stream bool) string {
		return bedrockPath(model, "converse", "converse-stream", stream)
	},
	Sign: signBedrock,
	NewReader: func(o *wire.BlockWriter) wire.ResponseReader {
		return &converse{BlockWriter: o, blocks: map[int64]*converseBlock{}}
	},
	Encode:             encodeConverse,
	Replay:             replayConverse,
	NeedsLoopReasoning: func(wire.Target) bool { return true },
	DecodeRequest:      requestConverse,
	Outline:            outlineConverse,
	Rules:              converseRules,

	OptionalFields:     [][]string{{"additionalModelRequestFields", "thinking", "display"}},
	ReasoningOffFields: [][]string{{"additionalModelRequestFields", "thinking"}, {"additionalModelRequestFields", "reasoningConfig"}, {"additionalModelRequestFields", "reasoning_effort"}},
	NeedsModel:         true,
}

// bedrockPath is where a model of Bedrock's is asked. A model may be an ARN, which
// has slashes.
func bedrockPath(model, once, streamed string, stream bool) string {
	if stream {
		once = streamed
	}
	return "/model/" + url.PathEscape(model) + "/" + once
}

// signBedrock sends a Bedrock API key. Signing with AWS credentials is left to
// [Config].Auth.
func signBedrock(h http.Header, t wire.Target, key string) {
	h.Set("Accept", "*/*")
	wire.SignBearer(h, t, key)
}

// Sources of thoughts, and a type of text, by the members that hold them.
const (
	converseThought  = "reasoningText"
	converseRedacted = "redactedContent"
	converseCited    = "citationsContent"
)

// converse reads one response.
type converse struct {
	*wire.BlockWriter
	stopped bool
	blocks  map[int64]*converseBlock // that are being streamed, by the index of the wire
}

// whole reads a response in one piece. A stream of which only one event came
// looks like one.
func (c *converse) ReadBody(v rawjson.Value) error {
	message := v.Get("output", "message")
	if message.Kind() != rawjson.KindObject {
		if known, err := c.take("", v); known {
			return err
		}
		if rawjson.TextOrJSON(v.Get("message")) != "" || rawjson.TextOrJSON(v.Get("Message")) != "" || v.Get("error") != nil {
			return c.refused("", v)
		}
		return fmt.Errorf("%w: no message in %q", llm.ErrProtocol, rawjson.Excerpt(v))
	}
	for b := range message.Get("content").Elements() {
		if err := c.Emit(c.block(b)); err != nil {
			return err
		}
	}
	c.cost(v.Get("usage"))
	c.stop(v)
	return nil
}

// event reads one event. Types that are not known are passed over.
func (c *converse) ReadEvent(name string, v rawjson.Value) error {
	_, err := c.take(name, v)
	return err
}

// take reads an event, which outside Amazon's own framing is an object with one
// member that names its type. It tells whether the type is known.
func (c *converse) take(name string, v rawjson.Value) (known bool, err error) {
	if inner := v.Get(name); name == "" || inner != nil {
		for name, v = range v.Members() {
			break
		}
	}
	switch name {
	case "messageStart":
	case "contentBlockStart":
		err = c.blockStart(v)
	case "contentBlockDelta":
		err = c.blockDelta(v)
	case "contentBlockStop":
		n, _ := v.Get("contentBlockIndex").Int()
		c.blockStop(n)
	case "messageStop":
		c.stop(v)
	case "metadata":
		c.cost(v.Get("usage"))
		c.EmitHead()
	default:
		if !strings.HasSuffix(name, "Exception") {
			return false, nil
		}
		err = c.refused(name, v)
	}
	return true, err
}

// refused is the error of a provider that says no.
func (c *converse) refused(kind string, v rawjson.Value) error {
	e := wire.NewAPIError(c.Provider, v)
	e.Type = cmp.Or(kind, e.Type)
	return e
}

// stop reads why a message ended.
func (c *converse) stop(v rawjson.Value) {
	for _, n := range slices.Sorted(maps.Keys(c.blocks)) {
		c.blockStop(n)
	}
	c.stopped = true
	if why := v.Get("stopReason").Text(); why != "" {
		c.SetHead(func(h *llm.Head) { h.Finish = why })
		c.EmitHead()
	}
}

// end counts blocks that another followed as whole; but never a call.
func (c *converse) Finish(bool) bool {
	for _, n := range slices.Sorted(maps.Keys(c.blocks)) {
		if b := c.blocks[n]; b.BlockBuilder != c.Last && !wire.IsCall(b.Block) {
			c.blockStop(n)
		}
	}
	return c.stopped
}

// cost reads the usage. What the format calls input is only the part that has
// nothing to do with a cache.
func (c *converse) cost(v rawjson.Value) {
	if v.Kind() != rawjson.KindObject {
		return
	}
	n := wire.TokenCounts(v)
	u := content.Usage{
		Output: n("outputTokens"), Cached: n("cacheReadInputTokens"), CacheWrite: n("cacheWriteInputTokens"), Raw: bytes.Clone(v),
	}
	u.Input = n("inputTokens") + u.Cached + u.CacheWrite
	c.SetUsage(u)
}

// block is the block that a whole content block stands for.
func (c *converse) block(v rawjson.Value) content.Block {
	i := rawjson.ObjectReader{Value: v}
	switch {
	case v.Get("text").Kind() == rawjson.KindString:
		b := content.Text{Wire: c.BlockForm(), Of: content.KindAssistant, Text: i.TakeString("text")}
		b.SetExtra(i.Rest())
		return b
	case v.Get("reasoningContent", converseThought).Kind() == rawjson.KindObject, v.Get("reasoningContent", converseRedacted).Kind() == rawjson.KindString:
		return c.thought(&i)
	case v.Get("toolUse").Kind() == rawjson.KindObject:
		return c.call(&i)
	case v.Get("toolResult").Kind() == rawjson.KindObject:
		return c.result(&i)
	case v.Get(converseCited, "content").Kind() == rawjson.KindArray:
		return c.citedText(&i)
	}
	b := content.Native{Wire: c.BlockForm(), JSON: string(v)}
	for key := range v.Members() {
		b.SetType(key)
		break
	}
	return b
}

func (c *converse) thought(i *rawjson.ObjectReader) content.Block {
	in := i.TakeObject("reasoningContent")
	b := content.Reasoning{Wire: c.BlockForm(), Format: content.FormatBedrock, Source: converseThought}
	if data := in.TakeText(converseRedacted); data != "" {
		b.Source = converseRedacted
		b.SetSeal(c.NewSeal(content.Redacted, data))
		b.SetExtra(rawjson.WithMember(i.Rest(), "reasoningContent", in.Rest()))
		return b
	}
	said := in.TakeObject(converseThought)
	b.Text = said.TakeString("text")
	if seal := said.TakeText("signature"); seal != "" {
		b.SetSeal(c.NewSeal(content.Signature, seal))
	}
	b.SetExtra(rawjson.WithMember(i.Rest(), "reasoningContent", rawjson.WithMember(in.Rest(), converseThought, said.Rest())))
	return b
}

func (c *converse) call(i *rawjson.ObjectReader) content.Block {
	in := i.TakeObject("toolUse")
	b := content.ToolCall{Wire: c.BlockForm(), CallID: in.TakeText("toolUseId"), Name: in.TakeText("name"), Arguments: "{}"}
	if v := in.Take("input"); v != nil {
		b.Arguments = string(v)
	}
	b.SetType(in.TakeText("type"))
	b.Server = strings.HasPrefix(b.Form().Type, "server")
	b.SetExtra(rawjson.WithMember(i.Rest(), "toolUse", in.Rest()))
	return b
}

// result reads what came of a tool that the provider ran.
func (c *converse) result(i *rawjson.ObjectReader) content.Block {
	in := i.TakeObject("toolResult")
	b := content.ToolResult{Wire: c.BlockForm(), CallID: in.TakeText("toolUseId"), Parts: bytes.Clone(in.Take("content")), Server: true}
	b.SetRole(content.RoleAssistant)
	b.SetType(in.TakeText("type"))
	if b.IsError = in.Get("status").Text() == "error"; b.IsError {
		in.Take("status")
	}
	b.SetExtra(rawjson.WithMember(i.Rest(), "toolResult", in.Rest()))
	return b
}

// citedText reads a text with what it cites. Its words may lie in several parts.
func (c *converse) citedText(i *rawjson.ObjectReader) content.Block {
	b := content.Text{Wire: c.TypedForm(converseCited), Of: content.KindAssistant}
	in := i.TakeObject(converseCited)
	parts := 0
	for part := range in.Get("content").Elements() {
		b.Text += part.Get("text").Text()
		for key := range part.Members() {
			if parts++; key != "text" {
				parts = 2
			}
		}
	}
	if parts == 1 {
		in.Take("content")
	}
	b.SetExtra(rawjson.WithMember(i.Rest(), converseCited, in.Rest()))
	return b
}
