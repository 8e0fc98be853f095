package providers

import (
	"testing"

	"github.com/tract-vcs/tract/internal/llm/rawjson"
)

// checkChatInvariants checks what holds of every body: how it is cut makes no difference,
// blocks can be stored, and what goes back can be sent and comes again the same.
func checkChatInvariants(t *testing.T, body []byte) {
	t.Helper()
	r := &recording{API: "chat", Provider: "chat", Model: "m"}
	r.checkInvariants(t, body, func(back string) string { return `{"id":"r","choices":[{"message":` + back + `}]}` })
}

func FuzzChatDecode(f *testing.F) {
	for _, r := range recorded(f, "chat") {
		if len(r.body) < 4<<10 {
			f.Add(r.body)
		}
	}
	f.Add([]byte(chatMessageBody(`{"content":[{"type":"text","text":"\ud800"}],"executed_tools":[{}],"extra_content":{"google":{}}}`)))
	f.Fuzz(checkChatInvariants)
}

// chatPieces is what servers send, to be put together in any order.
var chatPieces = []string{
	`{"content":"word"}`, `{"content":" "}`, `{"content":""}`, `{"content":null}`, `{"content":"<think>"}`, `{"content":"\n</think>\n"}`, `{"content":"</th"}`, `{"content":"ink>"}`,
	`{"reasoning_content":"A"}`, `{"reasoning":"B"}`, `{"reasoning_text":"C"}`, `{"reasoning":"D","reasoning_content":"D"}`, `{"reasoning_opaque":"b3Bh"}`,
	`{"reasoning":"E","reasoning_details":[{"type":"reasoning.text","text":"E","index":0}]}`, `{"reasoning_details":[{"type":"reasoning.text","signature":"c2ln","index":0}]}`,
	`{"reasoning_details":[{"type":"reasoning.summary","summary":"F","index":0,"id":"x"}]}`, `{"reasoning_details":[{"type":"reasoning.encrypted","data":"ZW5j","index":0}]}`,
	`{"reasoning_details":[{"text":"G"},7,{"type":"later","x":[1]}]}`,
	`{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}]}`, `{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}`,
	`{"tool_calls":[{"index":1,"id":"b","function":{"name":"g","arguments":"{"}},{"function":{"arguments":"}"}}]}`, `{"tool_calls":[{"id":"c","type":"custom","custom":{"name":"sh","input":"ls"}}]}`,
	`{"tool_calls":[{"index":2,"function":{"name":"h","arguments":{"x":1}},"extra_content":{"google":{"thought_signature":"Z29v"}}}]}`, `{"function_call":{"name":"f","arguments":"{}"}}`,
	`{"executed_tools":[{"index":0,"type":"search","arguments":"{}"}]}`, `{"executed_tools":[{"index":0,"type":"search","output":"o"}]}`,
	`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"H"}]}]}`, `{"content":[{"type":"text","text":"I"},{"type":"reference","n":1}]}`,
	`{"refusal":"No"}`, `{"extra_content":{"google":{"thought_signature":"dGV4dA=="}}}`, `{"annotations":[{"n":1}]}`, `{"images":[1]}`, `{"audio":{"data":"AA"}}`, `{"later":{"x":"\ud800"}}`,
}

// FuzzChatPieces puts pieces together: in is their numbers. The first one tells
// whether they come as a stream or one by one as responses.
func FuzzChatPieces(f *testing.F) {
	f.Add([]byte{0, 4, 0, 5, 0})
	f.Add([]byte{0, 13, 18, 19, 14, 16, 0})
	f.Add([]byte{1, 13, 26, 27, 24, 25, 20})
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) == 0 || len(in) > 40 {
			return
		}
		var deltas []string
		for _, n := range in[1:] {
			deltas = append(deltas, chatPieces[int(n)%len(chatPieces)])
		}
		if in[0]%2 == 0 {
			checkChatInvariants(t, []byte(chatChunks(deltas...)))
			return
		}
		var o rawjson.Object
		for _, d := range deltas {
			o.Merge(rawjson.Value(d))
		}
		checkChatInvariants(t, []byte(chatMessageBody(string(o.Bytes()))))
	})
}
