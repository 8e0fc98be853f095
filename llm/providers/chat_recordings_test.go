package providers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/llm/rawjson"
)

// chatRecording is a recorded response of the chat dialect and its answer key.
type chatRecording struct {
	File, Provider, API, Model, Container string
	Expected                              struct {
		Text      string
		Reasoning []struct {
			Text, Form, Source, Signature, Encrypted, ID string
			Raw                                          string `json:"raw_text"`
		}
		Tools []struct {
			ID, Name  string
			Raw       string `json:"arguments_raw"`
			Server    bool
			Preceded  bool `json:"preceded_by_reasoning"`
			Ref       *int `json:"reasoning_ref"`
			Reasoning []int
		} `json:"tool_calls"`
		Usage  map[string]*int64
		Finish *string `json:"finish_reason"`
		Blocks []string
		Error  *struct{ Message string }
		ID     string `json:"response_id"`
	}
	body []byte
}

// chatShared is the folder of shared recordings, and whether it is there.
func chatShared(t testing.TB) (string, bool) {
	t.Helper()
	dir := os.Getenv("TRACT_SHARED")
	if dir == "" {
		dir = "../../../shared"
	}
	if _, err := os.Stat(dir); err != nil {
		t.Logf("no shared recordings at %s (set TRACT_SHARED): only testdata is read", dir)
		return "", false
	}
	return filepath.Join(dir, "wire"), true
}

// chatRecordings reads the recordings beside this file, and the shared ones.
func chatRecordings(t testing.TB) (list []chatRecording) {
	t.Helper()
	dirs := []string{"testdata/chat"}
	if dir, ok := chatShared(t); ok {
		dirs = append(dirs, dir)
	}
	for _, dir := range dirs {
		text, err := os.ReadFile(filepath.Join(dir, "manifest.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(text) {
			var r chatRecording
			if err := json.Unmarshal(line, &r); err != nil {
				t.Fatal(dir, err)
			}
			if r.API != "chat" || r.Container != "sse" && r.Container != "json" {
				continue
			}
			if r.body, err = os.ReadFile(filepath.Join(dir, r.File)); err != nil {
				t.Fatal(err)
			}
			list = append(list, r)
		}
	}
	return list
}

// chatTarget is the target of a provider's model.
func chatTarget(provider, model string) target {
	t, _, err := find("chat", provider)
	if err != nil {
		panic(err)
	}
	t.model = model
	return t
}

// chatRead decodes a body.
func chatRead(t target, body io.Reader) (*llm.Response, error) {
	var a llm.Accumulator
	for e, err := range t.decode(body, FramingFound) {
		if err != nil {
			return a.Response(false), err
		}
		a.Add(e)
	}
	return a.Response(true), nil
}

func (r *chatRecording) read(body io.Reader) (*llm.Response, error) {
	return chatRead(chatTarget(r.Provider, r.Model), body)
}

// chatAll is a response in words that differ when anything in it does.
func chatAll(r *llm.Response, err error) string {
	var b strings.Builder
	for _, block := range r.Blocks {
		fmt.Fprintf(&b, "%q\n", content.Encode(block))
	}
	fmt.Fprintf(&b, "%q %q %q %+v %t %v", r.ID, r.Model, r.Finish, r.Usage, r.Incomplete, err)
	return b.String()
}

// chatBare is s without white space.
func chatBare(s string) string { return strings.Join(strings.Fields(s), "") }

// chatTexts is all strings in a value.
func chatTexts(v rawjson.Value) map[string]bool {
	found := map[string]bool{}
	if v.Kind() == rawjson.KindString {
		found[v.Text()] = true
	}
	for e := range v.Elements() {
		maps.Copy(found, chatTexts(e))
	}
	for _, e := range v.Members() {
		maps.Copy(found, chatTexts(e))
	}
	return found
}
