package providers

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/tract-vcs/tract/internal/llm/framing/framingtest"
	"github.com/tract-vcs/tract/llm"
)

// TestDecodeRefusesDeepNesting: 256 brackets in each other, and no more.
func TestDecodeRefusesDeepNesting(t *testing.T) {
	deep := `{"a":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + "}"
	tt := mustTarget("ollama", "ollama", "")
	for name, body := range map[string]string{"one text": deep, "lines": deep + deep, "array": "[" + deep + "]", "events": sseEvent(deep), "Amazon's": string(framingtest.AWSEvent("x", deep))} {
		var err error
		for _, err = range tt.Decode(strings.NewReader(body), llm.FramingAuto) {
		}
		if !errors.Is(err, llm.ErrProtocol) {
			t.Errorf("%s: %v, want %v", name, err, llm.ErrProtocol)
		}
	}
}

// TestDecodeLimitsBlocks: 65,536 blocks are read, and one more is an error, in a response of
// any dialect; what came before it is kept. The time is in proportion to the length: ollama
// once looked for the time of the response at each call.
func TestDecodeLimitsBlocks(t *testing.T) {
	const limit = 1 << 16
	for dialect, body := range map[string][3]string{
		"messages":     {`{"type":"message","content":[`, `{"type":"tool_use","id":"a","name":"b","input":{}}`, `]}`},
		"converse":     {`{"output":{"message":{"content":[`, `{"text":"x"}`, `]}}}`},
		"responses":    {`{"output":[`, `{"type":"x"}`, `]}`},
		"gemini":       {`{"candidates":[{"finishReason":"STOP","content":{"parts":[`, `{"text":"x"}`, `]}}]}`},
		"interactions": {`{"status":"completed","steps":[`, `{"type":"thought","signature":"x"}`, `]}`},
		"cohere":       {`{"message":{"content":[`, `{"type":"text","text":"x"}`, `]}}`},
		"ollama":       {`{"done":true,"message":{"tool_calls":[`, `{"function":{"name":"x"}}`, `]}}`},
	} {
		whole := body[0] + strings.Repeat(body[1]+",", limit) + body[1] + body[2]
		reply, _, err := readAll(mustTarget(dialect, "", "m"), strings.NewReader(whole))
		if !errors.Is(err, llm.ErrProtocol) || len(reply.Blocks) != limit {
			t.Errorf("%s: %d blocks, %v", dialect, len(reply.Blocks), err)
		}
	}
}

// TestDecodeKeepsNothingBeyondTheBlockLimit decodes responses with twenty times as many blocks as the
// limit: the elements beyond the limit must not be kept.
func TestDecodeKeepsNothingBeyondTheBlockLimit(t *testing.T) {
	const limit = 1 << 16
	for dialect, body := range map[string][3]string{
		"chat":      {`{"choices":[{"message":{"reasoning_details":[`, `{}`, `]}}]}`},
		"responses": {`{"output":[`, `{}`, `]}`},
	} {
		allocated := func(n int) uint64 {
			whole := body[0] + strings.Repeat(body[1]+",", n-1) + body[1] + body[2]
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if _, _, err := readAll(mustTarget(dialect, "", "m"), strings.NewReader(whole)); !errors.Is(err, llm.ErrProtocol) {
				t.Errorf("%s: %v", dialect, err)
			}
			runtime.ReadMemStats(&after)
			return after.TotalAlloc - before.TotalAlloc
		}
		if few, many := allocated(limit+1), allocated(20*limit); many > 2*few {
			t.Errorf("%s: %d MB are allocated for %d blocks, and %d MB at the limit", dialect, many>>20, 20*limit, few>>20)
		}
	}
}
