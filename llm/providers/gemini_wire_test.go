package providers

import (
	"bytes"
	"errors"
	"testing"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/llm"
)

// withKeyedIDs is a response as the answer key describes it: without ids that nobody
// gave and texts that only carry a seal.
func withKeyedIDs(reply *llm.Response) *llm.Response {
	r := *reply
	r.Blocks = nil
	for _, b := range reply.Blocks {
		switch c := b.(type) {
		case content.Text:
			if c.Text == "" {
				continue
			}
		case content.ToolCall:
			c.CallID = c.Form().ID
			b = c
		}
		r.Blocks = append(r.Blocks, b)
	}
	return &r
}

// TestGeminiReadsRecordings holds the decoders to the answer key.
func TestGeminiReadsRecordings(t *testing.T) {
	for _, r := range recorded(t, "gemini", "interactions") {
		t.Run(r.File, func(t *testing.T) {
			reply, unfinished, err := r.read(bytes.NewReader(r.body))
			var api *llm.APIError
			switch {
			case r.Expected.Error == nil && err != nil:
				t.Fatal(err)
			case r.Expected.Error != nil && (!errors.As(err, &api) || api.Message != r.Expected.Error.Message || len(api.Raw) == 0):
				t.Fatalf("error %#v, want %q", err, r.Expected.Error.Message)
			}
			keyed := withKeyedIDs(reply)
			r.checkText(t, keyed)
			r.checkCalls(t, keyed, unfinished)
			r.checkHead(t, keyed)
			r.checkSeals(t, reply)
		})
	}
}

// checkSeals looks for all seals of the recording: in the blocks, in order, each
// minted here.
func (r *recording) checkSeals(t *testing.T, reply *llm.Response) {
	t.Helper()
	var have []string
	for _, b := range reply.Blocks {
		seal := b.Form().Seal
		if seal.IsZero() {
			continue
		}
		have = append(have, seal.Data)
		if seal.Type != content.Signature || seal.Minted != r.dialect()+"/"+r.Model {
			t.Errorf("%s is sealed as %s by %s", b, seal.Type, seal.Minted)
		}
	}
	want := sealsIn(r.body)
	if len(have) != len(want) {
		t.Fatalf("%d seals, want %d", len(have), len(want))
	}
	for i := range want {
		if have[i] != want[i] {
			t.Errorf("seal %d is %q, want %q", i, have[i], want[i])
		}
	}
}

// sealsIn is the seals of a recording in the order in which they came.
func sealsIn(body []byte) (seals []string) {
	for _, field := range bytes.SplitAfter(body, []byte(`ignature"`))[1:] {
		field = bytes.TrimLeft(field, ": \n")
		if value, _, ok := bytes.Cut(bytes.TrimPrefix(field, []byte(`"`)), []byte(`"`)); ok && field[0] == '"' && len(value) > 0 && !bytes.HasPrefix(value, []byte("thought_")) {
			seals = append(seals, string(value))
		}
	}
	return seals
}

func TestGeminiDoesNotDependOnCuts(t *testing.T) {
	for _, r := range recorded(t, "gemini", "interactions") {
		t.Run(r.File, func(t *testing.T) {
			t.Parallel()
			r.checkCuts(t)
		})
	}
}

// TestGeminiKeepsFinishedBlocksWhenCut ends each stream after each event: what was
// done in the events before is there, as it is in the end.
func TestGeminiKeepsFinishedBlocksWhenCut(t *testing.T) {
	for _, r := range recorded(t, "gemini", "interactions") {
		if r.Container != "sse" {
			continue
		}
		t.Run(r.File, func(t *testing.T) {
			full, _, _ := r.read(bytes.NewReader(r.body))
			events := r.events()
			most := 0
			for i := range events {
				got, _, err := r.read(bytes.NewReader(bytes.Join(events[:i+1], nil)))
				if err != nil && !errors.Is(err, llm.ErrTruncated) && !errors.As(err, new(*llm.APIError)) {
					t.Fatalf("after event %d: %v", i, err)
				}
				whole := wholeBlocks(t, got, full)
				if begun := len(got.Blocks); whole < most || err != nil && begun-whole > 1 {
					t.Fatalf("after event %d %d of %d blocks are whole, before it %d", i, whole, begun, most)
				}
				most = whole
			}
			if r.Expected.Error == nil && most < len(full.Blocks)-1 {
				t.Errorf("%d whole blocks at last, want %d", most, len(full.Blocks))
			}
		})
	}
}

// wholeBlocks counts the blocks that are whole, each as it is in the whole answer.
func wholeBlocks(t *testing.T, got, full *llm.Response) (whole int) {
	t.Helper()
	for j, b := range got.Blocks {
		if n, ok := b.(content.Native); b.Form().Incomplete || ok && n.Form().Type == "sources" {
			continue
		}
		if whole++; !bytes.Equal(content.Encode(b), content.Encode(full.Blocks[j])) {
			t.Fatalf("block %d is %+v, want %+v", j, b, full.Blocks[j])
		}
	}
	return whole
}

// TestGeminiReplaysRecordings holds replay to what the provider sent.
func TestGeminiReplaysRecordings(t *testing.T) {
	for _, r := range recorded(t, "gemini", "interactions") {
		reply, _, err := r.read(bytes.NewReader(r.body))
		if err != nil {
			continue
		}
		tt := r.target()
		have := tt.Replay(restored(t, reply.Blocks))
		if r.Container != "json" {
			seals := sealsIn(have)
			for i, want := range sealsIn(r.body) {
				if i >= len(seals) || seals[i] != want {
					t.Errorf("%s: seal %d does not go back in its place", r.File, i)
				}
			}
			continue
		}
		body, _ := rawjson.Parse(r.body)
		want := body.Get("steps")
		if want == nil {
			want = body.Get("candidates").At(0).Get("content")
		}
		r.checkReplayed(t, have, rawjson.ValidUTF8(want))
	}
}

// TestGeminiReplayPairs rebuilds what real clients sent next, and were answered:
// all of it but ids that they made up for calls that had none.
func TestGeminiReplayPairs(t *testing.T) {
	replayPairs(t, recorded(t, "gemini", "interactions"), func(r *recording, reply *llm.Response, pair rawjson.Value) {
		tt := r.target()
		var have []rawjson.Value // without reasoning, which those clients left out
		for p := range tt.Replay(reply.Blocks).Get("parts").Elements() {
			if !p.Get("thought").Bool() {
				have = append(have, p)
			}
		}
		for i, want := range rawjson.Indexed(pair.Get("assistant").At(0).Get("parts")) {
			call, sent := want.Get("functionCall"), have[i].Get("functionCall")
			if have[i].Get("thoughtSignature").Text() != want.Get("thoughtSignature").Text() || !rawjson.Equal(call.Get("args"), sent.Get("args")) ||
				call.Get("name").Text() != sent.Get("name").Text() || sent.Get("id") != nil && !rawjson.Equal(call.Get("id"), sent.Get("id")) {
				t.Errorf("%s: part %d is %s, want %s", r.File, i, have[i], want)
			}
		}
	})
}

// TestGeminiStreamEqualsWholeResponse: an answer has the same blocks, seals and
// words in JSON, as a stream, and as a stream in one JSON array.
func TestGeminiStreamEqualsWholeResponse(t *testing.T) {
	same := map[string][]content.Block{}
	for _, r := range recorded(t, "gemini", "interactions") {
		name, _, all := bytes.Cut([]byte(r.File), []byte("all-"))
		if !all || len(name) > 0 {
			continue
		}
		reply, _, err := r.read(bytes.NewReader(r.body))
		if err != nil {
			t.Fatal(r.File, err)
		}
		first := same[r.API]
		if first == nil {
			same[r.API] = reply.Blocks
			continue
		}
		if len(first) != len(reply.Blocks) {
			t.Fatalf("%s: %d blocks, want %d", r.File, len(reply.Blocks), len(first))
		}
		for i, b := range reply.Blocks {
			if !bytes.Equal(content.Encode(b), content.Encode(first[i])) {
				t.Errorf("%s: block %d is %#v, want %#v", r.File, i, b, first[i])
			}
		}
	}
	if len(same) != 2 {
		t.Errorf("%d dialects were compared", len(same))
	}
}
