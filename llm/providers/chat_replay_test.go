package providers

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/tract-vcs/tract/internal/llm/framing"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/llm"
)

// TestChatReplaysRecordings holds replay to what the provider sent: by a target that
// nothing is known of to the letter, by its own as far as it takes that.
func TestChatReplaysRecordings(t *testing.T) {
	for _, r := range recorded(t, "chat") {
		if r.Container != "json" || r.Expected.Error != nil {
			continue
		}
		reply, _, err := r.read(bytes.NewReader(r.body))
		if err != nil {
			t.Fatal(r.File, err)
		}
		stored := restored(t, reply.Blocks)
		body, _ := rawjson.Parse(r.body)
		want := body.Get("choices").At(0).Get("message")
		r.checkReplayed(t, replayOf(mustTarget("chat", "chat", r.Model), stored), want)
		own := mustTarget("chat", r.Provider, r.Model)
		have := replayOf(own, stored)
		for key, v := range have.Members() {
			if key != "tool_calls" && !rawjson.Equal(v, want.Get(key)) {
				t.Errorf("%s: its own provider gets %s as %s, want %s", r.File, key, v, want.Get(key))
			}
		}
		for key, v := range want.Members() {
			documented := key == "content" || key == "tool_calls" || !own.Quirks.Strict || key == own.Quirks.ReasoningField
			if documented && !rawjson.IsEmpty(v) && have.Get(key) == nil {
				t.Errorf("%s: its own provider does not get %s", r.File, key)
			}
		}
	}
}

// TestChatStreamEqualsWholeResponse: a response cut into the chunks of a stream,
// one for each member of its message, gives the same blocks.
func TestChatStreamEqualsWholeResponse(t *testing.T) {
	for _, r := range recorded(t, "chat") {
		if r.Container != "json" || r.Expected.Error != nil {
			continue
		}
		body, _ := rawjson.Parse(r.body)
		body = rawjson.Compact(body)
		reply, _, err := r.read(bytes.NewReader(body))
		if err != nil {
			t.Fatal(r.File, err)
		}
		message := body.Get("choices").At(0).Get("message")
		var deltas []string
		for _, key := range []string{"reasoning_details", "reasoning", "reasoning_content", "executed_tools", "content", "refusal", "tool_calls", "images"} {
			if v := message.Get(key); v != nil {
				deltas = append(deltas, fmt.Sprintf("{%q:%s}", key, v))
			}
		}
		if message.Get("reasoning_details") != nil { // their copy comes beside them
			var o rawjson.Object
			o.Set("reasoning_details", message.Get("reasoning_details"))
			o.Set("reasoning", message.Get("reasoning"))
			deltas = append([]string{string(o.Bytes())}, deltas[2:]...)
		}
		stream, _, err := r.read(strings.NewReader(chatChunks(deltas...)))
		if err != nil {
			t.Fatal(r.File, err)
		}
		want := strings.ReplaceAll(summarizeChat(reply), reply.ID, stream.ID)
		if have := summarizeChat(stream); have != want {
			t.Errorf("%s as a stream says\n%s\nwant\n%s", r.File, have, want)
		}
	}
}

// TestChatReplaysStreams: what a stream said of reasoning and seals goes back
// with the same bytes, in the same fields.
func TestChatReplaysStreams(t *testing.T) {
	for _, r := range recorded(t, "chat") {
		if r.Container != "sse" {
			continue
		}
		reply, _, _ := r.read(bytes.NewReader(r.body))
		fields := map[string]string{}
		for event, err := range framing.ServerSentEvents(bytes.NewReader(r.body)) {
			v, bad := rawjson.Parse(event.Data)
			if err != nil || bad != nil {
				continue
			}
			d := v.Get("choices").At(0).Get("delta")
			for _, key := range []string{"reasoning_content", "reasoning", "reasoning_text", "reasoning_opaque"} {
				fields[key] += d.Get(key).Text()
			}
			if d.Get("content").Kind() == rawjson.KindString {
				fields["content"] += d.Get("content").Text()
			}
			for e := range d.Get("reasoning_details").Elements() {
				for _, key := range []string{"text", "summary", "data", "signature"} {
					fields["detail."+key] += e.Get(key).Text()
				}
			}
		}
		have := replayOf(mustTarget("chat", "chat", r.Model), reply.Blocks)
		got := map[string]string{}
		for key, v := range have.Members() {
			got[key] = v.Text()
		}
		for e := range have.Get("reasoning_details").Elements() {
			for _, key := range []string{"text", "summary", "data", "signature"} {
				got["detail."+key] += e.Get(key).Text()
			}
		}
		for key, text := range fields {
			if key == "content" && have.Get("content").Kind() == rawjson.KindArray {
				continue
			}
			if got[key] != text {
				t.Errorf("%s: %s goes back as %q, want %q", r.File, key, got[key], text)
			}
		}
	}
}

// TestChatReplayPairs rebuilds what real clients sent next, and were answered.
func TestChatReplayPairs(t *testing.T) {
	replayPairs(t, recorded(t, "chat"), func(r *recording, reply *llm.Response, pair rawjson.Value) {
		have := replayOf(r.target(), reply.Blocks)
		retyped := pair.Get("verdict").Text() == "partial" // one client made texts of summaries
		for want := range pair.Get("assistant").Elements() {
			for s := range stringsIn(want) {
				if !chatSays(have, s) && !(retyped && (s == "unknown" || s == "reasoning.text")) {
					t.Errorf("%s: %q is not in\n%s", r.File, s, have)
				}
			}
		}
	})
}

// chatSays reports whether a value has a string in it, as it is or as JSON.
func chatSays(v rawjson.Value, s string) bool {
	for text := range stringsIn(v) {
		if strings.Contains(text, s) || sameJSON(text, s) {
			return true
		}
	}
	return false
}
