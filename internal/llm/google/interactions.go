package google

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net/http"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
	"github.com/tract-vcs/tract/llm"
)

// Interactions is Google's Interactions API (https://ai.google.dev/api/interactions-api).
// A response is a list of steps; a step of type model_output has a list of contents. Requests
// set store to false, so each request has all steps.
var Interactions = &wire.Dialect{
	Name: "interactions",
	Path: func(string, bool) string { return "/interactions" },
	Sign: signInteractions,
	NewReader: func(o *wire.BlockWriter) wire.ResponseReader {
		return &interactionsReader{BlockWriter: o, steps: map[int64]*openStep{}}
	},
	Encode:        encodeInteractions,
	Replay:        encodeAssistantSteps,
	DecodeRequest: decodeInteractionsRequest,
	Outline:       outlineInteractionsInput,
	Rules:         interactionsRules,

	OptionalFields:     [][]string{{"generation_config", "thinking_summaries"}},
	ReasoningOffFields: [][]string{{"generation_config", "thinking_level"}},
}

// interactionsRevision is the API revision that requests ask for, the first with steps.
const interactionsRevision = "2026-05-20"

// signInteractions sets the API key and the API revision.
func signInteractions(h http.Header, t wire.Target, key string) {
	h.Set("Api-Revision", interactionsRevision)
	signGemini(h, t, key)
}

// interactionsReader reads one response.
type interactionsReader struct {
	*wire.BlockWriter
	finished bool
	steps    map[int64]*openStep // open steps of the stream, by their index there
}

// ReadBody reads the body of a response that is not streamed.
func (n *interactionsReader) ReadBody(v rawjson.Value) error {
	if v.Get("status") == nil && v.Get("steps") == nil && v.Get("error") == nil {
		return fmt.Errorf("%w: no interaction in %q", llm.ErrProtocol, rawjson.Excerpt(v))
	}
	return n.readFinishedInteraction(v)
}

// ReadEvent reads one event. Unknown types are skipped.
func (n *interactionsReader) ReadEvent(name string, v rawjson.Value) error {
	name = cmp.Or(v.Get("event_type").Text(), name)
	i, _ := v.Get("index").Int()
	switch name {
	case "step.start":
		n.readStepStart(i, v.Get("step"))
		return nil
	case "step.delta":
		n.readStepDelta(i, v.Get("delta"))
		return nil
	case "step.stop":
		n.endStep(i)
		return nil
	case "error":
		return wire.NewAPIError(n.Provider, v)
	}
	if v.Get("error").Kind() == rawjson.KindObject {
		return wire.NewAPIError(n.Provider, v)
	}
	switch about := v.Get("interaction"); about.Get("status").Text() {
	case "":
		return nil
	case "in_progress":
		n.readHeadAndUsage(about)
		n.EmitHead()
		return nil
	default:
		return cmp.Or(n.readFinishedInteraction(about), io.EOF)
	}
}

// readHeadAndUsage reads the id, the model and the usage of an interaction.
func (n *interactionsReader) readHeadAndUsage(v rawjson.Value) {
	n.SetHead(func(h *llm.Head) {
		h.ID = cmp.Or(v.Get("id").Text(), h.ID)
		h.Model = cmp.Or(v.Get("model").Text(), h.Model)
	})
	n.readUsage(v.Get("usage"))
}

// readFinishedInteraction reads an interaction that has ended: its steps too, unless the stream
// brought blocks. It returns the error of a failed interaction.
func (n *interactionsReader) readFinishedInteraction(v rawjson.Value) error {
	n.readHeadAndUsage(v)
	n.EmitHead()
	n.EndOpen()
	if n.Count == 0 {
		for step := range n.Elements(v.Get("steps")) {
			n.readStep(step)
		}
	}
	if v.Get("error").Kind() == rawjson.KindObject {
		return wire.NewAPIError(n.Provider, v)
	}
	status := v.Get("status").Text()
	n.SetHead(func(h *llm.Head) { h.Finish = status })
	if status == "failed" {
		return &llm.APIError{Provider: n.Provider, Type: status, Message: "the interaction failed", Raw: bytes.Clone(v)}
	}
	n.finished = true
	return nil
}

// Finish reports whether the interaction ended.
func (n *interactionsReader) Finish(bool) bool { return n.finished }

// readUsage reads a usage object. Its total_output_tokens excludes reasoning, and its
// total_input_tokens excludes what the provider's tools added to the prompt.
func (n *interactionsReader) readUsage(v rawjson.Value) {
	if v.Kind() != rawjson.KindObject || len(v) > content.MaxRawUsage {
		return
	}
	count := wire.TokenCounts(v)
	n.SetUsage(content.Usage{
		Input:  count("total_input_tokens") + count("total_tool_use_tokens"),
		Output: count("total_output_tokens") + count("total_thought_tokens"),
		Raw:    bytes.Clone(v), Reasoning: count("total_thought_tokens"), Cached: count("total_cached_tokens"),
	})
}
