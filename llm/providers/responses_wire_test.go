package providers

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"testing/iotest"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/llm/rawjson"
)

// TestResponsesFindsWhatIsThere holds the decoder to the answer key.
func TestResponsesFindsWhatIsThere(t *testing.T) {
	for _, r := range responsesRecordings(t) {
		t.Run(r.File, func(t *testing.T) {
			reply, err := r.read(bytes.NewReader(r.body))
			if (err != nil) != (r.Expected.Error != nil) {
				t.Fatalf("error: %v, want %v", err, r.Expected.Error)
			}
			if err != nil {
				if e := wantAPIError(t, err); e.Message != r.Expected.Error.Message {
					t.Errorf("error %q, want %q", e.Message, r.Expected.Error.Message)
				}
			}
			r.checkThoughts(t, reply)
			r.checkCalls(t, reply)
			r.checkRest(t, reply)
		})
	}
}

func (r *responsesRecording) checkThoughts(t *testing.T, reply *llm.Response) {
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
		if th.String() != want.Text || th.Seal.Data != want.Encrypted || th.ID != want.ID || th.Source != sources[want.Form] {
			t.Errorf("thought %d: %+v, want %+v", i, th, want)
		}
		if len(want.Parts) > 1 && !slices.Equal(th.Parts, want.Parts) {
			t.Errorf("thought %d: parts %q, want %q", i, th.Parts, want.Parts)
		}
		if th.Seal.Data != "" && (th.Seal.Minted != "responses/"+r.Model || th.Seal.Type != content.Encrypted) {
			t.Errorf("thought %d: sealed %v by %q", i, th.Seal.Type, th.Seal.Minted)
		}
	}
}

func (r *responsesRecording) checkCalls(t *testing.T, reply *llm.Response) {
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
		if c.CallID != want.ID || c.Name != want.Name || c.Server != want.Server || want.Item != "" && c.ID != want.Item {
			t.Errorf("call %d: %+v, want %+v", i, c, want)
		}
		if want.Raw != nil {
			have, err := rawjson.Parse([]byte(c.Arguments))
			v, err2 := rawjson.Parse([]byte(*want.Raw))
			if same := err == nil && err2 == nil && rawjson.Equal(have, v); !same && c.Arguments != *want.Raw {
				t.Errorf("call %d: arguments %s, want %s", i, c.Arguments, *want.Raw)
			}
		}
		if (len(owned[i].Thoughts) > 0) != want.Preceded {
			t.Errorf("call %d: thoughts %v, want some: %t", i, owned[i].Thoughts, want.Preceded)
		}
		for j, n := range want.Reasoning {
			if owned[i].Thoughts[j] != thoughts[n] {
				t.Errorf("call %d: thoughts %v, want number %d of %v", i, owned[i].Thoughts, n, thoughts)
			}
		}
	}
}

func (r *responsesRecording) checkRest(t *testing.T, reply *llm.Response) {
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
	n := func(key string) int64 {
		if v := r.Expected.Usage[key]; v != nil {
			return *v
		}
		return 0
	}
	u := reply.Usage
	if u.Input != n("input_total") || u.Output != n("output_total") || u.Reasoning != n("reasoning") || u.Cached != n("cached") || u.CacheWrite != n("cache_write") {
		t.Errorf("usage %+v, want %v", u, u.Raw)
	}
	if v, err := rawjson.Parse(u.Raw); len(u.Raw) > 0 && (err != nil || v.Get("input_tokens") == nil) {
		t.Errorf("raw usage %s, %v", u.Raw, err)
	}
	if want := r.Expected.Finish; want != nil && reply.Finish != *want {
		t.Errorf("finish %q, want %q", reply.Finish, *want)
	}
	if reply.ID != r.Expected.ID {
		t.Errorf("id %q, want %q", reply.ID, r.Expected.ID)
	}
}

// TestResponsesComeTheSameHoweverTheyAreCut: the network cuts where it likes, and
// a proxy may change line ends.
func TestResponsesComeTheSameHoweverTheyAreCut(t *testing.T) {
	for _, r := range responsesRecordings(t) {
		t.Run(r.File, func(t *testing.T) {
			t.Parallel()
			r.checkCuts(t)
		})
	}
}

func (r *responsesRecording) checkCuts(t *testing.T) {
	t.Helper()
	reply, err := r.read(bytes.NewReader(r.body))
	want := all(reply, err)
	check := func(body io.Reader, how string, at ...any) {
		t.Helper()
		if got, err := r.read(body); all(got, err) != want {
			t.Fatalf("%s:\n%q\nwant\n%q", fmt.Sprintf(how, at...), all(got, err), want)
		}
	}
	check(iotest.OneByteReader(bytes.NewReader(r.body)), "byte by byte")
	if r.Container == "sse" {
		unix := bytes.ReplaceAll(r.body, []byte("\r\n"), []byte("\n"))
		check(bytes.NewReader(unix), "LF")
		check(bytes.NewReader(bytes.ReplaceAll(unix, []byte("\n"), []byte("\r\n"))), "CRLF")
	}
	if len(r.body) > 8<<10 {
		return
	}
	step := 1
	if testing.Short() {
		step = 97
	}
	for i := 0; i < len(r.body); i += step {
		check(io.MultiReader(bytes.NewReader(r.body[:i]), bytes.NewReader(r.body[i:])), "cut at %d", i)
	}
}

// TestResponsesNeverLoseAFinishedBlock ends each stream after each event.
func TestResponsesNeverLoseAFinishedBlock(t *testing.T) {
	for _, r := range responsesRecordings(t) {
		if r.Container != "sse" {
			continue
		}
		full, _ := r.read(bytes.NewReader(r.body))
		var sent []byte
		finished := 0
		for _, frame := range r.events() {
			sent = append(sent, frame...)
			v := frameJSON(frame)
			if kind := v.Get("type").Text(); responsesEnds[kind] != "" || kind == "error" {
				break
			} else if kind == "response.output_item.done" {
				finished += len((&responses{output: &output{target: r.target()}}).blocks(v.Get("item")))
			}
			if len(sent) > 64<<10 && v.Get("delta") != nil {
				continue // a long stream is ended at its items only
			}
			r.checkBroken(t, sent, full, finished)
		}
	}
}

// checkBroken reads a stream that ends too early: every block is as it is in the
// full response or known to be cut, and all that were finished are there.
func (r *responsesRecording) checkBroken(t *testing.T, sent []byte, full *llm.Response, finished int) {
	t.Helper()
	got, err := r.read(bytes.NewReader(sent))
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

// TestResponsesStreamAndJSONAreOne: the items of a stream, read as a response in one
// piece, have the same blocks.
func TestResponsesStreamAndJSONAreOne(t *testing.T) {
	streams := 0
	for _, r := range responsesRecordings(t) {
		whole := r.whole()
		if r.Container != "sse" || whole.Get("status") == nil {
			continue
		}
		streams++
		stream, err := r.read(bytes.NewReader(r.body))
		one, err2 := r.read(bytes.NewReader(whole))
		if !reflect.DeepEqual(stream.Blocks, one.Blocks) || stream.Finish != one.Finish || (err == nil) != (err2 == nil) {
			t.Errorf("%s: as a stream (%v)\n%+v\nin one piece (%v)\n%+v", r.File, err, stream.Blocks, err2, one.Blocks)
		}
	}
	if streams < 5 {
		t.Errorf("only %d streams", streams)
	}
}

// TestResponsesGoBackAsTheyCame holds replay to what the provider sent, after the
// blocks were stored.
func TestResponsesGoBackAsTheyCame(t *testing.T) {
	for _, r := range responsesRecordings(t) {
		want := r.whole().Get("output")
		if r.Expected.Error != nil || want == nil {
			continue
		}
		reply, err := r.read(bytes.NewReader(r.body))
		if err != nil {
			t.Fatal(r.File, err)
		}
		var stored []content.Block
		for _, b := range reply.Blocks {
			again, err := content.Decode(content.Encode(b))
			if err != nil {
				t.Fatal(r.File, err)
			}
			stored = append(stored, again)
		}
		have := replayResponses(r.target(), stored)
		if !rawjson.Equal(have, want) {
			t.Errorf("%s goes back as\n%s\nwant\n%s", r.File, have, want)
		}
		for s := range texts(want) {
			if !bytes.Contains(have, rawjson.AppendString(nil, s)) {
				t.Errorf("%s: %q is not in what goes back", r.File, s)
			}
		}
	}
}

// TestResponsesReplayPairs rebuilds what real clients sent next and were answered:
// every member of theirs is in what tract sends, in the same order, and the
// thoughts, which they dropped, stand before it.
func TestResponsesReplayPairs(t *testing.T) {
	dir, ok := responsesShared(t)
	if !ok {
		t.Skip("no replay pairs")
	}
	byFile := map[string]responsesRecording{}
	for _, r := range responsesRecordings(t) {
		byFile[r.File] = r
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
		r, ok := byFile[pair.Get("response").Text()]
		if !ok {
			continue
		}
		pairs++
		r.checkPair(t, slices.Collect(pair.Get("assistant").Elements()))
	}
	if pairs == 0 {
		t.Error("no pair was found")
	}
}

func (r *responsesRecording) checkPair(t *testing.T, want []rawjson.Value) {
	t.Helper()
	reply, err := r.read(bytes.NewReader(r.body))
	if err != nil {
		t.Fatal(err)
	}
	items := slices.Collect(replayResponses(r.target(), reply.Blocks).Elements())
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
}
