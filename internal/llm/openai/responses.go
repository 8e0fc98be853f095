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
// items, and is sent back as those items. The extra of a block keeps the members of its item
// that have no field.
var Responses = &wire.Dialect{
	Name:             "responses",
	Path:             func(string, bool) string { return "/responses" },
	Sign:             sign,
	NewReader:        func(o *wire.BlockWriter) wire.ResponseReader { return &responsesReader{BlockWriter: o} },
	Encode:           encodeResponses,
	Replay:           encodeAssistantItemsWithIDs,
	DecodeRequest:    decodeResponsesRequest,
	NewMessageReader: newResponsesItemReader,
	Outline:          outlineResponsesInput,
	Rules:            responsesRules,

	OptionalFields:     [][]string{{"reasoning", "summary"}, {"include"}},
	ReasoningOffFields: [][]string{{"reasoning", "effort"}},
}

// responsesReader reads one response.
type responsesReader struct {
	*wire.BlockWriter
	items          map[int64]*responsesItem  // by output_index
	ids            map[string]*responsesItem // by item id; an item may have had several
	order          []*responsesItem          // in the order in which they began
	lastServerCall map[string]string         // the id of the last call of each type, without the suffix _call
	ended          bool
}

// ReadBody reads the body of a response that is not streamed.
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
	r.ended = !isRunning(status) // a running response has to be fetched again later
	return nil
}

// isRunning reports whether a response with this status has not ended.
func isRunning(status string) bool { return status == "queued" || status == "in_progress" }

// finalEvents maps each event that ends a stream to the status that it means.
var finalEvents = map[string]string{
	"response.completed": "completed", "response.incomplete": "incomplete",
	"response.failed": "failed", "response.cancelled": "cancelled",
}

// ReadEvent reads one event. It skips events of unknown types, because the complete item
// repeats their content.
func (r *responsesReader) ReadEvent(name string, v rawjson.Value) error {
	if t := v.Get("type").Text(); t != "" {
		name = t
	}
	switch name {
	case "response.created", "response.in_progress", "response.queued":
		r.setIDAndModel(v.Get("response"))
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
	eventPrefix, delta := strings.CutSuffix(name, ".delta")
	eventPrefix, done := strings.CutSuffix(eventPrefix, ".done")
	if delta || done {
		r.readDelta(eventPrefix, v, done)
		return nil
	}
	if wire.HasError(v) {
		return r.readFailure(v)
	}
	return nil
}

// setIDAndModel sets the id and the model of the head to those of a response.
func (r *responsesReader) setIDAndModel(response rawjson.Value) {
	r.SetHead(func(h *llm.Head) {
		h.ID = cmp.Or(response.Get("id").Text(), h.ID)
		h.Model = cmp.Or(response.Get("model").Text(), h.Model)
	})
}

// readEnd reads the end of a response, which repeats all items.
func (r *responsesReader) readEnd(v rawjson.Value, status string) error {
	r.setIDAndModel(v)
	r.readRepeatedItems(v.Get("output"))
	r.SetHead(func(h *llm.Head) { h.Finish = status })
	r.readUsage(v.Get("usage"))
	if status == "failed" || wire.HasError(v) {
		return r.newError(v)
	}
	for _, it := range r.order {
		r.endItem(it, it.startJSON)
	}
	return nil
}

// readFailure returns the error of a stream that fails. It does not wait for the event with
// the status, because that event may not follow.
func (r *responsesReader) readFailure(v rawjson.Value) error {
	r.SetHead(func(h *llm.Head) { h.Finish = "failed" })
	return r.newError(v)
}

// newError returns the error that the provider sent: the member error of v, or v itself.
func (r *responsesReader) newError(v rawjson.Value) error {
	if wire.HasError(v) || v.Kind() == rawjson.KindArray {
		return wire.NewAPIError(r.Provider, v)
	}
	return wire.NewAPIError(r.Provider, rawjson.Without(v, "type", "sequence_number", "status", "output"))
}

// Finish reports whether the response is complete. In a broken stream it marks the blocks of
// every item that has not ended as incomplete, even if another item has begun.
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

// readUsage reads a usage object. Reasoning is part of the output. Some servers count it
// separately: then the total is the sum of input, output and reasoning.
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
