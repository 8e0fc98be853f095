package providers

import (
	"bytes"
	"testing"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/framing"
	"github.com/tract-vcs/tract/internal/llm/framing/framingtest"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/llm"
)

// invoked is the recordings of Claude on Bedrock, to be read by a dialect.
func invoked(t *testing.T, dialect string) []recording {
	t.Helper()
	dir, ok := sharedWire(t)
	if !ok {
		t.Skip("no recordings of this way to ask")
	}
	list := recordings(t, dir, func(r *recording) bool { return r.API == "messages" && r.Container == "aws-eventstream" })
	if len(list) != 2 {
		t.Errorf("%d recordings", len(list))
	}
	for i := range list {
		list[i].API = dialect
	}
	return list
}

// TestInvokeReadsRecordings: what Claude says on Bedrock is found by the
// dialect of the way it came, and by the one it speaks.
func TestInvokeReadsRecordings(t *testing.T) {
	for _, api := range []string{"messages", "invoke"} {
		for _, r := range invoked(t, api) {
			t.Run(r.API+"/"+r.File, func(t *testing.T) {
				reply, unfinished, err := r.read(bytes.NewReader(r.body))
				if err != nil {
					t.Fatal(err)
				}
				r.checkText(t, reply)
				r.checkCalls(t, reply, unfinished)
				r.checkHead(t, reply)
				r.checkCuts(t)
			})
		}
	}
}

// TestInvokeReadsWrappedEvents wraps recorded streams as Bedrock does.
func TestInvokeReadsWrappedEvents(t *testing.T) {
	for _, r := range recorded(t, "messages") {
		if r.Container != "sse" {
			continue
		}
		want, _, failed := r.read(bytes.NewReader(r.body))
		var wrapped []byte
		for f, err := range framing.ServerSentEvents(bytes.NewReader(r.body)) {
			if err != nil {
				t.Fatal(err)
			}
			wrapped = append(wrapped, framingtest.AWSChunk(string(f.Data))...)
		}
		if got, _, err := r.read(bytes.NewReader(wrapped)); describe(got, err) != describe(want, failed) {
			t.Errorf("%s wrapped says\n%q\nwant\n%q", r.File, describe(got, err), describe(want, failed))
		}
		tt := r.target()
		back := tt.Replay(want.Blocks)
		r.API = "invoke"
		got, _, _ := r.read(bytes.NewReader(wrapped))
		tt = r.target()
		if have := tt.Replay(got.Blocks); !bytes.Equal(have, back) {
			t.Errorf("%s goes back as\n%s\nwant\n%s", r.File, have, back)
		}
	}
}

// TestInvokeReplayPairs rebuilds what a real client sent next, and was answered.
func TestInvokeReplayPairs(t *testing.T) {
	replayPairs(t, invoked(t, "invoke"), func(r *recording, reply *llm.Response, pair rawjson.Value) {
		r.checkReplayed(t, replayOf(r.target(), reply.Blocks), pair.Get("assistant").At(0))
	})
}

func TestInvokeRequestNamesNoModel(t *testing.T) {
	tt := mustTarget("invoke", "bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0")
	req := &llm.Request{Stream: true, Messages: []content.Message{message(content.RoleUser, content.User("Hi"))}}
	body, err := tt.Encode(req)
	if err != nil {
		t.Fatal(err)
	}
	if want := rawjson.Value(`{"anthropic_version":"bedrock-2023-05-31","max_tokens":8192,"messages":[{"role":"user","content":[{"type":"text","text":"Hi"}]}]}`); !rawjson.Equal(body, want) {
		t.Errorf("%s, want %s", body, want)
	}
	req.Settings.Extra = []byte(`{"anthropic_version":"later","anthropic_beta":["x"]}`)
	if body, err = tt.Encode(req); err != nil || body.Get("anthropic_version").Text() != "later" || body.Get("anthropic_beta").At(0).Text() != "x" {
		t.Errorf("%s, %v", body, err)
	}
	req.Settings.Extra = []byte(`[]`)
	if body, err = tt.Encode(req); err == nil {
		t.Errorf("%s", body)
	}
}
