package openai

import (
	"fmt"
	"testing"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
)

// TestChatUsage: what is counted inside and what beside.
func TestChatUsage(t *testing.T) {
	for _, c := range []struct {
		report string
		want   content.Usage
	}{
		{`{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"completion_tokens_details":{"reasoning_tokens":4}}`, content.Usage{Input: 10, Output: 5, Reasoning: 4}},
		{`{"prompt_tokens":10,"completion_tokens":5,"total_tokens":19,"completion_tokens_details":{"reasoning_tokens":4}}`, content.Usage{Input: 10, Output: 9, Reasoning: 4}},
		{`{"prompt_tokens":10,"completion_tokens":5,"reasoning_tokens":4,"total_tokens":19,"cached_tokens":2}`, content.Usage{Input: 10, Output: 9, Reasoning: 4, Cached: 2}},
		{`{"prompt_tokens":10,"completion_tokens":5,"prompt_cache_hit_tokens":3,"prompt_tokens_details":{"cache_write_tokens":1}}`, content.Usage{Input: 10, Output: 5, Cached: 3, CacheWrite: 1}},
	} {
		have := decodeChatUsage(rawjson.Value(c.report))
		if raw := string(have.Raw); raw != c.report {
			t.Errorf("raw %s", raw)
		}
		if have.Raw = nil; fmt.Sprint(have) != fmt.Sprint(c.want) {
			t.Errorf("%s: %+v, want %+v", c.report, have, c.want)
		}
	}
}
