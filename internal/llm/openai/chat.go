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

// The chat dialect: OpenAI's chat completions, and what others made of them. A
// response is one message whose fields have no order; the blocks made of it come
// in the order in which a stream brings them, and from one piece as reasoning,
// server tools, text, refusal, calls. They go back as that one message: what it
// has beyond the fields known here is in the Extra of its blocks.
var Chat = &wire.Dialect{
	Name:                     "chat",
	Path:                     func(string, bool) string { return "/chat/completions" },
	Sign:                     sign,
	NewReader:                func(o *wire.BlockWriter) wire.ResponseReader { return &chatReader{BlockWriter: o} },
	Encode:                   encodeChat,
	Replay:                   func(t wire.Target, blocks []content.Block) rawjson.Value { return replayChat(t, blocks, false) },
	NeedsReasoningInToolLoop: func(t wire.Target) bool { return !t.Quirks.NoReasoningField },
	DecodeRequest:            decodeChatRequest,
	NewMessageReader:         newChatMessageReader,
	Outline:                  OutlineChat,
	Rules:                    chatRules,

	OptionalFields:     [][]string{{"stream_options"}},
	ReasoningOffFields: [][]string{{"reasoning_effort"}, {"reasoning", "effort"}, {"reasoning"}, {"thinking"}, {"enable_thinking"}, {"chat_template_kwargs"}},
}

// signChat puts the key where the server wants it.
func sign(h http.Header, t wire.Target, key string) {
	switch {
	case key == "":
	case t.Quirks.KeyHeader != "":
		h.Set(t.Quirks.KeyHeader, key)
	default:
		wire.SignBearer(h, t, key)
	}
}

// chat reads one response.
type chatReader struct {
	*wire.BlockWriter
	whole     bool // it came in one piece, so that its message can be rebuilt to the letter
	sawChoice bool // a choice was seen
	finished  bool

	text          chatText
	reasoning     chatReasoning
	calls         chatCalls
	unknownFields wire.FieldAccumulator
}

// whole reads a response in one piece.
func (c *chatReader) ReadBody(v rawjson.Value) error {
	c.whole = true
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
	c.readHead(v)
	if err := c.readMessage(message); err != nil {
		return err
	}
	c.readFinishReason(choice.Get("finish_reason"))
	c.finished = true
	return failure
}

// event reads one chunk of a stream. Chunks without choices may hold usage, an
// error, or what is nobody's business.
func (c *chatReader) ReadEvent(name string, v rawjson.Value) error {
	if v.Kind() != rawjson.KindObject && v.Kind() != rawjson.KindArray {
		return fmt.Errorf("%w: no chunk in %q", llm.ErrProtocol, rawjson.Excerpt(v))
	}
	c.readHead(v)
	var failed rawjson.Value
	for choice := range v.Get("choices").Elements() {
		if n, _ := choice.Get("index").Int(); n != 0 {
			continue
		}
		d := choice.Get("delta")
		if d == nil && !c.sawChoice {
			d = choice.Get("message") // a later one repeats what came
		}
		c.sawChoice = c.sawChoice || d != nil
		if err := c.readMessage(d); err != nil {
			return err
		}
		c.readFinishReason(choice.Get("finish_reason"))
		c.readUsage(choice.Get("usage"))
		failed = choice.Get("error")
	}
	if failed == nil {
		failed = v.Get("x_groq", "error")
	}
	return c.findError(v, failed, name == "error" || v.Get("object").Text() == "error")
}

// failure is the error that a response or a chunk holds, or nil. Google sends one
// in a list. all tells that nothing else is in it.
func (c *chatReader) findError(v, other rawjson.Value, all bool) error {
	failed := v.Get("error")
	if v.Kind() == rawjson.KindArray {
		failed = v.At(0).Get("error")
	}
	isError := func(e rawjson.Value) bool {
		return !rawjson.IsEmpty(e) && rawjson.TextOrJSON(e) != "" && rawjson.TextOrJSON(e) != "false"
	}
	switch {
	case failed.Kind() == rawjson.KindString && isError(failed):
		return wire.NewAPIError(c.Provider, v) // whose code is beside it
	case isError(failed):
		return wire.NewAPIError(c.Provider, failed)
	case isError(other):
		return wire.NewAPIError(c.Provider, other)
	}
	if all {
		return wire.NewAPIError(c.Provider, v)
	}
	return nil
}

// head reads what a response or a chunk says about itself.
func (c *chatReader) readHead(v rawjson.Value) {
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

// cost reads a report of usage, of which some servers put one into the choice.
func (c *chatReader) readUsage(v rawjson.Value) {
	if v.Kind() == rawjson.KindObject {
		c.SetUsage(chatUsage(v))
	}
}

// finish reads why a choice ended, if it did. Some servers send another chunk
// afterwards, in which it did not.
func (c *chatReader) readFinishReason(reason rawjson.Value) {
	if rawjson.TextOrJSON(reason) == "" {
		return
	}
	c.finished = true
	c.SetHead(func(h *llm.Head) { h.Finish = rawjson.TextOrJSON(reason) })
	c.endCalls()
}

// end puts out what was held back.
func (c *chatReader) Finish(text bool) bool {
	whole := c.finished || text && c.sawChoice
	c.endText()
	c.endReasoning()
	c.endUnknown()
	if c.whole {
		open := c.Open
		c.Open = nil
		for _, p := range open {
			c.End(p)
		}
	}
	return whole
}

// start begins a block. In a stream the one before it is whole then, but for a
// call whose arguments are not.
func (c *chatReader) beginBlock(b content.Block) (*wire.BlockBuilder, error) {
	if p := c.Last; p != nil && !c.whole && (!wire.IsCall(p.Block) || isWholeJSON(p.Text)) {
		c.End(p)
	}
	return c.Begin(b)
}

// came puts out a block that came whole.
func (c *chatReader) emitBlock(b content.Block) (*wire.BlockBuilder, error) {
	p, err := c.beginBlock(b)
	if err == nil && !c.whole {
		c.End(p)
	}
	return p, err
}

// chatUsage reads a report of usage. The output of some servers leaves reasoning
// out: it does when only the three together make the total.
func chatUsage(v rawjson.Value) content.Usage {
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
