package compile

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

var update = flag.Bool("update", false, "write the vectors anew")

// TestVectors holds the bytes of manifests still: one with every field, and one
// with none that may be absent.
func TestVectors(t *testing.T) {
	const file = "../testdata/vectors/manifests.json"
	id := func(s string) objects.ID { return objects.Hash([]byte(s)) }
	type vector struct {
		ID             string
		Parents, Links []objects.ID
		Data           string
	}
	var got []vector
	for _, m := range []*Manifest{
		{
			Prev: id("prev"), Head: id("head"), Tools: id("tools"), Provider: "anthropic", Dialect: "messages", Model: "claude-sonnet-4-5",
			Options:    Options{Policy: priority.Policy{Strip: priority.StripAll, IncludeReasoning: true}, Budget: 8000, DropOpenReasoning: true},
			ToolChoice: "auto", Encoder: 1, Same: 12, Runs: []uint64{0, 1, 2}, Compiled: id("body"), Sent: id("sent"),
			RequestSettings: map[string]string{"stream": "true", "reasoning.enabled": "true", "temperature": "0.5"}, UncommittedReasoning: 1,
		},
		{Head: id("head"), Runs: []uint64{1}},
		{Head: id("head"), Options: Options{KeepToolReasoning: true}, Provider: "moonshotai", Runs: []uint64{2}},
		{Head: id("head"), Tools: id("tools"), Body: id("body"), Runs: []uint64{1}, Sent: id("sent")},
		{Head: id("head"), Body: id("body"), Runs: []uint64{1}, Sent: id("sent")},
		{Head: id("question"), Runs: []uint64{2}, Sources: []objects.ID{id("first"), id("second"), id("first")}},
	} {
		o := m.Object()
		back, err := ParseManifest(o)
		if err != nil {
			t.Fatal(err)
		}
		if again := back.Object(); again.ID != o.ID {
			t.Errorf("manifest %+v is read as %+v", m, back)
		}
		got = append(got, vector{o.ID.String(), o.Parents, o.Links, hex.EncodeToString(o.Data)})
	}
	b, err := json.MarshalIndent(got, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	b = append(b, '\n')
	if *update {
		if err := os.WriteFile(file, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b, want) {
		t.Errorf("objects differ from %s (-update writes them anew):\n%s", file, b)
	}
}

// TestMaxSourcesFitIntoAManifest: the request for a summary is refused before it is
// sent, and not when its manifest is stored.
func TestMaxSourcesFitIntoAManifest(t *testing.T) {
	m := &Manifest{Head: objects.Hash([]byte("head"))}
	for range MaxSources {
		m.Sources = append(m.Sources, m.Head)
	}
	o := m.Object()
	if room := objects.MaxSize - len(o.Data); room < 16<<10 {
		t.Errorf("%d bytes are left for everything else", room)
	}
	if err := o.Check(); err != nil {
		t.Error(err)
	}
}
