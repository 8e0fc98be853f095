package content

import (
	"bytes"
	"strings"
	"testing"
)

// TestEveryTextIsRewritten has the same word in every field of every kind that people
// can read, and not one is left; what ties blocks together is, and the seal.
func TestEveryTextIsRewritten(t *testing.T) {
	const word = "xyzzy"
	wire := Form{Dialect: "messages", ID: "id-" + word, Extra: []byte(`{"a":"` + word + `"}`), Seal: Seal{Type: Signature, Data: word, Minted: "messages/m"}}.Wire()
	blocks := []Block{
		Reasoning{Wire: wire, Format: FormatParsed, Text: word, Parts: []string{"a", word}},
		ToolCall{Wire: wire, CallID: word, Name: word, Arguments: word},
		ToolResult{Wire: wire, CallID: word, Name: word, Text: word, Parts: []byte(`["` + word + `"]`)},
		Native{Wire: wire, JSON: `{"b":"` + word + `"}`},
		Media{Wire: wire, Of: KindImage, Name: word, URL: word, Data: word},
		Media{Wire: wire, Of: KindFile, Name: word, URL: word, Data: word},
	}
	for _, k := range Kinds() {
		if k.Traits().Text {
			blocks = append(blocks, Text{Wire: wire, Of: k, Name: word, Text: word})
		}
	}
	seen := map[Kind]bool{}
	for _, b := range blocks {
		seen[b.Kind()] = true
		before := Encode(b)
		now := RewriteText(b, func(s string) string { return strings.ReplaceAll(s, word, "-") })
		ties := 2 // the id and the seal
		if k := b.Kind(); k == KindToolCall || k == KindToolResult {
			ties = 4 // the id of the call, and the name
		}
		if got := bytes.Count(Encode(now), []byte(word)); got != ties {
			t.Errorf("%s: the word is there %d times, want %d: %+v", b.Kind(), got, ties, now)
		}
		if !bytes.Equal(Encode(b), before) {
			t.Errorf("%s: the block itself was changed", b.Kind())
		}
		if form := WithoutSeal(now).Form(); form.ID != "" || !form.Seal.IsZero() || form.Dialect != "messages" || len(form.Extra) == 0 {
			t.Errorf("%s: unsealed it has %+v", b.Kind(), form)
		}
	}
	for _, k := range Kinds() {
		if !seen[k] {
			t.Errorf("kind %s is not rewritten", k)
		}
	}
	picture := Media{Of: KindImage, Data: "\x89PNG " + word}
	if now := RewriteText(picture, strings.ToUpper).(Media); now.Data != picture.Data {
		t.Errorf("bytes that are no text became %q", now.Data)
	}
}
