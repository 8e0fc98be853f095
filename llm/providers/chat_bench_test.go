package providers

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tract-vcs/tract/internal/llm/rawjson"
)

// chatStream is a long stream: reasoning, an answer, and a call.
func chatStream() []byte {
	var b bytes.Buffer
	chunk := func(delta string) {
		b.WriteString(`data: {"id":"gen-1","object":"chat.completion.chunk","created":1777319856,"model":"vendor/model","provider":"Somebody","choices":[{"index":0,"delta":` + delta + `,"finish_reason":null,"native_finish_reason":null}]}` + "\n\n")
	}
	word := string(rawjson.AppendString(nil, " wörd\n"))
	for range 2000 {
		chunk(`{"content":"","role":"assistant","reasoning":` + word + `,"reasoning_details":[{"type":"reasoning.text","text":` + word + `,"format":"unknown","index":0}]}`)
	}
	for range 2000 {
		chunk(`{"role":"assistant","content":` + word + `}`)
	}
	chunk(`{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"save","arguments":"{\"text\":\""}}]}`)
	for range 1000 {
		chunk(`{"tool_calls":[{"index":0,"function":{"arguments":"piece "}}]}`)
	}
	chunk(`{"tool_calls":[{"index":0,"function":{"arguments":"\"}"}}]}`)
	b.WriteString(`data: {"id":"gen-1","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":9,"completion_tokens":5001,"total_tokens":5010}}` + "\n\ndata: [DONE]\n\n")
	return b.Bytes()
}

func TestChatReadsALongStream(t *testing.T) {
	reply, _, err := readAll(mustTarget("chat", "openrouter", "vendor/model"), bytes.NewReader(chatStream()))
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Repeat(" wörd\n", 2000)
	if len(reply.Blocks) != 3 || reply.Reasoning() != words || reply.Text() != words || len(reply.ToolCalls()[0].Arguments) != len(`{"text":"`)+6000+len(`"}`) {
		t.Errorf("%d blocks, %d bytes of thought, %d of text", len(reply.Blocks), len(reply.Reasoning()), len(reply.Text()))
	}
}

func BenchmarkChatDecode(b *testing.B) {
	body := chatStream()
	t := mustTarget("chat", "openrouter", "vendor/model")
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		reply, _, err := readAll(t, bytes.NewReader(body))
		if err != nil || len(reply.Blocks) != 3 {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(body)), "ns/byte")
}
