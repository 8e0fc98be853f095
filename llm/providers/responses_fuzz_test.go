package providers

import (
	"strings"
	"testing"
)

// checkResponsesInvariants checks what holds of every body: how it is cut makes no
// difference, blocks can be stored, and what goes back comes again the same.
func checkResponsesInvariants(t *testing.T, body []byte) {
	t.Helper()
	r := &recording{API: "responses", Provider: "responses", Model: "m"}
	r.checkInvariants(t, body, func(back string) string { return `{"output":` + back + `}` })
}

func FuzzResponsesDecode(f *testing.F) {
	for _, r := range recorded(f, "responses") {
		if len(r.body) < 4<<10 {
			f.Add(r.body)
		}
	}
	f.Add([]byte(`{"output":[{"type":"message","content":[{"type":"output_text","text":"\ud800"}]},7,null,{"type":"x_call","arguments":[]},{"type":"x_output","output":1}]}`))
	f.Fuzz(checkResponsesInvariants)
}

// responsesPieces is events that servers send, to be put together in any order.
var responsesPieces = []string{
	`{"type":"response.output_item.added","output_index":0,"item":{"id":"r","type":"reasoning","summary":[]}}`,
	`{"type":"response.output_item.added","output_index":1,"item":{"id":"m","type":"message","content":[]}}`,
	`{"type":"response.output_item.added","output_index":0,"item":{"id":"m","type":"message","content":[{"type":"output_text","text":"a"}]}}`,
	`{"type":"response.output_item.added","item":{"type":"function_call","call_id":"c","name":"f","arguments":""}}`,
	`{"type":"response.output_item.added","output_index":2,"item":{"id":"w","type":"web_search_call"}}`,
	`{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"A"}`,
	`{"type":"response.reasoning_summary_text.done","output_index":0,"summary_index":1,"text":"B"}`,
	`{"type":"response.reasoning_text.delta","output_index":0,"content_index":0,"delta":"C"}`,
	`{"type":"response.output_text.delta","output_index":1,"content_index":0,"delta":"D"}`,
	`{"type":"response.output_text.delta","content_index":1,"delta":"E"}`,
	`{"type":"response.refusal.delta","output_index":1,"content_index":1,"delta":"F"}`,
	`{"type":"response.output_text.done","output_index":0,"content_index":0,"text":"G"}`,
	`{"type":"response.function_call_arguments.delta","output_index":2,"delta":"{"}`,
	`{"type":"response.function_call_arguments.done","output_index":3,"arguments":"{}"}`,
	`{"type":"response.output_item.done","output_index":0,"item":{"id":"r","type":"reasoning","summary":[{"type":"summary_text","text":"A"}],"encrypted_content":"S"}}`,
	`{"type":"response.output_item.done","output_index":0,"item":{"id":"r2","type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"C"},{"type":"reasoning_text","text":"c"}]}}`,
	`{"type":"response.output_item.done","output_index":1,"item":{"id":"m","type":"message","content":[{"type":"output_text","text":"D"},{"type":"refusal","refusal":"F"}],"phase":"x"}}`,
	`{"type":"response.output_item.done","output_index":1,"item":{"id":"m","type":"message","content":"D"}}`,
	`{"type":"response.output_item.done","output_index":2,"item":{"type":"function_call","call_id":"c","name":"f","arguments":"{\"x\":"}}`,
	`{"type":"response.output_item.done","item":{"id":"w","type":"web_search_call","action":{"type":"search"}}}`,
	`{"type":"response.output_item.done","output_index":4,"item":{"id":"t","type":"tool_search_output","call_id":null,"tools":[]}}`,
	`{"type":"response.output_item.done","output_index":5,"item":{"id":"k","type":"compaction","encrypted_content":"S"}}`,
	`{"type":"response.output_item.done","output_index":0,"item":7}`,
	`{"type":"response.created","response":{"id":"x","model":"y"}}`,
	`{"type":"response.completed","response":{"id":"x","output":[{"id":"m","type":"message","content":[{"type":"output_text","text":"D"}]},{"id":"r","type":"reasoning","summary":[],"encrypted_content":"S"}]}}`,
	`{"type":"response.incomplete","response":{"output":[{"type":"function_call","call_id":"c","arguments":"{"}]}}`,
	`{"type":"response.failed","response":{"error":{"message":"no"}}}`,
	`{"type":"error","message":"no"}`,
}

// FuzzResponsesPieces puts pieces together: in is their numbers.
func FuzzResponsesPieces(f *testing.F) {
	f.Add([]byte{23, 0, 5, 5, 6, 14, 1, 8, 10, 16, 24})
	f.Add([]byte{2, 9, 3, 12, 18, 4, 19, 25})
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) > 40 {
			return
		}
		var body strings.Builder
		for _, n := range in {
			body.WriteString(sseEvent(responsesPieces[int(n)%len(responsesPieces)]))
		}
		checkResponsesInvariants(t, []byte(body.String()))
	})
}
