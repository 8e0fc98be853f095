package bedrock

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
	"github.com/tract-vcs/tract/llm"
)

// Converse is Amazon Bedrock's Converse and ConverseStream
// (https://docs.aws.amazon.com/bedrock/latest/APIReference). A response is one message
// whose content is a list of blocks, each an object with one member that names its type.
// It goes back as that list.
var Converse = &wire.Dialect{
	Name: "converse",
	Path: func(model string, stream bool) string {
		return modelPath(model, "converse", "converse-stream", stream)
	},
	Sign: sign,
	NewReader: func(o *wire.BlockWriter) wire.ResponseReader {
		return &converseReader{BlockWriter: o, blocks: map[int64]*streamBlock{}}
	},
	Encode:        encodeConverse,
	Replay:        encodeAssistantMessage,
	DecodeRequest: decodeConverseRequest,
	Outline:       outlineMessages,
	Rules:         converseRules,

	OptionalFields:     [][]string{{"additionalModelRequestFields", "thinking", "display"}},
	ReasoningOffFields: [][]string{{"additionalModelRequestFields", "thinking"}, {"additionalModelRequestFields", "reasoningConfig"}, {"additionalModelRequestFields", "reasoning_effort"}},
	NeedsModel:         true,
}

// modelPath returns the path of a model of Bedrock. The model may be an ARN, which has
// slashes.
func modelPath(model, operation, streamOperation string, stream bool) string {
	if stream {
		operation = streamOperation
	}
	return "/model/" + url.PathEscape(model) + "/" + operation
}

// sign sends a Bedrock API key. Signing with AWS credentials is left to the Auth function
// of the configuration.
func sign(h http.Header, t wire.Target, key string) {
	h.Set("Accept", "*/*")
	wire.SignBearer(h, t, key)
}

// Members of reasoningContent, each the source of a sort of reasoning, and a type of text.
const (
	memberReasoningText   = "reasoningText"
	memberRedactedContent = "redactedContent"
	typeCitations         = "citationsContent"
)

// converseReader reads one response.
type converseReader struct {
	*wire.BlockWriter
	finished bool
	blocks   map[int64]*streamBlock // that are being streamed, by the index of the wire
}

// ReadBody reads a response in one piece. A stream of which only one event came
// looks like one.
func (c *converseReader) ReadBody(v rawjson.Value) error {
	message := v.Get("output", "message")
	if message.Kind() != rawjson.KindObject {
		if known, err := c.readNamedEvent("", v); known {
			return err
		}
		if rawjson.TextOrJSON(v.Get("message")) != "" || rawjson.TextOrJSON(v.Get("Message")) != "" || v.Get("error") != nil {
			return c.newError("", v)
		}
		return fmt.Errorf("%w: no message in %q", llm.ErrProtocol, rawjson.Excerpt(v))
	}
	for b := range c.Elements(message.Get("content")) {
		c.Emit(c.contentBlock(b))
	}
	c.readUsage(v.Get("usage"))
	c.endMessage(v)
	return nil
}

// ReadEvent reads one event. Unknown types are skipped.
func (c *converseReader) ReadEvent(name string, v rawjson.Value) error {
	_, err := c.readNamedEvent(name, v)
	return err
}

// readNamedEvent reads an event, which outside Amazon's own framing is an object with one
// member that names its type. It reports whether the type is known.
func (c *converseReader) readNamedEvent(name string, v rawjson.Value) (known bool, err error) {
	if inner := v.Get(name); name == "" || inner != nil {
		for name, v = range v.Members() {
			break
		}
	}
	switch name {
	case "messageStart":
	case "contentBlockStart":
		c.readBlockStart(v)
	case "contentBlockDelta":
		c.readBlockDelta(v)
	case "contentBlockStop":
		n, _ := v.Get("contentBlockIndex").Int()
		c.endBlockAt(n)
	case "messageStop":
		c.endMessage(v)
	case "metadata":
		c.readUsage(v.Get("usage"))
		c.EmitHead()
	default:
		if !strings.HasSuffix(name, "Exception") {
			return false, nil
		}
		err = c.newError(name, v)
	}
	return true, err
}

// newError returns the error that the provider sent.
func (c *converseReader) newError(kind string, v rawjson.Value) error {
	e := wire.NewAPIError(c.Provider, v)
	e.Type = cmp.Or(kind, e.Type)
	return e
}

// endMessage ends the open blocks and reads why the message ended.
func (c *converseReader) endMessage(v rawjson.Value) {
	c.EndOpen()
	c.finished = true
	if reason := v.Get("stopReason").Text(); reason != "" {
		c.SetHead(func(h *llm.Head) { h.Finish = reason })
		c.EmitHead()
	}
}

// Finish reports whether the message ended.
func (c *converseReader) Finish(bool) bool { return c.finished }

// readUsage reads the usage. Its inputTokens are only those that neither came from a cache
// nor went into one.
func (c *converseReader) readUsage(v rawjson.Value) {
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

// contentBlock returns the block for a whole content block.
func (c *converseReader) contentBlock(v rawjson.Value) content.Block {
	i := rawjson.ObjectReader{Value: v}
	switch {
	case v.Get("text").Kind() == rawjson.KindString:
		b := content.Text{Wire: c.BlockForm(), Of: content.KindAssistant, Text: i.TakeString("text")}
		b.SetExtra(i.Rest())
		return b
	case v.Get("reasoningContent", memberReasoningText).Kind() == rawjson.KindObject, v.Get("reasoningContent", memberRedactedContent).Kind() == rawjson.KindString:
		return c.reasoningBlock(&i)
	case v.Get("toolUse").Kind() == rawjson.KindObject:
		return c.callBlock(&i)
	case v.Get("toolResult").Kind() == rawjson.KindObject:
		return c.serverResultBlock(&i)
	case v.Get(typeCitations, "content").Kind() == rawjson.KindArray:
		return c.citedTextBlock(&i)
	}
	b := content.Native{Wire: c.BlockForm(), JSON: string(v)}
	for key := range v.Members() {
		b.SetType(key)
		break
	}
	return b
}

func (c *converseReader) reasoningBlock(i *rawjson.ObjectReader) content.Block {
	in := i.TakeObject("reasoningContent")
	b := content.Reasoning{Wire: c.BlockForm(), Format: content.FormatBedrock, Source: memberReasoningText}
	if data := in.TakeText(memberRedactedContent); data != "" {
		b.Source = memberRedactedContent
		b.SetSeal(c.NewSeal(content.Redacted, data))
		b.SetExtra(rawjson.WithMember(i.Rest(), "reasoningContent", in.Rest()))
		return b
	}
	text := in.TakeObject(memberReasoningText)
	b.Text = text.TakeString("text")
	if seal := text.TakeText("signature"); seal != "" {
		b.SetSeal(c.NewSeal(content.Signature, seal))
	}
	b.SetExtra(rawjson.WithMember(i.Rest(), "reasoningContent", rawjson.WithMember(in.Rest(), memberReasoningText, text.Rest())))
	return b
}

func (c *converseReader) callBlock(i *rawjson.ObjectReader) content.Block {
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

// serverResultBlock reads the result of a tool that the provider ran.
func (c *converseReader) serverResultBlock(i *rawjson.ObjectReader) content.Block {
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

// citedTextBlock reads a text with citations. The text may come in several parts.
func (c *converseReader) citedTextBlock(i *rawjson.ObjectReader) content.Block {
	b := content.Text{Wire: c.TypedForm(typeCitations), Of: content.KindAssistant}
	in := i.TakeObject(typeCitations)
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
	b.SetExtra(rawjson.WithMember(i.Rest(), typeCitations, in.Rest()))
	return b
}
