package providers

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tract-vcs/tract/llm"
)

// step is an event about a step of an interaction.
func step(i int, kind, rest string) string {
	if rest != "" {
		rest = "," + rest
	}
	return sseEvent(fmt.Sprintf(`{"index":%d,"event_type":"step.%s"%s}`, i, kind, rest))
}

const anImage = `{"type":"image","uri":"https://example.com/i"}`

var interactionDone = sseEvent(`{"event_type":"interaction.completed","interaction":{"status":"completed"}}`)

// oddInteractions is what no recording has.
var unusualInteractions = map[string]struct {
	body, want string // the blocks in words
	replay     string // what goes back; empty: that is not looked at
	err        error
}{
	"nothing at all":   {"", "", "", llm.ErrTruncated},
	"no interaction":   {`{"hello":1}`, "", "", llm.ErrProtocol},
	"it goes on later": {`{"id":"v","status":"in_progress"}`, "", "", nil},
	"it failed":        {`{"id":"v","status":"failed","error":{"code":"x","message":"no"}}`, "", "", &llm.APIError{}},
	"an error event":   {sseEvent(`{"event_type":"strange","error":{"message":"no"}}`), "", "", &llm.APIError{}},
	"unknown events":   {sseEvent(`{"event_type":"ping"}`) + step(7, "delta", `"delta":{"type":"text","text":"lost"}`) + step(7, "stop", "") + interactionDone, "", "", nil},
	"steps at the end": {sseEvent(`{"event_type":"interaction.completed","interaction":{"status":"completed","steps":[{"type":"model_output","content":[{"type":"text","text":"a"}]}]}}`), "assistant a ", "", nil},
	"no stop":          {step(0, "start", `"step":{"type":"model_output"}`) + step(0, "delta", `"delta":{"type":"text","text":"a"}`) + interactionDone, "assistant a ", "", nil},
	"a thought is whole when a text begins": {
		step(0, "start", `"step":{"type":"thought"}`) + step(0, "delta", `"delta":{"type":"thought_signature","signature":"S"}`) + step(1, "start", `"step":{"type":"model_output"}`) +
			step(1, "delta", `"delta":{"type":"text","text":"a"}`),
		"reasoning  S|assistant a ", "", llm.ErrTruncated,
	},
	"a call that breaks off": {step(0, "start", `"step":{"type":"function_call","id":"c","name":"f"}`) + step(0, "delta", `"delta":{"arguments":"{\"a\""}`), "", "", llm.ErrTruncated},
	"arguments that are cut": {
		step(0, "start", `"step":{"type":"function_call","id":"c","name":"f"}`) + step(0, "delta", `"delta":{"arguments":"{\"a\""}`) + step(0, "stop", "") + interactionDone,
		`tool-call {"a" `, `[{"type":"function_call","name":"f","id":"c","arguments":{"arguments":"{\"a\""}}]`, nil,
	},
	"a seal that comes twice": {
		step(0, "start", `"step":{"type":"thought","signature":"S"}`) + step(0, "delta", `"delta":{"type":"thought_signature","signature":"S"}`) + step(0, "stop", "") + interactionDone,
		"reasoning  S", `[{"type":"thought","signature":"S"}]`, nil,
	},
	"a picture in a summary": {
		step(0, "start", `"step":{"type":"thought"}`) + step(0, "delta", `"delta":{"type":"thought_summary","content":{"type":"text","text":"a"}}`) +
			step(0, "delta", `"delta":{"type":"thought_summary","content":`+anImage+`,"score":1}`) + step(0, "stop", "") + interactionDone,
		"reasoning a ", `[{"type":"thought","score":1,"summary":[{"type":"text","text":"a"},` + anImage + `]}]`, nil,
	},
	"the same in one piece": {
		`{"status":"completed","steps":[{"type":"thought","signature":"S","summary":[{"type":"text","text":"a"},` + anImage + `,{"type":"text","text":"b"}]}]}`,
		"reasoning a\n\nb S", `[{"type":"thought","signature":"S","summary":[{"type":"text","text":"a"},` + anImage + `,{"type":"text","text":"b"}]}]`, nil,
	},
	"words after a picture": {
		step(0, "start", `"step":{"type":"model_output","content":[{"type":"text","text":"a"}]}`) + step(0, "delta", `"delta":`+anImage) + step(0, "delta", `"delta":{"type":"text","text":""}`) +
			step(0, "delta", `"delta":{"type":"text","text":"b","annotations":[1]}`) + step(0, "delta", `"delta":{"type":"text_annotation","annotations":[2]}`) + step(0, "stop", "") + interactionDone,
		"assistant a |image https://example.com/i |assistant b ",
		`[{"type":"model_output","content":[{"type":"text","text":"a"},` + anImage + `,{"type":"text","text":"b","annotations":[1,2]}]}]`, nil,
	},
	"steps without contents": {
		`{"status":"completed","steps":[{"type":"model_output","content":[],"x":1},{"type":"content"},{"type":"user_input","content":[{"type":"text","text":"a"}],"signature":"S"}]}`,
		`native {"type":"model_output","content":[],"x":1} |native {"type":"content"} |native {"type":"user_input","content":[{"type":"text","text":"a"}]} S`,
		`[{"type":"model_output","content":[],"x":1},{"type":"content"},{"type":"user_input","content":[{"type":"text","text":"a"}],"signature":"S"}]`, nil,
	},
	"a step begins where another was": {
		step(0, "start", `"step":{"type":"function_call","id":"c","name":"f","arguments":{"a":1}}`) + step(0, "start", `"step":{"type":"google_maps_result","call_id":"m","result":"there"}`) + interactionDone,
		`tool-call {"a":1} |tool-result there `, "", nil,
	},
}

// TestInteractionsUnusualResponses: nothing breaks, and nothing is lost.
func TestInteractionsUnusualResponses(t *testing.T) {
	for name, c := range unusualInteractions {
		r := &recording{API: "gemini-interactions", Provider: "google"}
		reply, _, err := r.read(strings.NewReader(c.body))
		var have []string
		for _, b := range reply.Blocks {
			have = append(have, b.Kind().String()+" "+b.String()+" "+b.Form().Seal.Data)
		}
		if strings.Join(have, "|") != c.want {
			t.Errorf("%s: blocks %q, want %q", name, have, c.want)
		}
		if _, api := c.err.(*llm.APIError); api {
			if e := wantAPIError(t, err); e.Message != "no" {
				t.Errorf("%s: %+v", name, e)
			}
		} else if !errors.Is(err, c.err) {
			t.Errorf("%s: error %v, want %v", name, err, c.err)
		}
		if c.replay != "" {
			t.Run(name, func(t *testing.T) { wantJSON(t, replayOf(r.target(), restored(t, reply.Blocks)), c.replay) })
		}
	}
}

// TestInteractionsCheck: what the API would refuse is named with its place.
func TestInteractionsCheck(t *testing.T) {
	const call = `{"type":"function_call","id":"a","name":"f","arguments":{}}`
	const result = `{"type":"function_result","call_id":"a","result":"1"}`
	const words = `{"type":"user_input","content":[{"type":"text","text":"hi"}]}`
	c, err := Open("interactions", Config{Model: "gemini-3-pro"})
	if err != nil {
		t.Fatal(err)
	}
	for input, want := range map[string]string{
		words + `,{"type":"thought","signature":"S"},` + call + `,` + result: "",
		words + `,{"type":"thought"},` + call + `,` + result:                 "thought-signature-missing at input[1]",
		words + `,` + call:   "tool-result-missing at input[1]",
		words + `,` + result: "tool-call-missing at input[1]",
		`{"type":"user_input","content":[{"type":"text","text":" "}]}`: "empty-content at input[0]",
		"": "no-input at input",
	} {
		var have []string
		for _, p := range c.Check(&llm.Request{Body: []byte(`{"input":[` + input + `]}`)}) {
			have = append(have, p.Rule+" at "+p.Path)
		}
		if strings.Join(have, "|") != want {
			t.Errorf("%s: %v, want %q", input, have, want)
		}
	}
}
