package cohere

import (
	"testing"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
)

// TestMediaIsAnImageOrText: Cohere takes no other.
func TestMediaIsAnImageOrText(t *testing.T) {
	if v := encodeImageOrTextFile(content.Media{Of: content.KindFile, MediaType: "application/pdf", Data: "x"}); v != nil {
		t.Errorf("%s", v)
	}
	if v := encodeImageOrTextFile(content.Media{Of: content.KindImage, URL: "https://example.com/x"}); !rawjson.Equal(v, rawjson.Value(`{"type":"image_url","image_url":{"url":"https://example.com/x"}}`)) {
		t.Errorf("%s", v)
	}
}
