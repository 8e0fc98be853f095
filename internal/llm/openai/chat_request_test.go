package openai

import (
	"reflect"
	"testing"

	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
)

// TestReadPlainTextMessageEqualsReadMessage: the short way for messages of text alone
// gives the same blocks, or leaves the message to the long one.
func TestReadPlainTextMessageEqualsReadMessage(t *testing.T) {
	target := wire.NewTarget(Chat, "chat", true, wire.Quirks{})
	short := 0
	for _, texts := range []string{
		"", " ", "\n\t", "x", " a b \n", "naïve \u2028 😀", "\xff", "a\x00b", "1 > 0", "`code`\n```\nx\n", "a < b", "<think>Hm.</think>\nYes.",
		"Hm.\n</think>\nYes.", "\n\n<thinking>", "[masked:x:00]", `{"a":1}`, "thought\nanswer", "\r\n...\r\n",
	} {
		for _, role := range []string{"user", "assistant"} {
			var m rawjson.Object
			m.SetString("role", role)
			m.SetString("content", texts)
			quick, slow := ChatMessageReader{Target: target, n: 7}, ChatMessageReader{Target: target, n: 7}
			if quick.tryReadPlainTextMessage(m.Bytes()) {
				short++
			} else if err := quick.Next(m.Bytes()); err != nil {
				t.Fatal(err)
			}
			if err := slow.readMessage(m.Bytes()); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(quick.Messages(), slow.Messages()) {
				t.Errorf("%s %q: %+v, the long way %+v", role, texts, *quick.Messages(), *slow.Messages())
			}
		}
	}
	if short < 20 {
		t.Errorf("only %d went the short way", short)
	}
	for _, text := range []string{
		`{"role":"user","content":"x","name":"Ann"}`, `{"role":"user","content":["x"]}`, `{"role":"system","content":"x"}`,
		`{"role":"tool","content":"x"}`, `{"role":"user","role":"user"}`, `{"content":"x","content":"y"}`, `{"content":"x"}`,
	} {
		q := ChatMessageReader{Target: target}
		if q.tryReadPlainTextMessage(rawjson.Value(text)) || *q.Messages() != nil {
			t.Errorf("%s is plain", text)
		}
	}
}
