package openai

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
	"github.com/tract-vcs/tract/llm"
)

// Chat is OpenAI's chat completions API
// (https://platform.openai.com/docs/api-reference/chat) and its variants by other vendors. A
// response is one message whose fields have no order. A stream gives its blocks in the
// order of arrival; a response body gives reasoning, server tools, text, refusal and calls,
// in this order. The blocks are sent back as that one message; the extra of its blocks keeps
// the members that have no block.
var Chat = &wire.Dialect{
	Name:      "chat",
	Path:      func(string, bool) string { return "/chat/completions" },
	Sign:      sign,
	NewReader: func(o *wire.BlockWriter) wire.ResponseReader { return &chatReader{BlockWriter: o} },
	Encode:    encodeChat,
	Replay: func(t wire.Target, blocks []content.Block) rawjson.Value {
		return encodeAssistantMessage(t, blocks, false)
	},
	LoopWithoutReasoning: func(t wire.Target) bool { return t.Quirks.NoReasoningField },
	DecodeRequest:        decodeChatRequest,
	NewMessageReader:     newChatMessageReader,
	Outline:              OutlineChat,
	Rules:                chatRules,

	OptionalFields:     [][]string{{"stream_options"}},
	ReasoningOffFields: [][]string{{"reasoning_effort"}, {"reasoning", "effort"}, {"reasoning"}, {"thinking"}, {"enable_thinking"}, {"chat_template_kwargs"}},
}

// sign sets the API key in the header that the server reads.
func sign(h http.Header, t wire.Target, key string) {
	switch {
	case key == "":
	case t.Quirks.KeyHeader != "":
		h.Set(t.Quirks.KeyHeader, key)
	default:
		wire.SignBearer(h, t, key)
	}
}

// chatReader reads one response.
type chatReader struct {
	*wire.BlockWriter
	fromBody  bool // the response is one body, not a stream, so its message can be rebuilt exactly
	sawChoice bool // a choice with a message was read
	finished  bool

	text          chatText
	reasoning     chatReasoning
	calls         chatCalls
	unknownFields wire.FieldAccumulator
	fields        map[string]rawjson.Value // the members of the current message or chunk that become blocks; reused for each
}

// ReadBody reads the body of a response that is not streamed.
func (c *chatReader) ReadBody(v rawjson.Value) error {
	c.fromBody = true
	choice := v.Get("choices").At(0)
	message := choice.Get("message")
	if message.Kind() != rawjson.KindObject {
		message = choice.Get("delta")
	}
	failure := c.findError(v, choice.Get("error"), v.Get("object").Text() == "error")
	if message.Kind() != rawjson.KindObject {
		if failure != nil {
			return failure
		}
		return fmt.Errorf("%w: no message in %q", llm.ErrProtocol, rawjson.Excerpt(v))
	}
	c.readHeadAndUsage(v)
	c.readMessage(message)
	c.finishChoice(choice.Get("finish_reason"))
	c.finished = true
	return failure
}

// ReadEvent reads one chunk of a stream. A chunk without choices may hold usage or an
// error, or nothing of use.
func (c *chatReader) ReadEvent(name string, v rawjson.Value) error {
	if v.Kind() != rawjson.KindObject && v.Kind() != rawjson.KindArray {
		return fmt.Errorf("%w: no chunk in %q", llm.ErrProtocol, rawjson.Excerpt(v))
	}
	c.readHeadAndUsage(v)
	var failed rawjson.Value
	for choice := range c.Elements(v.Get("choices")) {
		if n, _ := choice.Get("index").Int(); n != 0 {
			continue
		}
		d := choice.Get("delta")
		if d == nil && !c.sawChoice {
			d = choice.Get("message") // a later message repeats the deltas
		}
		c.sawChoice = c.sawChoice || d != nil
		c.readMessage(d)
		c.finishChoice(choice.Get("finish_reason"))
		c.readUsage(choice.Get("usage"))
		failed = choice.Get("error")
	}
	if failed == nil {
		failed = v.Get("x_groq", "error")
	}
	return c.findError(v, failed, name == "error" || v.Get("object").Text() == "error")
}

// findError returns the error that a response or a chunk holds, or nil: the member error of
// v, of the first element if v is a list (Google), or choiceError. If there is none and
// wholeIsError is true, v itself is the error.
func (c *chatReader) findError(v, choiceError rawjson.Value, wholeIsError bool) error {
	failed := v.Get("error")
	if v.Kind() == rawjson.KindArray {
		failed = v.At(0).Get("error")
	}
	isError := func(e rawjson.Value) bool {
		return !rawjson.IsEmpty(e) && rawjson.TextOrJSON(e) != "" && rawjson.TextOrJSON(e) != "false"
	}
	switch {
	case failed.Kind() == rawjson.KindString && isError(failed):
		return wire.NewAPIError(c.Provider, v) // the code is a member of v
	case isError(failed):
		return wire.NewAPIError(c.Provider, failed)
	case isError(choiceError):
		return wire.NewAPIError(c.Provider, choiceError)
	}
	if wholeIsError {
		return wire.NewAPIError(c.Provider, v)
	}
	return nil
}

// readHeadAndUsage reads the id, the model and the usage of a response or a chunk.
func (c *chatReader) readHeadAndUsage(v rawjson.Value) {
	first := c.BlockWriter.Head.ID+c.BlockWriter.Head.Model == ""
	c.SetHead(func(h *llm.Head) {
		h.ID, h.Model = cmp.Or(rawjson.TextOrJSON(v.Get("id")), h.ID), cmp.Or(rawjson.TextOrJSON(v.Get("model")), h.Model)
	})
	if first {
		c.EmitHead()
	}
	c.readUsage(v.Get("x_groq", "usage"))
	c.readUsage(v.Get("usage"))
}

// readUsage reads a usage object. Some servers put it into the choice.
func (c *chatReader) readUsage(v rawjson.Value) {
	if v.Kind() == rawjson.KindObject {
		c.SetUsage(decodeChatUsage(v))
	}
}

// finishChoice ends the calls and sets the finish reason of the response, if a choice has one. Some
// servers send another chunk afterwards, with a null finish reason.
func (c *chatReader) finishChoice(reason rawjson.Value) {
	if rawjson.TextOrJSON(reason) == "" {
		return
	}
	c.finished = true
	c.SetHead(func(h *llm.Head) { h.Finish = rawjson.TextOrJSON(reason) })
	c.endOpenCalls()
}

// Finish emits the text and the members that were held back, and reports whether the
// response is complete.
func (c *chatReader) Finish(sawEnd bool) bool {
	complete := c.finished || sawEnd && c.sawChoice
	c.finishText()
	c.finishSecondaryReasoningFields()
	c.finishUnknownFields()
	if c.fromBody {
		c.EndOpen()
	}
	return complete
}

// beginBlock begins a block. In a stream it first ends the previous block, unless that is a
// call with incomplete arguments.
func (c *chatReader) beginBlock(b content.Block) *wire.BlockBuilder {
	if p := c.Last; p != nil && !c.fromBody && (!wire.IsCall(p.Block) || isWholeJSON(p.Text)) {
		c.End(p)
	}
	return c.Begin(b)
}

// emitBlock adds a complete block.
func (c *chatReader) emitBlock(b content.Block) {
	if p := c.beginBlock(b); !c.fromBody {
		c.End(p)
	}
}

// decodeChatUsage decodes a usage object. Some servers do not count reasoning as output: then the
// total is the sum of input, output and reasoning, and decodeChatUsage adds the reasoning to the
// output.
func decodeChatUsage(v rawjson.Value) content.Usage {
	count := wire.TokenCounts(v)
	n := func(paths ...[]string) int64 {
		for _, path := range paths {
			if n := count(path...); n > 0 {
				return n
			}
		}
		return 0
	}
	u := content.Usage{
		Input:      n([]string{"prompt_tokens"}, []string{"input_tokens"}),
		Output:     n([]string{"completion_tokens"}, []string{"output_tokens"}),
		Reasoning:  n([]string{"completion_tokens_details", "reasoning_tokens"}, []string{"reasoning_tokens"}),
		Cached:     n([]string{"prompt_tokens_details", "cached_tokens"}, []string{"cached_tokens"}, []string{"num_cached_tokens"}, []string{"prompt_cache_hit_tokens"}),
		CacheWrite: n([]string{"prompt_tokens_details", "cache_write_tokens"}, []string{"cache_creation_input_tokens"}),
		Raw:        bytes.Clone(v),
	}
	if total := n([]string{"total_tokens"}); u.Reasoning > 0 && total == u.Input+u.Output+u.Reasoning {
		u.Output += u.Reasoning
	}
	return u
}
