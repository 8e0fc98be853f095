package content

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/tract-vcs/tract/internal/canonical"
	"github.com/tract-vcs/tract/priority"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write the vectors anew")

// samples has a block of every kind and every field of every type.
func samples() map[string]Block {
	wire := Form{
		Role: RoleUser, Dialect: "messages", ID: "item_1", Type: "server_tool_use", Extra: []byte(`{"cache_control":null}`),
		Seal: Seal{Type: Signature, Data: "EuYBCkQ=", Minted: "messages/claude-sonnet-4-5"}, Incomplete: true,
	}.Wire()
	return map[string]Block{
		"system":          System("You are helpful."),
		"named system":    Text{Of: KindSystem, Name: "rules", Text: "Be brief."},
		"user":            User("Why is the sky blue?"),
		"bytes":           User("\xff\x00\xed\xa0\x80 \u202e"),
		"empty":           User(""),
		"assistant":       Assistant("Rayleigh scattering."),
		"artifact":        Text{Of: KindArtifact, Name: "plan.md", Text: "# Plan"},
		"note":            Note("good answer"),
		"summary":         Text{Of: KindSummary, Text: "They greeted."},
		"reasoning":       Reasoning{Format: FormatAnthropic, Source: "thinking", Text: "Short waves scatter.", Wire: wire},
		"parts":           Reasoning{Format: FormatResponses, Source: "summary", Parts: []string{"one", "", "three"}},
		"think tags":      Reasoning{Format: FormatThinkTags, Source: "content:<think>", Text: "hm", Open: "<think>\n", Close: "\n</think>\n\n"},
		"redacted":        Reasoning{Format: FormatAnthropic, Source: "redacted_thinking", Wire: Form{Seal: Seal{Type: Redacted, Data: "EmwK"}}.Wire()},
		"tool call":       ToolCall{CallID: "toolu_1", Name: "weather", Arguments: `{"city":"Oslo"}`, Server: true, Wire: wire},
		"tool result":     ToolResult{CallID: "toolu_1", Name: "weather", Text: "4 degrees", IsError: true, Server: true, Wire: wire},
		"result in parts": ToolResult{CallID: "toolu_1", Parts: []byte(`[{"type":"text","text":"4"}]`)},
		"image":           Media{Of: KindImage, MediaType: "image/png", Name: "a.png", Data: "\x89PNG"},
		"file":            Media{Of: KindFile, MediaType: "application/pdf", URL: "https://example.com/a.pdf", Wire: wire},
		"native":          Native{JSON: `{"type":"fallback"}`, Wire: Form{Type: "fallback", Dialect: "messages"}.Wire()},
	}
}

// unusedKind returns the first number that no kind has.
func unusedKind() Kind {
	k := Kind(1)
	for k.IsKnown() {
		k++
	}
	return k
}

func TestEveryKindHasASample(t *testing.T) {
	seen := map[Kind]bool{}
	for _, b := range samples() {
		seen[b.Kind()] = true
	}
	for _, k := range Kinds() {
		if !seen[k] {
			t.Errorf("no sample of kind %s: add one, so that its record is tested", k)
		}
		if got, err := ParseKind(k.String()); got != k || err != nil {
			t.Errorf("ParseKind(%q) = %v, %v", k, got, err)
		}
	}
}

// TestTheDocumentsHaveEveryKind: each has its row in the book of the format, and its name
// in the page on JSON.
func TestTheDocumentsHaveEveryKind(t *testing.T) {
	var pages [2]string
	for i, name := range []string{"format.md", "json.md"} {
		b, err := os.ReadFile("../docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		pages[i] = string(b)
	}
	for _, k := range Kinds() {
		about := k.Traits()
		if row := fmt.Sprintf("\n| %d | %s | %s | %s | 16 ", k, k, about.Role, about.Level); !strings.Contains(pages[0], row) {
			t.Errorf("docs/format.md has no row %q", row)
		}
		if name := fmt.Sprintf("`%s`", k); !strings.Contains(pages[1], name) {
			t.Errorf("docs/json.md does not name the kind %s", name)
		}
	}
}

func TestRecordGivesBackTheBlock(t *testing.T) {
	for name, b := range samples() {
		got, err := Decode(Encode(b))
		if err != nil || !reflect.DeepEqual(got, b) {
			t.Errorf("%s: decoded %#v, %v\nwant %#v", name, got, err, b)
		}
	}
}

// TestCheckBlockRefusesWhatDecodeRefuses: no block that is accepted is written as what
// cannot be read, or as another one.
func TestCheckBlockRefusesWhatDecodeRefuses(t *testing.T) {
	for name, b := range samples() {
		if err := CheckBlock(b); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, b := range map[string]Block{
		"text of a tool call":   Text{Of: KindToolCall, Name: "a", Text: "{}"},
		"text of an image":      Text{Of: KindImage, Text: "x"},
		"media of a text":       Media{Of: KindUser, Name: "x"},
		"unknown kind":          Text{Of: unusedKind(), Text: "x"},
		"kind beyond the table": Text{Of: 200, Text: "x"},
		"no kind":               Text{Text: "x"},
		"a pointer":             &Text{Of: KindUser, Text: "x"},
		"nothing":               nil,
		"a nil pointer":         (*Text)(nil),
		"unknown role":          Text{Of: KindUser, Text: "x", Wire: Form{Role: roleEnd}.Wire()},
		"unknown seal":          Reasoning{Text: "x", Wire: Form{Seal: Seal{Type: sealEnd, Data: "x"}}.Wire()},
	} {
		if CheckBlock(b) == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestRecordOfAnyBytes(t *testing.T) {
	text := rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })
	rapid.Check(t, func(t *rapid.T) {
		in := Reasoning{
			Text: text.Draw(t, "text"), Source: text.Draw(t, "source"), Open: text.Draw(t, "open"),
			Wire: Form{ID: text.Draw(t, "id"), Seal: Seal{Data: text.Draw(t, "seal")}}.Wire(),
		}
		out, err := Decode(Encode(in))
		if err != nil || !reflect.DeepEqual(out, in) {
			t.Fatalf("decoded %#v, %v", out, err)
		}
	})
}

func TestDecodeRefuses(t *testing.T) {
	unknown := []byte{0x08, byte(unusedKind())}
	noKind := []byte{0x82, 0x01, 0x01, 'x'}
	badRole := []byte{0x08, 0x02, 0x10, 0x07}
	foreign := append(Encode(User("x")), 0x92, 0x01, 0x01, 'x')
	long := []byte{0x08, byte(KindUser), 0x8a, 0x01, 0x81, 0x00, 'x'}
	more := []byte{0x08, byte(KindUser), 0x8a, 0x01, 0x01, 'x', 'y'}
	for name, record := range map[string][]byte{
		"unknown kind": unknown, "no kind": noKind, "empty": nil, "bad role": badRole, "field of another kind": foreign,
		"a length in two bytes": long, "a byte more": more,
	} {
		for how, decode := range map[string]func([]byte) (Block, error){
			"decode": Decode, "decode keeping": DecodeNoCopy, "check": func(b []byte) (Block, error) { return nil, Check(b) },
		} {
			if b, err := decode(record); !errors.Is(err, canonical.ErrMalformed) {
				t.Errorf("%s, %s: %v, %v", how, name, b, err)
			}
		}
	}
}

func TestEditKeepsKindAndRoleAndLosesTheSeal(t *testing.T) {
	for name, b := range samples() {
		edited, err := WithText(b, "new words")
		if _, media := b.(Media); media {
			if err == nil {
				t.Errorf("%s: was edited", name)
			}
			continue
		}
		if err != nil || edited.String() != "new words" || edited.Kind() != b.Kind() || RoleOf(edited) != RoleOf(b) {
			t.Errorf("%s: edited to %#v, %v", name, edited, err)
		}
		if _, native := b.(Native); !native && !edited.Form().Seal.IsZero() {
			t.Errorf("%s: kept its seal", name)
		}
	}
}

func TestDefaultsOfTheModel(t *testing.T) {
	for name, want := range map[string]struct {
		role  Role
		level priority.Level
	}{
		"system": {RoleSystem, priority.Pinned}, "user": {RoleUser, priority.Normal}, "assistant": {RoleAssistant, priority.Normal},
		"reasoning": {RoleAssistant, priority.Skip}, "tool-call": {RoleAssistant, priority.Normal}, "tool-result": {RoleTool, priority.Normal},
		"image": {RoleUser, priority.Normal}, "file": {RoleUser, priority.Normal}, "artifact": {RoleAssistant, priority.Normal},
		"note": {NoRole, priority.Skip}, "summary": {RoleSystem, priority.Normal}, "native": {RoleAssistant, priority.Normal},
	} {
		k, err := ParseKind(name)
		if tr := k.Traits(); err != nil || tr.Role != want.role || tr.Level != want.level {
			t.Errorf("%s: role %v, level %v, %v; want %v", name, tr.Role, tr.Level, err, want)
		}
	}
	if got := RoleOf(Media{Of: KindImage, Wire: Form{Role: RoleAssistant}.Wire()}); got != RoleAssistant {
		t.Errorf("a block that tells its role has %v", got)
	}
}

// TestVectors holds the bytes on disk still. testdata/vectors is part of the
// format's book: another implementation could run it.
func TestVectors(t *testing.T) {
	const file = "../testdata/vectors/content.json"
	got := map[string]string{}
	for name, b := range samples() {
		got[name] = hex.EncodeToString(Encode(b))
	}
	if *update {
		b, err := json.MarshalIndent(got, "", "  ")
		if err == nil {
			err = os.WriteFile(file, append(b, '\n'), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	if err := json.Unmarshal(b, &want); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("records differ from %s (-update writes them anew):\ngot  %v\nwant %v", file, got, want)
	}
}

func FuzzDecode(f *testing.F) {
	for _, b := range samples() {
		f.Add(Encode(b))
	}
	f.Fuzz(func(t *testing.T, record []byte) {
		b, err := Decode(record)
		if err == nil && !bytes.Equal(Encode(b), record) {
			t.Errorf("%x was accepted and is written %x", record, Encode(b))
		}
	})
}

// TestSharingReadsWhatDecodeReads holds the short way of reading plain words to the
// long one, on records that are sound and on such as are not quite.
func TestSharingReadsWhatDecodeReads(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		block := rapid.SampledFrom([]Block{
			User("Why is the sky blue?"), Assistant(""), User(strings.Repeat("long ", 60)), Assistant(strings.Repeat("x", 127)), Note("n"),
			Text{Of: KindUser, Name: "named", Text: "words"},
			Text{Wire: Form{Role: RoleSystem}.Wire(), Of: KindUser, Text: "words"},
			Reasoning{Text: "hm", Format: FormatParsed},
			ToolCall{CallID: "1", Name: "f"},
		}).Draw(t, "block")
		record := Encode(block)
		for range rapid.IntRange(0, 2).Draw(t, "changes") {
			record[rapid.IntRange(0, min(len(record)-1, 8)).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
		}
		record = record[:len(record)-rapid.SampledFrom([]int{0, 0, 1}).Draw(t, "cut")]
		want, wantErr := Decode(record)
		got, err := DecodeNoCopy(record)
		if !reflect.DeepEqual(got, want) || fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Fatalf("%x is %#v, %v; want %#v, %v", record, got, err, want, wantErr)
		}
	})
}

// TestIsEmpty: a text or a thought is empty when neither a person nor its provider would
// miss it. Other blocks never are.
func TestIsEmpty(t *testing.T) {
	known := Form{ID: "rs_1"}.Wire()
	sealed := Form{Seal: Seal{Type: Signature, Data: "c2ln"}}.Wire()
	for _, b := range []Block{User(""), Reasoning{}, Reasoning{Parts: []string{""}}, Text{Of: KindAssistant, Wire: known}} {
		if !IsEmpty(b) {
			t.Errorf("%#v holds something", b)
		}
	}
	for _, b := range []Block{
		User(" "), Assistant("x"),
		Text{Of: KindAssistant, Wire: sealed},
		Reasoning{Text: "x"},
		Reasoning{Wire: known},
		Reasoning{Wire: sealed},
		ToolCall{},
		ToolResult{},
	} {
		if IsEmpty(b) {
			t.Errorf("%#v is empty", b)
		}
	}
	extra := Form{Extra: []byte(`{"phase":"final"}`)}.Wire()
	for _, b := range []Block{User("x"), Text{Of: KindAssistant, Text: " ", Wire: sealed}, Text{Of: KindAssistant, Text: " ", Wire: extra}, ToolCall{}} {
		if IsBlank(b) {
			t.Errorf("%#v is blank", b)
		}
	}
	if !IsBlank(User(" \n")) {
		t.Error("white space is not blank")
	}
}
