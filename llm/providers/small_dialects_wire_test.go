package providers

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/framing/framingtest"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/llm"
)

// smallDialects is the dialects that the tests in this file are about.
var smallDialects = []string{"converse", "cohere", "ollama"}

// eachSmallRecording runs a test for every recording of every dialect here.
func eachSmallRecording(t *testing.T, test func(t *testing.T, r *recording)) {
	t.Helper()
	for _, dialect := range smallDialects {
		for _, r := range recorded(t, dialect) {
			t.Run(dialect+"/"+r.File, func(t *testing.T) { test(t, &r) })
		}
	}
}

func TestSmallDialectsReadRecordings(t *testing.T) {
	eachSmallRecording(t, func(t *testing.T, r *recording) {
		reply, unfinished, err := r.read(bytes.NewReader(r.body))
		var api *llm.APIError
		if want := r.Expected.Error; want == nil && err != nil {
			t.Fatal(err)
		} else if want != nil && (!errors.As(err, &api) || api.Message != want.Message || api.Type != want.Type || !reply.Incomplete) {
			t.Fatalf("error %v, want %+v", err, want)
		}
		r.checkText(t, reply)
		r.checkCalls(t, reply, unfinished)
		r.checkHead(t, reply)
	})
}

func TestSmallDialectsDoNotDependOnCuts(t *testing.T) {
	eachSmallRecording(t, func(t *testing.T, r *recording) {
		t.Parallel()
		r.checkCuts(t)
	})
}

// cutIntoEvents takes a stream apart at the ends of its events.
func (r *recording) cutIntoEvents() [][]byte {
	switch r.Container {
	case "sse":
		return bytes.SplitAfter(r.body, []byte("\n\n"))
	case "jsonl", "ndjson":
		return bytes.SplitAfter(r.body, []byte("\n"))
	case "aws-eventstream":
		var list [][]byte
		for b := r.body; len(b) > 0; {
			n := binary.BigEndian.Uint32(b)
			list, b = append(list, b[:n]), b[n:]
		}
		return list
	}
	return nil
}

// endOfBlock and endsOfStream is how an event says that.
var (
	endOfBlock = []string{"contentBlockStop", `"content-end"`, `"tool-call-end"`}
	streamEnds = []string{"messageStop", `"message-end"`, `"done":true`, `"done": true`}
)

func countAny(b []byte, signs []string) (n int) {
	for _, s := range signs {
		n += bytes.Count(b, []byte(s))
	}
	return n
}

// withoutCloseTag is a block without the end of its tag, of which white space may have
// been cut off.
func withoutCloseTag(b content.Block) content.Block {
	if r, ok := b.(content.Reasoning); ok {
		r.Close = ""
		return r
	}
	return b
}

// TestSmallDialectsKeepFinishedBlocksWhenCut ends each stream after each event.
func TestSmallDialectsKeepFinishedBlocksWhenCut(t *testing.T) {
	eachSmallRecording(t, func(t *testing.T, r *recording) {
		events := r.cutIntoEvents()
		full, _, _ := r.read(bytes.NewReader(r.body))
		for i := range events {
			part := bytes.Join(events[:i+1], nil)
			got, _, err := r.read(bytes.NewReader(part))
			over := countAny(part, streamEnds) > 0
			if r.Expected.Error == nil && over != (err == nil) || err != nil && r.Expected.Error == nil && !errors.Is(err, llm.ErrTruncated) {
				t.Fatalf("after event %d: %v", i, err)
			}
			whole := 0
			for j, b := range got.Blocks {
				if b.Form().Incomplete {
					continue
				}
				if whole++; !bytes.Equal(content.Encode(withoutCloseTag(b)), content.Encode(withoutCloseTag(full.Blocks[j]))) {
					t.Fatalf("after event %d block %d is %+v, want %+v", i, j, b, full.Blocks[j])
				}
			}
			if ended := countAny(part, endOfBlock); whole < ended {
				t.Fatalf("after event %d: %d whole blocks, want %d", i, whole, ended)
			}
		}
	})
}

// TestSmallDialectsReplayRecordings holds what is sent back to what the provider
// sent, after a stay in the store.
func TestSmallDialectsReplayRecordings(t *testing.T) {
	eachSmallRecording(t, func(t *testing.T, r *recording) {
		reply, _, err := r.read(bytes.NewReader(r.body))
		if err != nil {
			return // half an answer
		}
		stored := restored(t, reply.Blocks)
		tt := r.target()
		have := tt.Replay(stored)
		for _, b := range reply.Blocks {
			if seal := b.Form().Seal.Data; !stringsIn(have)[seal] && seal != "" {
				t.Errorf("the seal %q is not in what goes back", seal)
			}
		}
		body, _ := rawjson.Parse(r.body)
		want := body.Get("message")
		if r.dialect() == "converse" {
			want = body.Get("output", "message")
		}
		if r.Container != "json" {
			return
		}
		r.checkReplayed(t, have, want)
	})
}

// TestStreamEqualsWholeResponse compares the two forms of one answer.
func TestStreamEqualsWholeResponse(t *testing.T) {
	for _, dialect := range smallDialects {
		var first []byte
		for _, r := range recorded(t, dialect)[:2] {
			if v, err := rawjson.Parse(r.body); err == nil {
				r.body = rawjson.Compact(v)
			}
			reply, _, err := r.read(bytes.NewReader(r.body))
			if err != nil {
				t.Fatal(err)
			}
			var all []byte
			for _, b := range reply.Blocks {
				all = append(append(all, content.Encode(b)...), '\n')
			}
			if first == nil {
				first = all
			} else if !bytes.Equal(all, first) {
				t.Errorf("%s: in one piece\n%q\nas a stream\n%q", dialect, first, all)
			}
		}
	}
}

// TestConverseReadsEveryFraming: Bedrock's own framing, lines, an array and
// server-sent events of the same events say the same.
func TestConverseReadsEveryFraming(t *testing.T) {
	for _, r := range recorded(t, "converse") {
		if r.Container != "jsonl" {
			continue
		}
		want, _, failed := r.read(bytes.NewReader(r.body))
		var binary, plainSSE, named []byte
		array := []byte("[")
		for line := range bytes.Lines(r.body) {
			v, err := rawjson.Parse(line)
			if err != nil {
				t.Fatal(err)
			}
			for name, event := range v.Members() {
				if strings.HasSuffix(name, "Exception") {
					binary = append(binary, framingtest.AWSMessage(string(event), ":message-type", "exception", ":exception-type", name)...)
				} else {
					binary = append(binary, framingtest.AWSEvent(name, string(event))...)
				}
				named = append(named, "event: "+name+"\ndata: "+string(event)+"\n\n"...)
			}
			plainSSE = append(plainSSE, sseEvent(string(v))...)
			array = append(append(array, v...), ',')
		}
		array[len(array)-1] = ']'
		for name, body := range map[string][]byte{"binary": binary, "array": array, "events": plainSSE, "named events": named} {
			if got, _, err := r.read(bytes.NewReader(body)); describe(got, err) != describe(want, failed) {
				t.Errorf("%s as %s:\n%q\nwant\n%q", r.File, name, describe(got, err), describe(want, failed))
			}
		}
	}
}
