package providers

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/llm"
)

// TestMessagesReadsRecordings holds the decoder to the answer key: every thought
// and seal, the text, the calls, what led to them, and the cost.
func TestMessagesReadsRecordings(t *testing.T) {
	for _, r := range recorded(t, "messages") {
		t.Run(r.File, func(t *testing.T) {
			reply, unfinished, err := r.read(bytes.NewReader(r.body))
			if (err != nil) != (r.Expected.Error != nil) {
				t.Fatalf("error: %v, want %v", err, r.Expected.Error)
			}
			r.checkText(t, reply)
			r.checkCalls(t, reply, unfinished)
			r.checkHead(t, reply)
		})
	}
}

func (r *recording) checkText(t *testing.T, reply *llm.Response) {
	t.Helper()
	var thoughts []content.Reasoning
	var kinds []string
	text := ""
	for _, b := range reply.Blocks {
		if kindName(b) == "text" {
			text += b.String()
		}
		if th, ok := b.(content.Reasoning); ok {
			thoughts = append(thoughts, th)
		}
		if k := kindName(b); k != "other:container" {
			kinds = append(kinds, k)
		}
	}
	if withoutSpace(text) != withoutSpace(r.Expected.Text) {
		t.Errorf("text %q, want %q", text, r.Expected.Text)
	}
	if len(thoughts) != len(r.Expected.Reasoning) {
		t.Fatalf("%d thoughts, want %d", len(thoughts), len(r.Expected.Reasoning))
	}
	for i, want := range r.Expected.Reasoning {
		if th := thoughts[i]; th.Text != want.Text || th.Form().Seal.Data != want.Signature+want.Encrypted {
			t.Errorf("thought %d: %q sealed %q, want %q sealed %q%q", i, th.Text, th.Form().Seal.Data, want.Text, want.Signature, want.Encrypted)
		} else if minted := r.dialect() + "/" + r.Model; th.Form().Seal.Data != "" && th.Form().Seal.Minted != minted {
			t.Errorf("thought %d: minted by %q, want %q", i, th.Form().Seal.Minted, minted)
		}
	}
	if r.Expected.Blocks != nil && r.Expected.Error == nil && !reflect.DeepEqual(kinds, r.Expected.Blocks) && len(kinds)+len(r.Expected.Blocks) > 0 {
		t.Errorf("blocks %v, want %v", kinds, r.Expected.Blocks)
	}
}

func (r *recording) checkCalls(t *testing.T, reply *llm.Response, unfinished []content.ToolCall) {
	t.Helper()
	blocks := reply.Blocks
	for _, c := range unfinished {
		blocks = append(blocks, c)
	}
	owned, _ := content.Attribute(blocks)
	if len(owned) != len(r.Expected.Tools) {
		t.Fatalf("%d calls, want %d", len(owned), len(r.Expected.Tools))
	}
	for i, want := range r.Expected.Tools {
		c := blocks[owned[i].Call].(content.ToolCall)
		if c.CallID != want.ID || c.Name != want.Name || c.Server != want.Server {
			t.Errorf("call %d: %+v, want %+v", i, c, want)
		}
		var have any = c.Arguments
		if want.Arguments == nil && want.Raw != nil {
			want.Arguments = *want.Raw
		} else if c.Arguments == "" {
			have = map[string]any{}
		} else if err := json.Unmarshal([]byte(c.Arguments), &have); err != nil {
			t.Errorf("call %d: %v", i, err)
		}
		if !reflect.DeepEqual(have, want.Arguments) {
			t.Errorf("call %d: arguments %v, want %v", i, have, want.Arguments)
		}
		if (len(owned[i].Reasoning) > 0) != want.Preceded {
			t.Errorf("call %d: thoughts %v, want some: %t", i, owned[i].Reasoning, want.Preceded)
		}
	}
}

func (r *recording) checkHead(t *testing.T, reply *llm.Response) {
	t.Helper()
	n := func(key string) int64 {
		if v := r.Expected.Usage[key]; v != nil {
			return *v
		}
		return 0
	}
	input, output := n("input_total"), n("output_total")
	if n("iterations_input") > 0 {
		input, output = max(input, n("iterations_input")), n("iterations_output")
	}
	u := reply.Usage
	if u.Input != input || u.Output != output || u.Reasoning != n("reasoning") || u.Cached != n("cached") || u.CacheWrite != n("cache_write") {
		t.Errorf("usage %+v, want input %d output %d of %s", u, input, output, u.Raw)
	}
	if want := r.Expected.Finish; want != nil && reply.Finish != *want {
		t.Errorf("finish %q, want %q", reply.Finish, *want)
	}
	if reply.ID != r.Expected.ID && r.Expected.ID != "" {
		t.Errorf("id %q, want %q", reply.ID, r.Expected.ID)
	}
}

// TestMessagesDoNotDependOnCuts: the network cuts where it likes, and
// a proxy may change line ends.
func TestMessagesDoNotDependOnCuts(t *testing.T) {
	for _, r := range recorded(t, "messages") {
		t.Run(r.File, func(t *testing.T) {
			t.Parallel()
			r.checkCuts(t)
		})
	}
}

// TestMessagesKeepsFinishedBlocksWhenCut ends each stream after each event.
func TestMessagesKeepsFinishedBlocksWhenCut(t *testing.T) {
	for _, r := range recorded(t, "messages") {
		if r.Container != "sse" {
			continue
		}
		events := r.events()
		full, _, _ := r.read(bytes.NewReader(r.body))
		begun, stopped := 0, 0
		for i := range events {
			begun += bytes.Count(events[i], []byte(`"type":"content_block_start"`))
			stopped += bytes.Count(events[i], []byte(`"type":"content_block_stop"`))
			if bytes.Contains(events[i], []byte(`"type":"message_stop"`)) {
				break
			}
			got, _, err := r.read(bytes.NewReader(bytes.Join(events[:i+1], nil)))
			if r.Expected.Error == nil && !errors.Is(err, llm.ErrTruncated) {
				t.Fatalf("%s: after event %d: %v", r.File, i, err)
			}
			whole := 0
			for j, b := range got.Blocks {
				if b.Form().Incomplete {
					continue
				}
				if whole++; !bytes.Equal(content.Encode(b), content.Encode(full.Blocks[j])) {
					t.Fatalf("%s: after event %d block %d is %+v, want %+v", r.File, i, j, b, full.Blocks[j])
				}
			}
			if r.Expected.Error == nil && begun == len(full.Blocks) && whole < stopped {
				t.Fatalf("%s: after event %d: %d whole blocks, want %d", r.File, i, whole, stopped)
			}
		}
	}
}

// TestMessagesReplaysRecordings holds replay to what the provider sent.
func TestMessagesReplaysRecordings(t *testing.T) {
	for _, r := range recorded(t, "messages") {
		if r.Container != "json" {
			continue
		}
		reply, _, err := r.read(bytes.NewReader(r.body))
		if err != nil {
			t.Fatal(r.File, err)
		}
		stored := restored(t, reply.Blocks)
		body, _ := rawjson.Parse(r.body)
		want := body.Get("content")
		tt := r.target()
		have := tt.Replay(stored)
		if want.At(0) == nil && have == nil {
			continue
		}
		if r.checkReplayed(t, have.Get("content"), want); have.Get("role").Text() != "assistant" {
			t.Errorf("%s goes back as the words of %s", r.File, have.Get("role"))
		}
	}
}

// TestMessagesReplayPairs rebuilds what real clients sent next, and were answered.
func TestMessagesReplayPairs(t *testing.T) {
	replayPairs(t, recorded(t, "messages"), func(r *recording, reply *llm.Response, pair rawjson.Value) {
		have := replayOf(r.target(), reply.Blocks).Get("content")
		for i, want := range rawjson.Indexed(pair.Get("assistant").At(0).Get("content")) {
			// Clients leave out what they do not know, such as caller.
			for key, value := range want.Members() {
				if !rawjson.Equal(have.At(i).Get(key), value) {
					t.Errorf("%s: block %d: %s is %s, want %s", r.File, i, key, have.At(i).Get(key), value)
				}
			}
		}
	})
}
