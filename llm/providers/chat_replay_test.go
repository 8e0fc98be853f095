package providers

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/llm/rawjson"
)

// TestChatGoesBackAsItCame holds replay to what the provider sent: by a target that
// nothing is known of to the letter, by its own as far as it takes that.
func TestChatGoesBackAsItCame(t *testing.T) {
	for _, r := range chatRecordings(t) {
		if r.Container != "json" || r.Expected.Error != nil {
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
		body, _ := rawjson.Parse(r.body)
		want := body.Get("choices").At(0).Get("message")
		if have := replayChat(chatTarget("chat", r.Model), stored, false); !rawjson.Equal(have, want) {
			t.Errorf("%s goes back as\n%s\nwant\n%s", r.File, have, want)
		} else {
			for s := range chatTexts(want) {
				if !bytes.Contains(have, rawjson.AppendString(nil, s)) {
					t.Errorf("%s: %q is not in what goes back", r.File, s)
				}
			}
		}
		own := chatTarget(r.Provider, r.Model)
		have := replayChat(own, stored, false)
		for key, v := range have.Members() {
			if key != "tool_calls" && !rawjson.Equal(v, want.Get(key)) {
				t.Errorf("%s: its own provider gets %s as %s, want %s", r.File, key, v, want.Get(key))
			}
		}
		for key, v := range want.Members() {
			documented := key == "content" || key == "tool_calls" || !own.profile.wire.strict || key == own.profile.wire.thought
			if documented && !hollow(v) && have.Get(key) == nil {
				t.Errorf("%s: its own provider does not get %s", r.File, key)
			}
		}
	}
}

// TestChatStreamsSayWhatResponsesSay: a response cut into the chunks of a stream,
// one for each member of its message, gives the same blocks.
func TestChatStreamsSayWhatResponsesSay(t *testing.T) {
	for _, r := range chatRecordings(t) {
		if r.Container != "json" || r.Expected.Error != nil {
			continue
		}
		body, _ := rawjson.Parse(r.body)
		body = rawjson.Compact(body)
		reply, err := r.read(bytes.NewReader(body))
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
		stream, err := r.read(strings.NewReader(chatChunks(deltas...)))
		if err != nil {
			t.Fatal(r.File, err)
		}
		want := strings.ReplaceAll(chatSaid(reply), reply.ID, stream.ID)
		if have := chatSaid(stream); have != want {
			t.Errorf("%s as a stream says\n%s\nwant\n%s", r.File, have, want)
		}
	}
}

// TestChatStreamsGoBackWhole: what a stream said of thoughts and seals goes back
// with the same bytes, in the same fields.
func TestChatStreamsGoBackWhole(t *testing.T) {
	for _, r := range chatRecordings(t) {
		if r.Container != "sse" {
			continue
		}
		reply, _ := r.read(bytes.NewReader(r.body))
		fields := map[string]string{}
		for event, err := range llm.ServerSent(bytes.NewReader(r.body)) {
			v, bad := rawjson.Parse(event.Data)
			if err != nil || bad != nil {
				continue
			}
			d := v.Get("choices").At(0).Get("delta")
			for _, key := range append(slices.Clone(chatFields), "reasoning_opaque") {
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
		have := replayChat(chatTarget("chat", r.Model), reply.Blocks, false)
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
	dir, ok := chatShared(t)
	if !ok {
		t.Skip("no replay pairs without the shared recordings")
	}
	byFile := map[string]chatRecording{}
	for _, r := range chatRecordings(t) {
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
		if !ok || pair.Get("api").Text() != "chat" {
			continue
		}
		pairs++
		reply, err := r.read(bytes.NewReader(r.body))
		if err != nil {
			t.Fatal(err)
		}
		have := replayChat(chatTarget(r.Provider, r.Model), reply.Blocks, false)
		retyped := pair.Get("verdict").Text() == "partial" // one client made texts of summaries
		for want := range pair.Get("assistant").Elements() {
			for s := range chatTexts(want) {
				if !chatSays(have, s) && !(retyped && (s == "unknown" || s == "reasoning.text")) {
					t.Errorf("%s: %q is not in\n%s", r.File, s, have)
				}
			}
		}
	}
	if pairs < 15 {
		t.Errorf("%d pairs", pairs)
	}
}

// chatSays tells whether a value has a string in it, as it is or as JSON.
func chatSays(v rawjson.Value, s string) bool {
	for text := range chatTexts(v) {
		if strings.Contains(text, s) || chatSameJSON(text, s) {
			return true
		}
	}
	return false
}

func chatSameJSON(a, b string) bool {
	x, err := rawjson.Parse([]byte(a))
	y, bad := rawjson.Parse([]byte(b))
	return err == nil && bad == nil && rawjson.Equal(x, y)
}
