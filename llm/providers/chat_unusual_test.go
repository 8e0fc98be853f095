package providers

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/llm"
)

// summarizeChat is the blocks of a response in short: kinds, words and seals.
func summarizeChat(r *llm.Response) string {
	var b strings.Builder
	for _, block := range r.Blocks {
		w := block.Form()
		fmt.Fprintf(&b, "%s %q", block.Kind(), block.String())
		if c, ok := block.(content.ToolCall); ok {
			fmt.Fprintf(&b, " %s %s", c.Name, c.CallID)
		}
		if w.Seal.Data != "" {
			fmt.Fprintf(&b, " %s %s", w.Seal.Type, w.Seal.Data)
		}
		if w.Incomplete {
			b.WriteString(" cut")
		}
		b.WriteString("\n")
	}
	return b.String()
}

// chatChunks is a stream of deltas that ends as it should.
func chatChunks(deltas ...string) string {
	var b strings.Builder
	for _, d := range deltas {
		fmt.Fprintf(&b, "data: {\"id\":\"r\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":null}]}\n\n", d)
	}
	return b.String() + "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
}

// chatMessageBody is a response in one piece.
func chatMessageBody(message string) string {
	return `{"id":"r","model":"m","choices":[{"index":0,"message":` + message + `,"finish_reason":"stop"}]}`
}

// chatCallDelta is a delta with a piece of calls.
func chatCallDelta(s string) string { return `{"tool_calls":[` + s + `]}` }

// chatOdd is what servers send that is in no manual.
var chatUnusual = []struct{ name, provider, body, want string }{
	{
		"ids and names that come again", "alibaba",
		chatChunks(chatCallDelta(`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{\"x"}}`), chatCallDelta(`{"index":0,"id":"","function":{"name":"f","arguments":"\":1"}}`), chatCallDelta(`{"index":0,"id":"a","function":{"name":"","arguments":"}"}}`)),
		`tool-call "{\"x\":1}" f a` + "\n",
	},
	{
		"another id in every piece", "vllm",
		chatChunks(chatCallDelta(`{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}`), chatCallDelta(`{"index":0,"id":"b","function":{"arguments":"}"}}`)),
		`tool-call "{}" f a` + "\n",
	},
	{
		"parallel calls on one index", "chat",
		chatChunks(chatCallDelta(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`), chatCallDelta(`{"index":0,"id":"b","function":{"name":"f","arguments":"{\"n\":2}"}}`)),
		"tool-call \"{}\" f a\n" + `tool-call "{\"n\":2}" f b` + "\n",
	},
	{
		"calls whose pieces alternate", "chat",
		chatChunks(chatCallDelta(`{"index":0,"id":"a","function":{"name":"f","arguments":"{"}},{"index":1,"id":"b","function":{"name":"g","arguments":"["}}`), chatCallDelta(`{"index":0,"function":{"arguments":"}"}},{"index":1,"function":{"arguments":"]"}}`)),
		"tool-call \"{}\" f a\ntool-call \"[]\" g b\n",
	},
	{
		"one index for all and no ids", "chat",
		chatChunks(chatCallDelta(`{"index":0,"id":"","function":{"name":"f","arguments":"{}"}}`), chatCallDelta(`{"index":0,"id":"","function":{"name":"f","arguments":"{\"n\":2}"}}`)),
		`tool-call "{}" f r/0` + "\n" + `tool-call "{\"n\":2}" f r/1` + "\n",
	},
	{
		"an id that comes late", "chat",
		chatChunks(chatCallDelta(`{"index":0,"function":{"name":"f","arguments":"{"}}`), chatCallDelta(`{"index":0,"id":"a","function":{"arguments":"}"}}`)),
		`tool-call "{}" f a` + "\n",
	},
	{
		"no index but ids", "chat",
		chatChunks(chatCallDelta(`{"id":"a","function":{"name":"f","arguments":"{"}}`), chatCallDelta(`{"id":"b","function":{"name":"f","arguments":"{}"}}`), chatCallDelta(`{"id":"a","function":{"arguments":"}"}}`), chatCallDelta(`{"function":{"arguments":" "}}`)),
		`tool-call "{}" f a` + "\n" + `tool-call "{} " f b` + "\n",
	},
	{
		"no index and no id", "ollama",
		chatChunks(chatCallDelta(`{"function":{"name":"f","arguments":{"x":1}}}`), chatCallDelta(`{"function":{"name":"g","arguments":{}}}`)),
		`tool-call "{\"x\":1}" f r/0` + "\n" + `tool-call "{}" g r/1` + "\n",
	},
	{
		"calls that are no calls", "snowflake",
		chatChunks(`{"content":"Hi","function_call":{"name":"","arguments":""},"tool_calls":[{"index":0,"custom":{},"function":{"name":"","arguments":""}}]}`),
		`assistant "Hi"` + "\n",
	},
	{
		"a function call from before there were several", "chat",
		chatChunks(`{"function_call":{"name":"f","arguments":""}}`, `{"function_call":{"arguments":"{}"}}`),
		`tool-call "{}" f r/0` + "\n",
	},
	{
		"a custom tool takes any text", "openai",
		chatChunks(chatCallDelta(`{"index":0,"id":"a","type":"custom","custom":{"name":"sh","input":""}}`), chatCallDelta(`{"index":0,"custom":{"input":"ls {"}}`)),
		`tool-call "ls {" sh a` + "\n",
	},
	{
		"arguments that the output limit cut", "chat",
		chatChunks(chatCallDelta(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}`)),
		`tool-call "{\"x\":" f a cut` + "\n",
	},
	{
		"white space is no answer", "avian",
		chatChunks(`{"reasoning":"Hm."}`, `{"content":" "}`, chatCallDelta(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`), `{"content":" "}`),
		`reasoning "Hm."` + "\ntool-call \"{}\" f a\n",
	},
	{
		"white space before the first word is part of it", "chat",
		chatChunks(`{"content":"\n"}`, `{"content":" Hi"}`, `{"content":" "}`),
		`assistant "\n Hi "` + "\n",
	},
	{
		"a closing tag alone on its line", "chat",
		chatChunks(`{"content":"Hm"}`, `{"content":".\n</think>\n\nYes."}`),
		`reasoning "Hm."` + "\n" + `assistant "Yes."` + "\n",
	},
	{
		"a closing tag alone, where tags come in pairs", "deepseek",
		chatChunks(`{"content":"Hm"}`, `{"content":".\n</think>\n\nYes."}`),
		`assistant "Hm.\n</think>\n\nYes."` + "\n",
	},
	{
		"a closing tag beside thoughts in a field", "chat",
		chatChunks(`{"reasoning_content":"Hm"}`, `{"content":"A.\n</think>\n\nYes."}`),
		`reasoning "Hm"` + "\n" + `assistant "A.\n</think>\n\nYes."` + "\n",
	},
	{
		"a thought that is never closed", "huggingface",
		chatChunks(`{"content":"<think>\nHm"}`, `{"content":" so"}`),
		`reasoning "Hm so"` + "\n",
	},
	{
		"an opening tag and no more", "chat",
		chatChunks(`{"content":"<think>"}`),
		"",
	},
	{
		"white space and no more", "chat",
		chatChunks(`{"content":" "}`),
		`assistant " "` + "\n",
	},
	{
		"white space behind a call", "chat",
		chatChunks(`{"content":"Hi"}`, chatCallDelta(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`), `{"content":"\n"}`),
		`assistant "Hi\n"` + "\ntool-call \"{}\" f a\n",
	},
	{
		"thoughts around a call", "groq",
		chatChunks(`{"reasoning":"A"}`, chatCallDelta(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`), `{"reasoning":"B"}`),
		`reasoning "A"` + "\ntool-call \"{}\" f a\nreasoning \"B\"\n",
	},
	{
		"the answer repeated beside the delta", "perplexity",
		`data: {"choices":[{"index":0,"delta":{"content":"Y"},"message":{"content":"Y"}}]}` + "\r\n\r\n" + `data: {"choices":[{"index":0,"delta":{"content":"es"},"message":{"content":"Yes"}}]}` + "\r\n\r\n" +
			`data: {"choices":[{"index":0,"message":{"content":"Yes"},"finish_reason":"stop"}]}` + "\r\n\r\n",
		`assistant "Yes"` + "\n",
	},
	{
		"a whole message as the only event", "chat",
		"data: " + chatMessageBody(`{"content":"Yes"}`) + "\n\n",
		`assistant "Yes"` + "\n",
	},
	{
		"a second choice is another answer", "chat",
		`data: {"choices":[{"index":1,"delta":{"content":"No"}},{"index":0,"delta":{"content":"Yes"},"finish_reason":"stop"}]}` + "\n\n",
		`assistant "Yes"` + "\n",
	},
	{
		"two sealed entries on one index", "openrouter",
		chatChunks(`{"reasoning_details":[{"type":"reasoning.encrypted","data":"AA==","index":0}]}`, `{"reasoning_details":[{"type":"reasoning.encrypted","data":"BB==","index":0}]}`),
		"reasoning \"\" encrypted AA==\nreasoning \"\" encrypted BB==\n",
	},
	{
		"a seal on the answer", "chat",
		chatChunks(`{"content":"Yes"}`, `{"content":"","extra_content":{"google":{"thought_signature":"c2ln"}}}`),
		`assistant "Yes" signature c2ln` + "\n",
	},
	{
		"a seal on nothing", "chat",
		chatChunks(`{"extra_content":{"google":{"thought_signature":"c2ln"}}}`),
		`reasoning "" signature c2ln` + "\n",
	},
	{
		"pictures and sounds in pieces", "openrouter",
		chatChunks(`{"content":"Look","images":[{"n":1}]}`, `{"images":[{"n":2}],"audio":{"id":"x","data":"AA"}}`, `{"audio":{"data":"BB","expires_at":7}}`),
		`assistant "Look"` + "\n" + `native "[{\"n\":1},{\"n\":2}]"` + "\n" + `native "{\"id\":\"x\",\"data\":\"AABB\",\"expires_at\":7}"` + "\n",
	},
}

func TestChatUnusualStreams(t *testing.T) {
	for _, c := range chatUnusual {
		t.Run(c.name, func(t *testing.T) {
			reply, _, err := readAll(mustTarget("chat", c.provider, "m"), strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			if got := summarizeChat(reply); got != c.want {
				t.Errorf("have\n%swant\n%s", got, c.want)
			}
		})
	}
}
