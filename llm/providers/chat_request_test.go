package providers

import (
	"reflect"
	"testing"

	"github.com/tract-vcs/tract/internal/llm/rawjson"
)

// TestPlainWordsAreReadAsByTheLongWay: the short way for messages of words alone
// gives the same blocks, or leaves the message to the long one.
func TestPlainWordsAreReadAsByTheLongWay(t *testing.T) {
	target := mustTarget("chat", "", "")
	short := 0
	for _, words := range []string{
		"", " ", "\n\t", "x", " a b \n", "naïve \u2028 😀", "\xff", "a\x00b", "1 > 0", "`code`\n```\nx\n", "a < b", "<think>Hm.</think>\nYes.",
		"Hm.\n</think>\nYes.", "\n\n<thinking>", "[masked:x:00]", `{"a":1}`, "thought\nanswer", "\r\n...\r\n",
	} {
		for _, role := range []string{"user", "assistant"} {
			var m rawjson.Object
			m.SetString("role", role)
			m.SetString("content", words)
			quick, slow := chatRequest{target: target, n: 7}, chatRequest{target: target, n: 7}
			if quick.plain(m.Bytes()) {
				short++
			} else if err := quick.message(m.Bytes()); err != nil {
				t.Fatal(err)
			}
			if err := slow.long(m.Bytes()); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(quick.list, slow.list) {
				t.Errorf("%s %q: %+v, the long way %+v", role, words, quick.list, slow.list)
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
		q := chatRequest{target: target}
		if q.plain(rawjson.Value(text)) || q.list != nil {
			t.Errorf("%s is plain", text)
		}
	}
}
