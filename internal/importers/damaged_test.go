package importers

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// kept gives all blocks of a text, of a file or of a pipe, and the lines that its errors name.
func kept(t *testing.T, text string, piped bool) (blocks []string, bad []int) {
	t.Helper()
	var r io.Reader = strings.NewReader(text)
	if piped {
		r = io.MultiReader(r)
	}
	for e, err := range Read("log", r, Auto) {
		if line := (*LineError)(nil); errors.As(err, &line) && !line.Last {
			bad = append(bad, line.Line)
		} else if err != nil {
			t.Fatal(err)
		}
		for _, p := range e.Parts {
			blocks = append(blocks, fmt.Sprint(e.Session, "/", e.Thread, " ", p.ID, " ", p.Block.Kind(), p.Block))
		}
	}
	return blocks, bad
}

// TestDamagedLinesDoNotAffectOthers: in every format, two records on a line are two, a line that
// is no JSON is named, wherever it stands, and all others are read.
func TestDamagedLinesDoNotAffectOthers(t *testing.T) {
	garbage := []string{
		"\x00\x00", "curl: (18) transfer closed", `{"role":"user","content":"cut`, `{"type":"user","mess`, "}", `2026-01-01 words`, `"words" words`, `{"role":"user","content":"a \x"}`,
	}
	for name, text := range map[string]string{
		"chat": mixed(OpenAI), "messages": mixed(Anthropic), "responses": items(), "claude-code": session(),
	} {
		all := strings.SplitAfter(text, "\n")[:400]
		want, bad := kept(t, strings.Join(all, ""), false)
		if len(bad) > 0 || len(want) < len(all)*3/4 {
			t.Fatalf("%s: %d blocks, %v", name, len(want), bad)
		}
		for seed := range uint64(12) {
			rnd := rand.New(rand.NewPCG(seed, 0))
			var text strings.Builder
			var named []int
			n := 1
			for i, line := range all {
				if rnd.IntN(50) == 0 && (i != 1 || len(named) == 0) { // a first line may be cut, but not the second too
					text.WriteString(garbage[rnd.IntN(len(garbage))] + "\n")
					named, n = append(named, n), n+1
				}
				if rnd.IntN(20) == 0 && i < len(all)-1 {
					line = strings.TrimSuffix(line, "\n")
				} else {
					n++
				}
				text.WriteString(line)
			}
			for _, piped := range []bool{false, true} {
				have, bad := kept(t, text.String(), piped)
				if !slices.Equal(have, want) || !slices.Equal(bad, named) {
					t.Fatalf("%s, seed %d, of a pipe %v: %d blocks, want %d; named are lines %v, want %v", name, seed, piped, len(have), len(want), bad, named)
				}
			}
		}
	}
}

// TestConversationsKeepTheirNumbers, which name their branches, when a line before them is
// damaged, and also when two are on a line.
func TestConversationsKeepTheirNumbers(t *testing.T) {
	body := func(words string) string { return `{"messages":[{"role":"user","content":"` + words + `"}]}` }
	for _, c := range []struct {
		text, want string
		bad        []int
	}{
		{body("a") + "\n" + body("b") + "\n" + body("c"), ":a 2:b 3:c", nil},
		{body("a") + body("b") + "\n" + body("c"), ":a 2:b 3:c", nil},
		{body("a") + "\n{\"mess\n" + body("c"), ":a 3:c", []int{2}},
		{"{\"mess\n" + body("b") + "\n" + body("c"), "2:b 3:c", []int{1}},
		{body("a") + "\n" + `{"messages":[{"role":"boss"}]}` + "\n" + body("c"), ":a 3:c", []int{2}},
		{body("a") + ",\n" + body("b") + ",\n" + body("c"), ":a 2:b 3:c", []int{1, 2}},
		{body("a") + ` {"mess` + "\n" + body("b"), ":a 2:b", []int{1}},
	} {
		var have []string
		var bad []int
		for e, err := range Read("log", strings.NewReader(c.text), Auto) {
			if line := (*LineError)(nil); errors.As(err, &line) {
				bad = append(bad, line.Line)
			} else {
				have = append(have, e.Session+":"+e.Parts[0].Block.String())
			}
		}
		if strings.Join(have, " ") != c.want || !slices.Equal(bad, c.bad) {
			t.Errorf("%q gives %v and lines %v, want %s and %v", c.text, have, bad, c.want, c.bad)
		}
	}
}

// TestTwoRecordsOnOneLine reads a real log in which two lines have two records each.
func TestTwoRecordsOnOneLine(t *testing.T) {
	logs(t) // or there is no shared folder
	shared := filepath.Join(cmp.Or(os.Getenv("TRACT_SHARED"), "../../shared"), "logs")
	text, err := os.ReadFile(filepath.Join(shared, "expected.json"))
	if err != nil {
		t.Skip(err)
	}
	const name = "claude/real-glued-lines.jsonl"
	var expected map[string]struct {
		Threads []struct {
			Kinds map[string]int
			Seals int
		}
		Usage   struct{ Input, Output int64 }
		Replies int
	}
	if err := json.Unmarshal(text, &expected); err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(filepath.Join(shared, name))
	if err != nil {
		t.Fatal(err)
	}
	list, err := read(string(log), Auto)
	if err != nil {
		t.Fatal(err)
	}
	have, seals, replies := map[string]int{}, 0, 0
	want := expected[name]
	for _, e := range list {
		want.Usage.Input -= e.Usage.Input
		want.Usage.Output -= e.Usage.Output
		if !e.Usage.IsZero() {
			replies++
		}
		for _, p := range e.Parts {
			if have[p.Block.Kind().String()]++; p.Block.Form().Seal.Data != "" {
				seals++
			}
		}
	}
	if !maps.Equal(have, want.Threads[0].Kinds) || seals != want.Threads[0].Seals || replies != want.Replies {
		t.Errorf("%v, %d seals, %d replies, want %+v", have, seals, replies, want)
	}
	if want.Usage.Input != 0 || want.Usage.Output != 0 {
		t.Errorf("the usage is less than it should be by %+v", want.Usage)
	}
}

// TestRecordsWithoutAnIDOnOneLine are two all the same.
func TestRecordsWithoutAnIDOnOneLine(t *testing.T) {
	const one, two = `{"type":"user","sessionId":"s","message":{"content":"one"}}`, `{"type":"user","sessionId":"s","message":{"content":"two"}}`
	list, err := read(one+two, Auto)
	if err != nil || said(list) != ": user(one)\n: user(two)\n" || list[0].Parts[0].ID == list[1].Parts[0].ID {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestManyDamagedLines: the first of them are named, and the others counted.
func TestManyDamagedLines(t *testing.T) {
	const good = `{"role":"user","content":"a"}` + "\n"
	text := good + strings.Repeat("}\n", 250) + good
	var bad []error
	n := 0
	for _, err := range Read("log", strings.NewReader(text), Auto) {
		if err != nil {
			bad = append(bad, err)
		} else {
			n++
		}
	}
	if n != 2 || len(bad) != maxReported+1 || bad[maxReported].Error() != "log: 150 more lines are damaged" {
		t.Errorf("%d messages, %d errors, the last is %v", n, len(bad), bad[len(bad)-1])
	}
	if list, err := read(strings.Repeat("}\n", 250)+good, Auto); len(list) != 0 || err == nil || !strings.HasPrefix(err.Error(), "log:1: ") {
		t.Errorf("a file that begins with garbage: %d messages, %v", len(list), err)
	}
}

// TestADamagedTextOverManyLines is none of messages: what looks like one in it is not read.
func TestADamagedTextOverManyLines(t *testing.T) {
	for _, text := range []string{
		"[\n" + `{"role":"user","content":"a"},` + "\n" + `{"role":"user","con}` + "\n" + `{"role":"user","content":"b"}` + "\n]",
		"{\n" + `"messages": [` + "\n" + `{"role":"user","content":"b"}` + "\n",
	} {
		list, err := read(text, Auto)
		if line := (*LineError)(nil); !errors.As(err, &line) || line.Line != 1 || len(list) != 0 {
			t.Errorf("%q gives %d messages, %v", text, len(list), err)
		}
	}
}
