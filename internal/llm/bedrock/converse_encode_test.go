package bedrock

import (
	"testing"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
)

// TestRedactedBlobsAreJoinedAsBytes: each piece is base64 of its own.
func TestRedactedBlobsAreJoinedAsBytes(t *testing.T) {
	for want, pieces := range map[string][]string{"AQID": {"AQ==", "AgM="}, "AQ": {"AQ"}, "not base64 at all": {"not base64 ", "at all"}} {
		if have := joinBase64(pieces); have != want {
			t.Errorf("%q becomes %q, want %q", pieces, have, want)
		}
	}
}

func TestConverseIDsAndNames(t *testing.T) {
	long := "call_0123456789012345678901234567890123456789012345678901234567890123456789"
	a, b := wire.SafeCallID(long, 64), wire.SafeCallID(long+"x", 64)
	if a == b || len(a) > 64 || wire.SafeCallID(a, 64) != a || wire.SafeCallID("", 64) == "" || wire.SafeCallID("a b", 64) == wire.SafeCallID("a_b", 64) {
		t.Errorf("%q and %q", a, b)
	}
	for name, want := range map[string]string{"": "document", "a__b.txt": "a b txt", "日本": "document", "[x](y) - z": "[x](y) - z"} {
		if have := sanitizeDocumentName(name); have != want {
			t.Errorf("%q becomes %q, want %q", name, have, want)
		}
	}
	for _, c := range []struct {
		m    content.Media
		want string
	}{
		{content.Media{Of: content.KindFile, MediaType: "application/pdf", Data: "x"}, `{"document":{"format":"pdf","name":"document","source":{"bytes":"eA=="}}}`},
		{content.Media{Of: content.KindFile, MediaType: "application/octet-stream", Name: "t.CSV", Data: "x"}, `{"document":{"format":"csv","name":"t CSV","source":{"bytes":"eA=="}}}`},
		{content.Media{Of: content.KindImage, URL: "s3://b/p.jpg"}, `{"image":{"format":"jpeg","source":{"s3Location":{"uri":"s3://b/p.jpg"}}}}`},
		{content.Media{Of: content.KindImage, URL: "https://example.com/p.png"}, `{"text":"https://example.com/p.png"}`},
		{content.Media{Of: content.KindImage}, ``},
	} {
		if have := encodeMedia(c.m); !rawjson.Equal(have, rawjson.Value(c.want)) {
			t.Errorf("%+v becomes %s, want %s", c.m, have, c.want)
		}
	}
}
