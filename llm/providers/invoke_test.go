package providers

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/llm/rawjson"
)

// sharedWire is the folder of the shared recordings; the test is skipped where
// there is none.
func sharedWire(t *testing.T) string {
	t.Helper()
	shared := os.Getenv("TRACT_SHARED")
	if shared == "" {
		shared = "../../../shared"
	}
	if _, err := os.Stat(shared); err != nil {
		t.Skipf("no shared recordings (TRACT_SHARED): %v", err)
	}
	return filepath.Join(shared, "wire")
}

// TestInvokedModelsAreUnderstood: what Claude says on Bedrock is found by the
// dialect of the way it came, and by the one it speaks.
func TestInvokedModelsAreUnderstood(t *testing.T) {
	list := recordings(t, sharedWire(t), func(r *recording) bool { return r.API == "messages" && r.Container == "aws-eventstream" })
	if len(list) != 2 {
		t.Errorf("%d recordings", len(list))
	}
	for _, r := range list {
		for _, r.API = range []string{"messages", "invoke"} {
			t.Run(r.API+"/"+r.File, func(t *testing.T) {
				reply, unfinished, err := r.read(bytes.NewReader(r.body))
				if err != nil {
					t.Fatal(err)
				}
				r.checkWords(t, reply)
				r.checkCalls(t, reply, unfinished)
				r.checkHead(t, reply)
				r.checkCuts(t)
			})
		}
	}
}

// TestWrappedEventsSayTheSame wraps recorded streams as Bedrock does.
func TestWrappedEventsSayTheSame(t *testing.T) {
	for _, r := range recordedMessages(t) {
		if r.Container != "sse" {
			continue
		}
		want, _, failed := r.read(bytes.NewReader(r.body))
		var wrapped []byte
		for f, err := range llm.ServerSent(bytes.NewReader(r.body)) {
			if err != nil {
				t.Fatal(err)
			}
			wrapped = append(wrapped, awsChunk(string(f.Data))...)
		}
		if got, _, err := r.read(bytes.NewReader(wrapped)); all(got, err) != all(want, failed) {
			t.Errorf("%s wrapped says\n%q\nwant\n%q", r.File, all(got, err), all(want, failed))
		}
		tt := r.target()
		back := tt.dialect.replay(tt, want.Blocks)
		r.API = "invoke"
		got, _, _ := r.read(bytes.NewReader(wrapped))
		tt = r.target()
		if have := tt.dialect.replay(tt, got.Blocks); !bytes.Equal(have, back) {
			t.Errorf("%s goes back as\n%s\nwant\n%s", r.File, have, back)
		}
	}
}

// TestInvokeReplayPairs rebuilds what a real client sent next, and was answered.
func TestInvokeReplayPairs(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(sharedWire(t), "replay.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	pairs := 0
	for line := range bytes.Lines(text) {
		pair, err := rawjson.Parse(line)
		if err != nil {
			t.Fatal(err)
		}
		if pair.Get("provider").Text() != "bedrock" {
			continue
		}
		pairs++
		file := pair.Get("response").Text()
		for _, r := range recordings(t, sharedWire(t), func(r *recording) bool { return r.File == file }) {
			r.API = "invoke"
			reply, _, err := r.read(bytes.NewReader(r.body))
			if err != nil {
				t.Fatal(err)
			}
			tt := r.target()
			if have, want := tt.dialect.replay(tt, reply.Blocks), pair.Get("assistant").At(0); !rawjson.Equal(have, want) {
				t.Errorf("%s: %s, want %s", file, have, want)
			}
		}
	}
	if pairs == 0 {
		t.Error("no pair was found")
	}
}

func TestAnInvokeRequestNamesNoModel(t *testing.T) {
	tt, _, err := find("invoke", "bedrock")
	if err != nil {
		t.Fatal(err)
	}
	tt.model = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
	req := &llm.Request{Stream: true, Messages: []content.Message{says(content.RoleUser, content.User("Hi"))}}
	body, err := tt.dialect.encode(tt, req)
	if err != nil {
		t.Fatal(err)
	}
	if want := rawjson.Value(`{"anthropic_version":"bedrock-2023-05-31","max_tokens":8192,"messages":[{"role":"user","content":[{"type":"text","text":"Hi"}]}]}`); !rawjson.Equal(body, want) {
		t.Errorf("%s, want %s", body, want)
	}
	req.Settings.Extra = []byte(`{"anthropic_version":"later","anthropic_beta":["x"]}`)
	if body, err = tt.dialect.encode(tt, req); err != nil || body.Get("anthropic_version").Text() != "later" || body.Get("anthropic_beta").At(0).Text() != "x" {
		t.Errorf("%s, %v", body, err)
	}
	req.Settings.Extra = []byte(`[]`)
	if body, err = tt.dialect.encode(tt, req); err == nil {
		t.Errorf("%s", body)
	}
}
