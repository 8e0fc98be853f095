package openai

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
	"github.com/tract-vcs/tract/llm"
)

// Responses is OpenAI's Responses API
// (https://platform.openai.com/docs/api-reference/responses). A response is a list of
// items and goes back as those items: members that no field stands for are in the extra of
// their block.
var Responses = &wire.Dialect{
	Name:             "responses",
	Path:             func(string, bool) string { return "/responses" },
	Sign:             sign,
	NewReader:        func(o *wire.BlockWriter) wire.ResponseReader { return &responsesReader{BlockWriter: o} },
	Encode:           encodeResponses,
	Replay:           replayResponses,
	DecodeRequest:    decodeResponsesRequest,
	NewMessageReader: newResponsesItemReader,
	Outline:          outlineResponses,
	Rules:            responsesRules,

	OptionalFields:     [][]string{{"reasoning", "summary"}, {"include"}},
	ReasoningOffFields: [][]string{{"reasoning", "effort"}},
}

// responsesReader reads one response.
type responsesReader struct {
	*wire.BlockWriter
	items          map[int64]*responsesItem  // by their index: ids may change in every event
	ids            map[string]*responsesItem // by every id that was seen
	order          []*responsesItem          // in the order in which they began
	lastServerCall map[string]string         // the last call of each type
	ended          bool
}

// ReadBody reads a response in one piece.
func (r *responsesReader) ReadBody(v rawjson.Value) error {
	status := cmp.Or(v.Get("status").Text(), "completed")
	if v.Get("output").Kind() != rawjson.KindArray {
		if wire.HasError(v) || v.At(0).Get("error") != nil || v.Get("type").Text() == "error" {
			return r.newError(v)
		}
		if v.Get("status").Kind() != rawjson.KindString {
			return fmt.Errorf("%w: no output in %q", llm.ErrProtocol, rawjson.Excerpt(v))
		}
	}
	if err := r.readEnd(v, status); err != nil {
		return err
	}
	r.ended = !isRunning(status) // the rest is to be fetched later
	return nil
}

// isRunning reports whether a response of this status has not ended.
func isRunning(status string) bool { return status == "queued" || status == "in_progress" }

// finalEvents are the events that end a stream, and the status that each stands for.
var finalEvents = map[string]string{
	"response.completed": "completed", "response.incomplete": "incomplete",
	"response.failed": "failed", "response.cancelled": "cancelled",
}

// ReadEvent reads one event. Unknown types are skipped: what they bring comes again with
// the whole item.
func (r *responsesReader) ReadEvent(name string, v rawjson.Value) error {
	if t := v.Get("type").Text(); t != "" {
		name = t
	}
	switch name {
	case "response.created", "response.in_progress", "response.queued":
		r.readHead(v.Get("response"))
		r.EmitHead()
		return nil
	case "response.output_item.added":
		r.readItemAdded(v)
		return nil
	case "response.output_item.done":
		r.readItemDone(v)
		return nil
	case "error":
		return r.readFailure(v)
	}
	if status, ok := finalEvents[name]; ok {
		if text := v.Get("response", "status").Text(); text != "" && !isRunning(text) {
			status = text
		}
		if err := r.readEnd(v.Get("response"), status); err != nil {
			return err
		}
		r.ended = true
		return io.EOF
	}
	stem, delta := strings.CutSuffix(name, ".delta")
	stem, done := strings.CutSuffix(stem, ".done")
	if delta || done {
		r.readDelta(stem, v, done)
		return nil
	}
	if wire.HasError(v) {
		return r.readFailure(v)
	}
	return nil
}

// readHead reads what a response says about itself while it is running.
func (r *responsesReader) readHead(v rawjson.Value) {
	r.SetHead(func(h *llm.Head) {
		h.ID = cmp.Or(v.Get("id").Text(), h.ID)
		h.Model = cmp.Or(v.Get("model").Text(), h.Model)
	})
}

// readEnd reads the end of a response, which repeats all items.
func (r *responsesReader) readEnd(v rawjson.Value, status string) error {
	r.readHead(v)
	r.readRepeatedItems(v.Get("output"))
	r.SetHead(func(h *llm.Head) { h.Finish = status })
	r.readUsage(v.Get("usage"))
	if status == "failed" || wire.HasError(v) {
		return r.newError(v)
	}
	for _, it := range r.order {
		r.endItem(it, it.first)
	}
	return nil
}

// readFailure returns the error of a stream that fails. The event with the status may
// follow or not, so it is not waited for.
func (r *responsesReader) readFailure(v rawjson.Value) error {
	r.SetHead(func(h *llm.Head) { h.Finish = "failed" })
	return r.newError(v)
}

// newError returns the error that the provider sent: under error, or as the event itself.
func (r *responsesReader) newError(v rawjson.Value) error {
	if wire.HasError(v) || v.Kind() == rawjson.KindArray {
		return wire.NewAPIError(r.Provider, v)
	}
	return wire.NewAPIError(r.Provider, rawjson.Without(v, "type", "sequence_number", "status", "output"))
}

// Finish marks what is open in a stream that broke as incomplete, even when another item
// has begun.
func (r *responsesReader) Finish(bool) bool {
	for _, it := range r.order {
		for _, p := range it.blocks {
			if !r.ended && !it.done {
				p.MarkIncomplete()
			}
		}
	}
	return r.ended
}

// readUsage reads the usage. Reasoning is part of the output; the total shows whether a
// server counts it beside the output.
func (r *responsesReader) readUsage(v rawjson.Value) {
	if v.Kind() != rawjson.KindObject {
		return
	}
	n := wire.TokenCounts(v)
	u := content.Usage{
		Input: n("input_tokens"), Output: n("output_tokens"), Reasoning: n("output_tokens_details", "reasoning_tokens"),
		Cached: n("input_tokens_details", "cached_tokens"), CacheWrite: n("input_tokens_details", "cache_write_tokens"),
		Raw: bytes.Clone(v),
	}
	if u.Reasoning > 0 && n("total_tokens") == u.Input+u.Output+u.Reasoning {
		u.Output += u.Reasoning
	}
	r.SetUsage(u)
}
