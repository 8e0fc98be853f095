package importers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tract-vcs/tract/content"
)

// logs is the session logs of the shared folder.
func logs(t *testing.T) []string {
	t.Helper()
	shared := os.Getenv("TRACT_SHARED")
	if shared == "" {
		shared = "../../shared"
	}
	files, err := filepath.Glob(filepath.Join(shared, "sessions/claude-code/*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skip("no session logs (TRACT_SHARED)")
	}
	return files
}

// read gives all entries of a text and the error at its end.
func read(text string, f Format) (list []Entry, err error) {
	for e, bad := range Read("log", strings.NewReader(text), f) {
		if bad != nil {
			return list, bad
		}
		list = append(list, e)
	}
	return list, nil
}

// counted is what a log says by a plain count over its lines: for each sort of
// block, what identifies each, in order.
func counted(t *testing.T, text []byte) map[string][]string {
	t.Helper()
	count := map[string][]string{}
	for line := range bytes.Lines(text) {
		var r struct {
			Type, UUID string
			IsMeta     bool
			Message    struct{ Content any }
		}
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		if r.Type != "user" && r.Type != "assistant" || r.IsMeta {
			continue
		}
		if s, ok := r.Message.Content.(string); ok {
			count["user"] = append(count["user"], s)
			continue
		}
		for _, b := range r.Message.Content.([]any) {
			b := b.(map[string]any)
			switch b["type"] {
			case "text":
				sort := map[string]string{"user": "user", "assistant": "assistant"}[r.Type]
				count[sort] = append(count[sort], b["text"].(string))
			case "thinking":
				count["reasoning"] = append(count["reasoning"], b["thinking"].(string)+"|"+b["signature"].(string))
			case "tool_use":
				count["tool-call"] = append(count["tool-call"], b["id"].(string))
			case "tool_result":
				count["tool-result"] = append(count["tool-result"], b["tool_use_id"].(string))
			default:
				t.Fatalf("a block of type %v", b["type"])
			}
		}
	}
	return count
}

// TestEveryBlockOfALogComesOnceAndInOrder holds the reader to a count of its own.
func TestEveryBlockOfALogComesOnceAndInOrder(t *testing.T) {
	for _, file := range logs(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			list, err := read(string(text), Auto)
			if err != nil {
				t.Fatal(err)
			}
			have := map[string][]string{}
			for _, e := range list {
				for _, p := range e.Parts {
					kind, id := p.Block.Kind().String(), p.Block.String()
					switch b := p.Block.(type) {
					case content.Reasoning:
						id = b.Text + "|" + b.Form().Seal.Data
						if b.Form().Seal.Minted != "messages/"+e.Model || b.Form().Seal.Type != content.Signature {
							t.Errorf("the seal is %v, the model %s", b.Form().Seal, e.Model)
						}
					case content.ToolCall:
						id = b.CallID
					case content.ToolResult:
						id = b.CallID
					}
					if have[kind] = append(have[kind], id); p.Time.IsZero() || p.ID == "" {
						t.Errorf("no time or id: %+v", p)
					}
				}
			}
			want := counted(t, text)
			for _, kind := range []string{"user", "assistant", "reasoning", "tool-call", "tool-result"} {
				if !slices.Equal(have[kind], want[kind]) {
					t.Errorf("%s: %d blocks, want %d in the order of the file", kind, len(have[kind]), len(want[kind]))
				}
			}
			if len(have) != len(want) {
				t.Errorf("kinds %d, want %d", len(have), len(want))
			}
			t.Log(shape(list))
		})
	}
}

// shape is the threads of entries: how each begins, and how many messages it has.
func shape(list []Entry) string {
	var names []string
	count := map[string]int{}
	for _, e := range list {
		name := e.Thread
		if e.From != "" {
			name += "<" + e.From
		}
		if count[name] == 0 {
			names = append(names, name)
		}
		count[name]++
	}
	text := ""
	for _, name := range names {
		text += fmt.Sprintf("%s:%d ", name, count[name])
	}
	return strings.TrimSpace(text)
}

// own gives the entries of a file in testdata.
func own(t *testing.T, name string, f Format) ([]Entry, error) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return read(string(text), f)
}

// said is the messages of entries: thread, kinds and words.
func said(list []Entry) string {
	var b strings.Builder
	for _, e := range list {
		fmt.Fprintf(&b, "%s:", e.Thread)
		for _, p := range e.Parts {
			words := p.Block.String()
			switch block := p.Block.(type) {
			case content.ToolCall:
				words = block.CallID
			case content.ToolResult:
				words = block.CallID
			}
			fmt.Fprintf(&b, " %s(%s)", p.Block.Kind(), words)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// TestParallelCallsStayOneMessage: their results come between them in the log and
// hang on them in its tree, hooks report, caveats stand about; the message is one
// all the same, and its cost is told once.
func TestParallelCallsStayOneMessage(t *testing.T) {
	list, err := own(t, "claude-parallel.jsonl", Auto)
	if err != nil {
		t.Fatal(err)
	}
	const want = `: user(What is the weather in Oslo and Rome?)
: reasoning(Two cities, two calls.) reasoning() assistant(I look it up.) tool-call(toolu_1) tool-call(toolu_2)
: tool-result(toolu_1)
: tool-result(toolu_2)
: reasoning() assistant(Oslo 4, Rome 15.)
: user(And this?) image()
: note(API Error: overloaded)
`
	if have := said(list); have != want {
		t.Errorf("have\n%swant\n%s", have, want)
	}
	answer := list[1]
	if answer.ResponseID != "msg_1" || answer.Model != "claude-opus-4-6" || answer.Usage.Input != 123 || answer.Usage.Output != 9 || answer.Usage.Cached != 100 || answer.Usage.CacheWrite != 20 {
		t.Errorf("of the answer is told %+v", answer)
	}
	if o := answer.Original; o["session"] == "" || o["cwd"] != "/home/ada/work" || o["git_branch"] != "main" || o["version"] != "2.1.0" || o["request"] != "req_msg_1" || o["uuid"] != "a1" {
		t.Errorf("the ids are %v", o)
	}
	redacted := answer.Parts[1].Block.(content.Reasoning)
	if redacted.Form().Seal.Type != content.Redacted || redacted.Form().Seal.Data != "opaque-1" {
		t.Errorf("the redacted thought is %+v", redacted)
	}
	if last := list[len(list)-1]; last.Dialect != "" || !last.Usage.IsZero() {
		t.Errorf("words of the program are told to be a model's: %+v", last)
	}
	if answer.Parts[0].Time.Equal(answer.Parts[4].Time) || answer.Parts[4].ID != "a5" {
		t.Errorf("the parts are %+v", answer.Parts)
	}
}

// TestForksAndCompactionsAreThreads: what leaves something behind begins a thread.
func TestForksAndCompactionsAreThreads(t *testing.T) {
	list, err := own(t, "claude-forks.jsonl", ClaudeCode)
	if err != nil {
		t.Fatal(err)
	}
	const want = `: user(Write a haiku.)
: assistant(Snow on the fjord.)
: user(Another one.)
agent-ab12: user(Find words)
: tool-call(toolu_1)
: tool-result(toolu_1)
: assistant(Moss drinks the rain.)
fork-1: user(A limerick instead.)
fork-1: assistant(There once was a fjord.)
fork-2: user(Start again.)
compact-1: user(This session is being continued. They wrote poems.)
compact-1: assistant(Go on.)
: user(Elsewhere.)
agent-ab12: assistant(moss, rain)
: assistant(Here.)
`
	if have := said(list); have != want {
		t.Errorf("have\n%swant\n%s", have, want)
	}
	from := map[string]string{}
	for _, e := range list {
		from[e.Session[len(e.Session)-1:]+e.Thread] = e.From
	}
	if have, want := fmt.Sprint(from), "map[1: 1agent-ab12: 1compact-1: 1fork-1:fa1 1fork-2: 2:a5]"; have != want {
		t.Errorf("the threads begin at %s, want %s", have, want)
	}
	for _, e := range list {
		if e.Compaction != (e.Parts[0].ID == "k1") || e.Compaction && e.Original["compacted"] != "fa4" {
			t.Errorf("a compaction: %+v", e)
		}
	}
}

// TestADamagedLineIsNamed: what came before it holds.
func TestADamagedLineIsNamed(t *testing.T) {
	list, err := own(t, "claude-cut.jsonl", Auto)
	var bad *LineError
	if !errors.As(err, &bad) || bad.Line != 3 || !bad.Last || !strings.Contains(err.Error(), "log:3: the last line is damaged") {
		t.Errorf("the error is %v", err)
	}
	if have := said(list); have != ": user(Hello?)\n: assistant(Yes.)\n" {
		t.Errorf("have\n%s", have)
	}
	const log = `{"type":"user","uuid":"1","sessionId":"s","parentUuid":null,"message":{"role":"user","content":"a"}}` + "\n"
	for text, want := range map[string]string{
		log + "\n\x00\x00\n" + log: "log:3: parse JSON",
		"\x00\x00\n" + log:         "log:1: parse JSON",
		`{"type":"us` + "\n" + log: "log:1: parse JSON",
		log + "\x00\x00\x00":       "log:2: the last line is damaged",
		log + `{"type":"user","uuid":"2","sessionId":"s","message":{"role":"user","content":[{"type":"image"`: "log:2: the last line",
	} {
		list, err := read(text, Auto)
		if err == nil || !strings.HasPrefix(err.Error(), want) || len(list) != 1 {
			t.Errorf("%q gives %d entries, %v; want %s", text, len(list), err, want)
		}
	}
}

// TestGrowingLogKeepsItsEntries reads each log after every line of it: the earlier entries stay the
// same, in the same order.
func TestGrowingLogKeepsItsEntries(t *testing.T) {
	files, err := filepath.Glob("testdata/claude-[pf]*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatal("no logs in testdata")
	}
	for _, file := range append(files, small(t)...) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		place := func(e Entry) string { return e.Session + "/" + e.Thread + "<" + e.From }
		places := map[string]string{}
		whole, _ := read(string(text), ClaudeCode)
		for _, e := range whole {
			for _, p := range e.Parts {
				places[p.ID] = place(e)
			}
		}
		lines := bytes.SplitAfter(text, []byte("\n"))
		before := 0
		for n := range lines {
			list, err := read(string(bytes.Join(lines[:n], nil)), ClaudeCode)
			if unknown := (*UnknownError)(nil); err != nil && !errors.As(err, &unknown) {
				t.Fatal(file, n, err)
			}
			count := 0
			for _, e := range list {
				for _, p := range e.Parts {
					if count++; place(e) != places[p.ID] {
						t.Fatalf("%s: after line %d %s is at %q, in the end at %q", file, n, p.ID, place(e), places[p.ID])
					}
				}
			}
			if count < before {
				t.Fatalf("%s: after line %d there are %d blocks, before it %d", file, n, count, before)
			}
			before = count
		}
	}
}

// TestSubagentsAreThreadsOfTheirOwn, whether they have names, hang on the call that
// began them, or on nothing; the conversation goes on beside them.
func TestSubagentsAreThreadsOfTheirOwn(t *testing.T) {
	line := func(kind, uuid, parent, text, more string) string {
		return fmt.Sprintf(`{"type":%q,"uuid":%q,"parentUuid":%s,"sessionId":"s","message":{"role":%q,"content":%q}%s}`+"\n", kind, uuid, parent, kind, text, more)
	}
	const side = `,"isSidechain":true`
	list, err := read(line("user", "1", "null", "go", "")+
		line("user", "2", `"1"`, "first task", side)+line("assistant", "3", `"2"`, "first answer", side)+
		line("user", "4", "null", "second task", side)+
		line("assistant", "5", `"1"`, "on", "")+
		line("assistant", "6", `"4"`, "second answer", side)+
		line("user", "7", `"6"`, "go on", "")+
		line("user", "8", `"lost"`, "named", side+`,"agentId":"x/1"`), Auto)
	threads := map[string]string{}
	for _, e := range list {
		for _, p := range e.Parts {
			threads[e.Thread] += p.ID
		}
	}
	if have, want := fmt.Sprint(threads), "map[:157 agent-1:23 agent-2:46 agent-x-1:8]"; err != nil || have != want {
		t.Errorf("have %s, %v; want %s", have, err, want)
	}
}

// small is the session logs that are short enough to be read many times.
func small(t *testing.T) []string {
	t.Helper()
	shared := os.Getenv("TRACT_SHARED")
	if shared == "" {
		shared = "../../shared"
	}
	var list []string
	for _, name := range []string{"forks-small", "plain-thinking", "tiny-opus46"} {
		file := filepath.Join(shared, "sessions/claude-code", name+".jsonl")
		if _, err := os.Stat(file); err == nil {
			list = append(list, file)
		}
	}
	return list
}
