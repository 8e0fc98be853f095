package providers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/llm"
)

// recording is a line of the manifest of recorded responses, and the few that lie
// in testdata.
type recording struct {
	File, Provider, API, Model, Container string
	Expected                              struct {
		Text      string
		Reasoning []struct{ Text, Signature, Encrypted string }
		Tools     []struct {
			ID, Name  string
			Raw       string `json:"arguments_raw"`
			Arguments any
			Server    bool
			Preceded  bool `json:"preceded_by_reasoning"`
		} `json:"tool_calls"`
		Usage  map[string]*int64
		Finish *string `json:"finish_reason"`
		Blocks []string
		Error  *struct{ Type, Message string }
		ID     string `json:"response_id"`
	}
	body []byte
}

// recordedMessages reads the recordings of the messages dialect: those beside
// this file, and the shared ones where they are.
func recordedMessages(t testing.TB) []recording {
	t.Helper()
	list := manifest(t, "testdata/messages")
	shared := os.Getenv("TRACT_SHARED")
	if shared == "" {
		shared = "../../../shared"
	}
	if _, err := os.Stat(shared); err != nil {
		t.Logf("no shared recordings at %s (TRACT_SHARED): only testdata is read", shared)
		return list
	}
	return append(list, manifest(t, filepath.Join(shared, "wire"))...)
}

func manifest(t testing.TB, dir string) (list []recording) {
	t.Helper()
	return recordings(t, dir, func(r *recording) bool {
		return r.API == "messages" && (r.Container == "sse" || r.Container == "json")
	})
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

func (r *recording) target() target {
	t, _, err := find(r.dialect(), r.Provider)
	if err != nil {
		panic(err)
	}
	t.model = r.Model
	return t
}

// read decodes a body; the calls are those that never became whole.
func (r *recording) read(body io.Reader) (*llm.Response, []content.ToolCall, error) {
	var a llm.Accumulator
	var failed error
	for e, err := range r.target().decode(body, FramingFound) {
		if err != nil {
			failed = err
			break
		}
		a.Add(e)
	}
	return a.Response(failed == nil), a.Unfinished(), failed
}

// all is a response in words that differ when anything in it does.
func all(r *llm.Response, err error) string {
	var b strings.Builder
	for _, block := range r.Blocks {
		b.Write(content.Encode(block))
		b.WriteByte('\n')
	}
	u := r.Usage
	fmt.Fprint(&b, r.ID, " ", r.Model, " ", r.Finish, " ", u.Input, u.Output, u.Reasoning, u.Cached, u.CacheWrite, string(u.Raw), r.Incomplete, err)
	return b.String()
}

// bare is s without white space.
func bare(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, s)
}

func kindName(b content.Block) string {
	switch b := b.(type) {
	case content.Text:
		if b.Type == coherePlan {
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
		if b.Type == "compaction" {
			return b.Type
		}
		return "other:" + b.Type
	}
	return "?"
}
