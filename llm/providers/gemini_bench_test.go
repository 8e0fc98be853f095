package providers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/tract-vcs/tract/internal/llm/framing"
)

// geminiStream is a long stream: reasoning, an answer, and a call in pieces.
func geminiStream() []byte {
	var b bytes.Buffer
	chunk := func(parts string) {
		fmt.Fprintf(&b, `data: {"candidates": [{"content": {"parts": [%s],"role": "model"},"index": 0}],"usageMetadata": {"promptTokenCount": 95,"candidatesTokenCount": 23,"totalTokenCount": 186,"promptTokensDetails": [{"modality": "TEXT","tokenCount": 95}],"thoughtsTokenCount": 68},"modelVersion": "gemini-3-pro","responseId": "ywCzae2oL5ODz7IP29qJmQw"}`+"\r\n\r\n", parts)
	}
	for range 2000 {
		chunk(`{"text": " wörd\n and some more of them","thought": true}`)
	}
	for range 2000 {
		chunk(`{"text": " wörd\n and some more of them"}`)
	}
	chunk(`{"functionCall": {"name": "save","willContinue": true},"thoughtSignature": "U0VBTA=="}`)
	for range 1000 {
		chunk(`{"functionCall": {"partialArgs": [{"jsonPath": "$.file.text","stringValue": "piece ","willContinue": true}],"willContinue": true}}`)
	}
	chunk(`{"functionCall": {}}`)
	b.WriteString(`data: {"candidates": [{"finishReason": "STOP"}]}` + "\n\n")
	return b.Bytes()
}

func TestGeminiReadsALongStream(t *testing.T) {
	r := &recording{API: "gemini", Provider: "google"}
	reply, _, err := r.read(bytes.NewReader(geminiStream()))
	if err != nil {
		t.Fatal(err)
	}
	if len(reply.Blocks) != 3 || len(reply.Text()) != 2000*len(" wörd\n and some more of them") || len(reply.ToolCalls()[0].Arguments) != len(`{"file":{"text":""}}`)+6000 {
		t.Errorf("%d blocks, %d bytes of text", len(reply.Blocks), len(reply.Text()))
	}
}

func BenchmarkGeminiDecode(b *testing.B) {
	body := geminiStream()
	r := &recording{API: "gemini", Provider: "google"}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if reply, _, err := r.read(bytes.NewReader(body)); err != nil || len(reply.Blocks) != 3 {
			b.Fatal(err)
		}
	}
}

// BenchmarkGeminiUnmarshal is what decoding is measured against.
func BenchmarkGeminiUnmarshal(b *testing.B) {
	body := geminiStream()
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		for f := range framing.ServerSentEvents(bytes.NewReader(body)) {
			var v any
			if err := json.Unmarshal(f.Data, &v); err != nil {
				b.Fatal(err)
			}
		}
	}
}
