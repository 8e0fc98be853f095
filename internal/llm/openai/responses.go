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

// The responses dialect (https://platform.openai.com/docs/api-reference/responses).
// A response is a list of items, and goes back as those items: what one has beyond
// the fields known here is in the Extra of its block. Requests keep nothing at the
// provider and ask for sealed thoughts, so that the whole conversation goes along;
// who wants the provider to remember sets store in request.extra, true or null. A
// previous_response_id there goes through as it is: the branch then has to hold
// only what is new.
var Responses = &wire.Dialect{
	Name:                     "responses",
	Path:                     func(string, bool) string { return "/responses" },
	Sign:                     sign,
	NewReader:                func(o *wire.BlockWriter) wire.ResponseReader { return &responsesReader{BlockWriter: o} },
	Encode:                   encodeResponses,
	Replay:                   replayResponses,
	NeedsReasoningInToolLoop: func(wire.Target) bool { return true },
	DecodeRequest:            decodeResponsesRequest,
	NewMessageReader:         newResponsesItemReader,
	Outline:                  outlineResponses,
	Rules:                    responsesRules,

	OptionalFields:     [][]string{{"reasoning", "summary"}, {"include"}},
	ReasoningOffFields: [][]string{{"reasoning", "effort"}},
}

// responses reads one response.
type responsesReader struct {
	*wire.BlockWriter
	items          map[int64]*responsesItem  // by their index: ids may change in every event
	ids            map[string]*responsesItem // by the ids that were seen
	order          []*responsesItem          // as they began
	lastServerCall map[string]string         // the last call of each type
	ended          bool
}

// whole reads a response in one piece.
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

// underWay tells whether a response of this status has not ended.
func isRunning(status string) bool { return status == "queued" || status == "in_progress" }

// responsesEnds is the events that end a stream, and the status that they stand
// for.
var finalEvents = map[string]string{
	"response.completed": "completed", "response.incomplete": "incomplete",
	"response.failed": "failed", "response.cancelled": "cancelled",
}

// event reads one event. Types that are not known are passed over: what they
// bring comes again when the item is whole.
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
		return r.readItemAdded(v)
	case "response.output_item.done":
		return r.readItemDone(v)
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
		return r.readDelta(stem, v, done)
	}
	if wire.HasError(v) {
		return r.readFailure(v)
	}
	return nil
}

// begun reads what a response says about itself while it is under way.
func (r *responsesReader) readHead(v rawjson.Value) {
	r.SetHead(func(h *llm.Head) {
		h.ID = cmp.Or(v.Get("id").Text(), h.ID)
		h.Model = cmp.Or(v.Get("model").Text(), h.Model)
	})
}

// conclude reads the end of a response, which has all items once more.
func (r *responsesReader) readEnd(v rawjson.Value, status string) error {
	r.readHead(v)
	if err := r.readRepeatedItems(v.Get("output")); err != nil {
		return err
	}
	r.SetHead(func(h *llm.Head) { h.Finish = status })
	r.readUsage(v.Get("usage"))
	if status == "failed" || wire.HasError(v) {
		return r.newError(v)
	}
	for _, it := range r.order {
		if err := r.endItem(it, it.first); err != nil {
			return err
		}
	}
	return nil
}

// failed is the error of a stream that says no. The event of the status follows
// it or not, so it is not waited for.
func (r *responsesReader) readFailure(v rawjson.Value) error {
	r.SetHead(func(h *llm.Head) { h.Finish = "failed" })
	return r.newError(v)
}

// refused is the error of a provider that says no: under error, or as the event
// itself.
func (r *responsesReader) newError(v rawjson.Value) error {
	if wire.HasError(v) || v.Kind() == rawjson.KindArray {
		return wire.NewAPIError(r.Provider, v)
	}
	return wire.NewAPIError(r.Provider, rawjson.Without(v, "type", "sequence_number", "status", "output"))
}

// end marks what is open when a stream breaks: another item may have begun, and it
// is not whole all the same.
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

// cost reads the usage. Thoughts are part of the output; a server that counts
// them beside it shows that in its sum.
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
