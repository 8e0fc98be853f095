package providers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
	"github.com/tract-vcs/tract/llm"
)

// recording is a recorded response and its answer key: a line of a manifest.
type recording struct {
	File, Provider, API, Model, Container string
	Expected                              struct {
		Text      string
		Reasoning []struct {
			Text, Form, Source, Signature, Encrypted, ID string
			Parts                                        []string
		}
		Tools []struct {
			ID, Name  string
			Raw       *string `json:"arguments_raw"`
			Arguments any
			Item      string `json:"item_id"`
			Server    bool
			Preceded  bool `json:"preceded_by_reasoning"`
			Reasoning []int
			Ref       *int `json:"reasoning_ref"`
		} `json:"tool_calls"`
		Usage  map[string]*int64
		Finish *string `json:"finish_reason"`
		Blocks []string
		Error  *struct{ Type, Message string }
		ID     string `json:"response_id"`
	}
	body []byte
}

// sharedWire is the folder of the shared recordings, and whether it is there.
func sharedWire(t testing.TB) (string, bool) {
	t.Helper()
	dir := os.Getenv("TRACT_SHARED")
	if dir == "" {
		dir = "../../../shared"
	}
	if _, err := os.Stat(dir); err != nil {
		t.Logf("no shared recordings at %s (TRACT_SHARED): only testdata is read", dir)
		return "", false
	}
	return filepath.Join(dir, "wire"), true
}

// recorded reads the recordings of some dialects: those in testdata, and the shared
// ones where they are.
func recorded(t testing.TB, dialects ...string) (list []recording) {
	t.Helper()
	var dirs []string
	for _, d := range dialects {
		dirs = append(dirs, filepath.Join("testdata", d))
	}
	if dir, ok := sharedWire(t); ok {
		dirs = append(dirs, dir)
	}
	for _, dir := range dirs {
		list = append(list, recordings(t, dir, func(r *recording) bool {
			wrapped := r.Container == "aws-eventstream" && r.dialect() != "converse"
			return slices.Contains(dialects, r.dialect()) && !wrapped
		})...)
	}
	return list
}

// recordings reads those recordings of a folder that are wanted.
func recordings(t testing.TB, dir string, wanted func(*recording) bool) (list []recording) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "manifest.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		var r recording
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(dir, err)
		}
		if !wanted(&r) {
			continue
		}
		if r.body, err = os.ReadFile(filepath.Join(dir, r.File)); err != nil {
			t.Fatal(err)
		}
		list = append(list, r)
	}
	return list
}

// dialect is what the API of the recording is called here.
func (r *recording) dialect() string {
	switch r.API {
	case "":
		return "messages"
	case "bedrock-converse":
		return "converse"
	case "gemini-interactions":
		return "interactions"
	}
	return r.API
}

func (r *recording) target() wire.Target { return mustTarget(r.dialect(), r.Provider, r.Model) }

// mustTarget is the target of a provider's model.
func mustTarget(dialect, provider, model string) wire.Target {
	t, err := targetOrGeneric(dialect, provider, model)
	if err != nil {
		panic(err)
	}
	return t
}

// replayOf is what stands for a response in the next request.
func replayOf(t wire.Target, blocks []content.Block) rawjson.Value {
	return t.Replay(blocks)
}

func (r *recording) read(body io.Reader) (*llm.Response, []content.ToolCall, error) {
	return readAll(r.target(), body)
}

// readAll decodes a body; the calls are those that never became whole.
func readAll(t wire.Target, body io.Reader) (*llm.Response, []content.ToolCall, error) {
	var a llm.Accumulator
	for e, err := range t.Decode(body, llm.FramingAuto) {
		if err != nil {
			return a.Response(false), a.UnfinishedCalls(), err
		}
		a.Add(e)
	}
	return a.Response(true), a.UnfinishedCalls(), nil
}

// events is the frames of server-sent events, each with the blank line after it.
func (r *recording) events() [][]byte {
	return bytes.SplitAfter(bytes.ReplaceAll(r.body, []byte("\r\n"), []byte("\n")), []byte("\n\n"))
}

// checkCuts: the network cuts where it likes, and a proxy may change line ends.
func (r *recording) checkCuts(t *testing.T) {
	t.Helper()
	reply, _, err := r.read(bytes.NewReader(r.body))
	want := describe(reply, err)
	check := func(body io.Reader, how string, at ...any) {
		t.Helper()
		if got, _, err := r.read(body); describe(got, err) != want {
			t.Fatalf("%s:\n%q\nwant\n%q", fmt.Sprintf(how, at...), describe(got, err), want)
		}
	}
	check(iotest.OneByteReader(bytes.NewReader(r.body)), "byte by byte")
	if slices.Contains([]string{"sse", "ndjson", "jsonl"}, r.Container) {
		unix := bytes.ReplaceAll(r.body, []byte("\r\n"), []byte("\n"))
		check(bytes.NewReader(unix), "LF")
		check(bytes.NewReader(bytes.ReplaceAll(unix, []byte("\n"), []byte("\r\n"))), "CRLF")
	}
	if len(r.body) > 8<<10 {
		return
	}
	step := 31
	switch {
	case torture():
		step = 1
	case testing.Short():
		step = 97
	}
	for i := 0; i < len(r.body); i += step {
		check(io.MultiReader(bytes.NewReader(r.body[:i]), bytes.NewReader(r.body[i:])), "cut at %d", i)
	}
}

// torture reports whether the long forms of the tests run (make torture).
func torture() bool { return os.Getenv("TRACT_TORTURE") != "" }

// checkReplayed holds what is sent back to what the provider sent: the same JSON, in
// which every string has the same bytes.
func (r *recording) checkReplayed(t *testing.T, have, want rawjson.Value) {
	t.Helper()
	if !rawjson.Equal(have, want) {
		t.Errorf("%s goes back as\n%s\nwant\n%s", r.File, have, want)
		return
	}
	for s := range stringsIn(want) {
		if !bytes.Contains(have, rawjson.AppendString(nil, s)) {
			t.Errorf("%s: %q is not in what goes back", r.File, s)
		}
	}
}

// replayPairs finds, for each recording that is one, what a real client sent next
// and was answered. The test is skipped where there are none.
func replayPairs(t *testing.T, list []recording, check func(r *recording, reply *llm.Response, pair rawjson.Value)) {
	t.Helper()
	dir, ok := sharedWire(t)
	if !ok {
		t.Skip("no replay pairs")
	}
	text, err := os.ReadFile(filepath.Join(dir, "replay.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	pairs := 0
	for line := range bytes.Lines(text) {
		pair, err := rawjson.Parse(line)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list {
			if r.File != pair.Get("response").Text() {
				continue
			}
			pairs++
			reply, _, err := r.read(bytes.NewReader(r.body))
			if err != nil {
				t.Fatal(err)
			}
			check(&r, reply, pair)
		}
	}
	if pairs == 0 {
		t.Error("no pair was found")
	}
	t.Logf("%d pairs", pairs)
}

// encodedTwice is the body of a request, which is the same each time.
func encodedTwice(t *testing.T, provider, dialect string, req *llm.Request) rawjson.Value {
	t.Helper()
	c, err := Open(provider, Config{Dialect: dialect})
	if err != nil {
		t.Fatal(err)
	}
	body, err := c.Encode(req)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := c.Encode(req); err != nil || !bytes.Equal(body, again) {
		t.Fatalf("the same request gave %s, %v, and then %s", body, err, again)
	}
	return body
}

// restored is blocks as they come back from a store.
func restored(t *testing.T, blocks []content.Block) (stored []content.Block) {
	t.Helper()
	for _, b := range blocks {
		again, err := content.Decode(content.Encode(b))
		if err != nil {
			t.Fatal(err)
		}
		stored = append(stored, again)
	}
	return stored
}

// describe is a response in words that differ when anything in it does.
func describe(r *llm.Response, err error) string {
	var b strings.Builder
	for _, block := range r.Blocks {
		b.Write(content.Encode(block))
		b.WriteByte('\n')
	}
	u := r.Usage
	fmt.Fprint(&b, r.ID, " ", r.Model, " ", r.Finish, " ", u.Input, u.Output, u.Reasoning, u.Cached, u.CacheWrite, string(u.Raw), r.Incomplete, err)
	return b.String()
}

// withoutSpace is s without white space.
func withoutSpace(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, s)
}

// stringsIn is all strings in a value.
func stringsIn(v rawjson.Value) map[string]bool {
	found := map[string]bool{}
	var walk func(rawjson.Value)
	walk = func(v rawjson.Value) {
		if v.Kind() == rawjson.KindString {
			found[v.Text()] = true
		}
		for e := range v.Elements() {
			walk(e)
		}
		for _, e := range v.Members() {
			walk(e)
		}
	}
	walk(v)
	return found
}

// sameJSON reports whether two texts are the same JSON.
func sameJSON(a, b string) bool {
	x, err := rawjson.Parse([]byte(a))
	y, bad := rawjson.Parse([]byte(b))
	return err == nil && bad == nil && rawjson.Equal(x, y)
}

func kindName(b content.Block) string {
	switch b := b.(type) {
	case content.Text:
		if b.Form().Type == "tool_plan" {
			return "plan"
		}
		return "text"
	case content.Reasoning:
		return "reasoning"
	case content.ToolCall:
		if b.Server {
			return "server_tool_call"
		}
		return "tool_call"
	case content.ToolResult:
		return "server_tool_result"
	case content.Media:
		return "file"
	case content.Native:
		if b.Form().Type == "compaction" {
			return b.Form().Type
		}
		return "other:" + b.Form().Type
	}
	return "?"
}
