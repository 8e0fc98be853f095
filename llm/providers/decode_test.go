package providers

import (
	"errors"
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
