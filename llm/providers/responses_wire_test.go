package providers

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/llm"
)

// TestResponsesReadsRecordings holds the decoder to the answer key.
func TestResponsesReadsRecordings(t *testing.T) {
	for _, r := range recorded(t, "responses") {
		t.Run(r.File, func(t *testing.T) {
			reply, _, err := r.read(bytes.NewReader(r.body))
			if (err != nil) != (r.Expected.Error != nil) {
				t.Fatalf("error: %v, want %v", err, r.Expected.Error)
			}
			if err != nil {
				if e := wantAPIError(t, err); e.Message != r.Expected.Error.Message {
					t.Errorf("error %q, want %q", e.Message, r.Expected.Error.Message)
				}
			}
			r.checkResponsesReasoning(t, reply)
			r.checkResponsesCalls(t, reply)
			r.checkKeptMembers(t, reply)
		})
	}
}

func (r *recording) checkResponsesReasoning(t *testing.T, reply *llm.Response) {
	t.Helper()
	var thoughts []content.Reasoning
	for _, b := range reply.Blocks {
		if th, ok := b.(content.Reasoning); ok {
			thoughts = append(thoughts, th)
		}
	}
	if len(thoughts) != len(r.Expected.Reasoning) {
		t.Fatalf("%d thoughts, want %d", len(thoughts), len(r.Expected.Reasoning))
	}
	sources := map[string]string{"text": "content", "summary": "summary", "encrypted": "encrypted_content", "empty": "summary"}
	for i, want := range r.Expected.Reasoning {
		th := thoughts[i]
		if th.String() != want.Text || th.Form().Seal.Data != want.Encrypted || th.Form().ID != want.ID || th.Source != sources[want.Form] {
			t.Errorf("thought %d: %+v, want %+v", i, th, want)
		}
		if len(want.Parts) > 1 && !slices.Equal(th.Parts, want.Parts) {
			t.Errorf("thought %d: parts %q, want %q", i, th.Parts, want.Parts)
		}
		if th.Form().Seal.Data != "" && (th.Form().Seal.Minted != "responses/"+r.Model || th.Form().Seal.Type != content.Encrypted) {
			t.Errorf("thought %d: sealed %v by %q", i, th.Form().Seal.Type, th.Form().Seal.Minted)
		}
	}
}

func (r *recording) checkResponsesCalls(t *testing.T, reply *llm.Response) {
	t.Helper()
	owned, _ := content.Attribute(reply.Blocks)
	if len(owned) != len(r.Expected.Tools) {
		t.Fatalf("%d calls, want %d", len(owned), len(r.Expected.Tools))
	}
	var thoughts []int
	for i, b := range reply.Blocks {
		if b.Kind() == content.KindReasoning {
			thoughts = append(thoughts, i)
		}
	}
	for i, want := range r.Expected.Tools {
		c := reply.Blocks[owned[i].Call].(content.ToolCall)
		if c.CallID != want.ID || c.Name != want.Name || c.Server != want.Server || want.Item != "" && c.Form().ID != want.Item {
			t.Errorf("call %d: %+v, want %+v", i, c, want)
		}
		if want.Raw != nil {
			if c.Arguments != *want.Raw && !sameJSON(c.Arguments, *want.Raw) {
				t.Errorf("call %d: arguments %s, want %s", i, c.Arguments, *want.Raw)
			}
		}
		if (len(owned[i].Reasoning) > 0) != want.Preceded {
			t.Errorf("call %d: thoughts %v, want some: %t", i, owned[i].Reasoning, want.Preceded)
		}
		for j, n := range want.Reasoning {
			if owned[i].Reasoning[j] != thoughts[n] {
				t.Errorf("call %d: thoughts %v, want number %d of %v", i, owned[i].Reasoning, n, thoughts)
			}
		}
	}
}

func (r *recording) checkKeptMembers(t *testing.T, reply *llm.Response) {
	t.Helper()
	var kinds []string
	for _, b := range reply.Blocks {
		kind := kindName(b)
		if b.Form().Type == "refusal" {
			kind = "refusal"
		}
		kinds = append(kinds, kind)
	}
	if !slices.Equal(kinds, r.Expected.Blocks) {
		t.Errorf("blocks %v, want %v", kinds, r.Expected.Blocks)
	}
	if reply.Text() != r.Expected.Text {
		t.Errorf("text %q, want %q", reply.Text(), r.Expected.Text)
	}
	u := reply.Usage
	if v, err := rawjson.Parse(u.Raw); len(u.Raw) > 0 && (err != nil || v.Get("input_tokens") == nil) {
		t.Errorf("raw usage %s, %v", u.Raw, err)
	}
	r.checkHead(t, reply)
}

// TestResponsesDoNotDependOnCuts: the network cuts where it likes, and
// a proxy may change line ends.
func TestResponsesDoNotDependOnCuts(t *testing.T) {
	for _, r := range recorded(t, "responses") {
		t.Run(r.File, func(t *testing.T) {
			t.Parallel()
			r.checkCuts(t)
		})
	}
}

// TestResponsesKeepsFinishedBlocksWhenCut ends each stream after each event.
func TestResponsesKeepsFinishedBlocksWhenCut(t *testing.T) {
	for _, r := range recorded(t, "responses") {
		if r.Container != "sse" {
			continue
		}
		full, _, _ := r.read(bytes.NewReader(r.body))
		var sent []byte
		finished := 0
		for i, frame := range r.events() {
			sent = append(sent, frame...)
			v := frameJSON(frame)
			if kind := v.Get("type").Text(); endsResponses(kind) || kind == "error" {
				break
			} else if kind == "response.output_item.done" {
				finished += max(1, len(slices.Collect(v.Get("item", "content").Elements())))
			}
			if v.Get("delta") != nil && (len(sent) > 64<<10 || !torture() && i%10 != 0) {
				continue // a long stream is ended at its items only
			}
			r.checkBroken(t, sent, full, finished)
		}
	}
}

// checkBroken reads a stream that ends too early: every block is as it is in the
// full response or known to be cut, and all that were finished are there.
func (r *recording) checkBroken(t *testing.T, sent []byte, full *llm.Response, finished int) {
	t.Helper()
	got, _, err := r.read(bytes.NewReader(sent))
	if !errors.Is(err, llm.ErrTruncated) {
		t.Fatalf("%s: after %d bytes: %v", r.File, len(sent), err)
	}
	whole := 0
	for i, b := range got.Blocks {
		if reflect.DeepEqual(b, full.Blocks[i]) {
			whole++
		} else if !b.Form().Incomplete {
			t.Fatalf("%s: after %d bytes block %d is %+v, want %+v", r.File, len(sent), i, b, full.Blocks[i])
		}
	}
	if whole < finished {
		t.Fatalf("%s: after %d bytes: %d whole blocks, want %d", r.File, len(sent), whole, finished)
	}
}

// TestResponsesStreamEqualsWholeResponse: the items of a stream, read as a response in one
// piece, have the same blocks.
func TestResponsesStreamEqualsWholeResponse(t *testing.T) {
	streams := 0
	for _, r := range recorded(t, "responses") {
		whole := r.whole()
		if r.Container != "sse" || whole.Get("status") == nil {
			continue
		}
		streams++
		stream, _, err := r.read(bytes.NewReader(r.body))
		one, _, err2 := r.read(bytes.NewReader(whole))
		if !reflect.DeepEqual(stream.Blocks, one.Blocks) || stream.Finish != one.Finish || (err == nil) != (err2 == nil) {
			t.Errorf("%s: as a stream (%v)\n%+v\nin one piece (%v)\n%+v", r.File, err, stream.Blocks, err2, one.Blocks)
		}
	}
	if streams < 5 {
		t.Errorf("only %d streams", streams)
	}
}

// TestResponsesReplaysRecordings holds replay to what the provider sent, after the
// blocks were stored.
func TestResponsesReplaysRecordings(t *testing.T) {
	for _, r := range recorded(t, "responses") {
		want := r.whole().Get("output")
		if r.Expected.Error != nil || want == nil {
			continue
		}
		reply, _, err := r.read(bytes.NewReader(r.body))
		if err != nil {
			t.Fatal(r.File, err)
		}
		stored := restored(t, reply.Blocks)
		r.checkReplayed(t, replayOf(r.target(), stored), want)
	}
}

// TestResponsesReplayPairs rebuilds what real clients sent next and were answered:
// every member of theirs is in what tract sends, in the same order, and the
// reasoning, which they dropped, stand before it.
func TestResponsesReplayPairs(t *testing.T) {
	replayPairs(t, recorded(t, "responses"), func(r *recording, reply *llm.Response, pair rawjson.Value) {
		items := slices.Collect(replayOf(r.target(), reply.Blocks).Elements())
		want := slices.Collect(pair.Get("assistant").Elements())
		before := len(items) - len(want)
		if before < 1 || items[0].Get("type").Text() != "reasoning" {
			t.Fatalf("%s: the thought is not kept: %s", r.File, items)
		}
		for i, w := range want {
			for key, value := range w.Members() {
				if have := items[before+i].Get(key); !rawjson.Equal(have, value) {
					t.Errorf("%s: item %d: %s is %s, want %s", r.File, i, key, have, value)
				}
			}
		}
	})
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
func (r *recording) whole() rawjson.Value {
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
		if endsResponses(v.Get("type").Text()) {
			whole.Merge(v.Get("response"))
		}
	}
	if items.Bytes().At(0) != nil {
		whole.Set("output", items.Bytes())
	}
	return whole.Bytes()
}

// endsResponses reports whether an event of this type ends a stream.
func endsResponses(kind string) bool {
	return slices.Contains([]string{"response.completed", "response.incomplete", "response.failed", "response.cancelled"}, kind)
}
