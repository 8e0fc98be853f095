package content

import (
	"bytes"
	"testing"
)

// TestRemainsHaveNoContent purges a block of every kind with text in every field.
func TestRemainsHaveNoContent(t *testing.T) {
	const words = "SECRET"
	form := Form{Role: RoleAssistant, Dialect: words, ID: words, Type: words, Extra: []byte(`{"a":"SECRET"}`), Seal: Seal{Signature, words, words}, Incomplete: true}.Wire()
	blocks := []Block{
		ToolCall{Wire: form, CallID: "c1", Name: "read", Arguments: words},
		ToolResult{Wire: form, CallID: "c1", Name: "read", Text: words},
		ToolResult{Wire: form, CallID: "c1", Parts: []byte(`["SECRET"]`), IsError: true},
		Reasoning{Wire: form, Format: FormatThinkTags, Source: "content", Text: words, Open: words, Close: words},
		Reasoning{Wire: form, Format: FormatResponses, Source: "summary", Parts: []string{words}},
		Media{Wire: form, Of: KindImage, MediaType: "image/png", Name: words, Data: words},
		Media{Wire: form, Of: KindFile, URL: words},
		Native{Wire: form, JSON: `{"a":"SECRET"}`},
	}
	for _, k := range Kinds() {
		if k.Traits().Text {
			b := Text{Wire: form, Of: k, Name: words, Text: words}
			if k == KindSystem {
				b.Name = "style" // it is kept: what it replaces is found by it
			}
			blocks = append(blocks, b)
		}
	}
	seen := map[Kind]bool{}
	for _, b := range blocks {
		seen[b.Kind()] = true
		left := Remains(b)
		if left.Kind() != b.Kind() || RoleOf(left) != RoleOf(b) && b.Kind() != KindNative {
			t.Errorf("of a %s is left a %s of %s", b.Kind(), left.Kind(), RoleOf(left))
		}
		if record := Encode(left); bytes.Contains(record, []byte(words)) {
			t.Errorf("what is left of a %s says %q", b.Kind(), record)
		}
		if call, ok := left.(ToolResult); ok && call.CallID != "c1" {
			t.Errorf("a result does not know its call any more: %+v", call)
		}
	}
	for _, k := range Kinds() {
		if !seen[k] {
			t.Errorf("kind %s is not purged", k)
		}
		if b := EmptyBlock(k); b == nil || b.Kind() != k {
			t.Errorf("a bare %s is %v", k, b)
		}
	}
	if EmptyBlock(unusedKind()) != nil {
		t.Error("there is a block of an unknown kind")
	}
}
