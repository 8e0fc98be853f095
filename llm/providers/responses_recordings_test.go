package providers

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/llm/rawjson"
)

// responsesRecording is a recorded response of this dialect and its answer key.
type responsesRecording struct {
	File, Provider, API, Model, Container string
	Expected                              struct {
		Text      string
		Reasoning []struct {
			Text, Form, Encrypted, ID string
			Parts                     []string
		}
		Tools []struct {
			ID, Name  string
			Raw       *string `json:"arguments_raw"`
			Item      string  `json:"item_id"`
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

// responsesShared is the folder of shared recordings, and whether it is there.
func responsesShared(t testing.TB) (string, bool) {
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

// responsesRecordings reads the recordings beside this file, and the shared ones.
func responsesRecordings(t testing.TB) (list []responsesRecording) {
	t.Helper()
	dirs := []string{"testdata/responses"}
	if dir, ok := responsesShared(t); ok {
		dirs = append(dirs, dir)
	}
	for _, dir := range dirs {
		text, err := os.ReadFile(filepath.Join(dir, "manifest.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(text) {
			var r responsesRecording
			if err := json.Unmarshal(line, &r); err != nil {
				t.Fatal(dir, err)
			}
			if r.API != "responses" {
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

// responsesTarget is the target of a provider's model.
func responsesTarget(provider, model string) target {
	t, _, err := find("responses", provider)
	if err != nil {
		panic(err)
	}
	t.model = model
	return t
}

// responsesRead decodes a body; the calls are those that never became whole.
func responsesRead(t target, body io.Reader) (*llm.Response, []content.ToolCall, error) {
	var a llm.Accumulator
	for e, err := range t.decode(body, FramingFound) {
		if err != nil {
			return a.Response(false), a.Unfinished(), err
		}
		a.Add(e)
	}
	return a.Response(true), a.Unfinished(), nil
}

func (r *responsesRecording) target() target { return responsesTarget(r.Provider, r.Model) }

func (r *responsesRecording) read(body io.Reader) (*llm.Response, error) {
	reply, _, err := responsesRead(r.target(), body)
	return reply, err
}

// events is the frames of a stream, each with the blank line after it.
func (r *responsesRecording) events() [][]byte {
	return bytes.SplitAfter(bytes.ReplaceAll(r.body, []byte("\r\n"), []byte("\n")), []byte("\n\n"))
}

// frameJSON is the JSON of a frame.
func frameJSON(frame []byte) rawjson.Value {
	for line := range bytes.Lines(frame) {
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			v, _ := rawjson.Parse(data)
			return v
		}
	}
	return nil
}

// whole is the response in one piece: the body, or what the last event of a stream
// repeats, with the items as they were when each was done (a provider seals them
// anew for every event).
func (r *responsesRecording) whole() rawjson.Value {
	if r.Container == "json" {
		v, _ := rawjson.Parse(r.body)
		return v
	}
	var whole rawjson.Object
	var items rawjson.Array
	for _, frame := range r.events() {
		v := frameJSON(frame)
		if v.Get("type").Text() == "response.output_item.done" {
			items.Add(v.Get("item"))
		}
		if responsesEnds[v.Get("type").Text()] != "" {
			whole.Merge(v.Get("response"))
		}
	}
	if items.Bytes().At(0) != nil {
		whole.Set("output", items.Bytes())
	}
	return whole.Bytes()
}
