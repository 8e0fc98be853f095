package providers

import (
	"encoding/json"
	"iter"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
)

// inOneBuffer gives the values of a list, each in the memory of the one before it.
func inOneBuffer(list iter.Seq[rawjson.Value]) iter.Seq[json.RawMessage] {
	return func(yield func(json.RawMessage) bool) {
		var buf []byte
		for v := range list {
			clear(buf[:cap(buf)])
			if buf = append(buf[:0], v...); !yield(buf) {
				return
			}
		}
	}
}

// TestDecodeMessagesEqualsDecodeRequest are those of the whole request.
func TestDecodeMessagesEqualsDecodeRequest(t *testing.T) {
	for _, c := range []struct{ api, member, list string }{
		{"chat", "messages", `[{"role":"system","content":"Be brief."},{"role":"user","content":"Run it."},
			{"role":"assistant","content":null,"tool_calls":[{"type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"g","arguments":"{}"}}]},
			{"role":"tool","tool_call_id":"a","content":"1"},{"role":"tool","tool_call_id":"b","content":"2"},{"role":"user","content":"And?"},
			{"role":"assistant","content":"Done.","function_call":{"name":"h","arguments":"{}"}},{"role":"function","name":"h","content":"3"}]`},
		{"messages", "messages", `[{"role":"user","content":"Run it."},{"role":"assistant","content":[{"type":"thinking","thinking":"Hm.","signature":"s"},
			{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"},{"type":"text","text":"And?"}]}]`},
		{"responses", "input", `[{"role":"user","content":"Run it."},{"type":"reasoning","summary":[],"encrypted_content":"s"},
			{"type":"function_call","call_id":"a","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"a","output":"1"},
			{"role":"assistant","content":[{"type":"output_text","text":"Done."}]}]`},
	} {
		list := rawjson.Value(c.list)
		req, err := DecodeRequest(c.api, "", []byte(`{"model":"m-1","`+c.member+`":`+c.list+`}`))
		if err != nil {
			t.Fatal(err)
		}
		var have []content.Message
		for m, err := range DecodeMessages(c.api, "", "m-1", inOneBuffer(list.Elements())) {
			if err != nil {
				t.Fatal(c.api, err)
			}
			have = append(have, m)
		}
		if !reflect.DeepEqual(have, req.Messages) {
			t.Errorf("%s: have %+v\nwant %+v", c.api, have, req.Messages)
		}
		broken := slices.Collect(list.Elements())
		broken = append(broken[:2:2], rawjson.Value(`7`), rawjson.Value(`{"role":"user","content":"Go on."}`))
		var after []string // each message, and each error
		for m, err := range DecodeMessages(c.api, "", "m-1", inOneBuffer(slices.Values(broken))) {
			if err != nil && strings.HasPrefix(err.Error(), "decode message: "+c.api+": want ") {
				after = append(after, "an error")
				continue
			}
			after = append(after, m.Role.String())
		}
		want := []string{have[0].Role.String(), have[1].Role.String(), "an error", "user"}
		if !slices.Equal(after, want) {
			t.Errorf("%s: a number among others gives %v, want %v", c.api, after, want)
		}
	}
	for _, err := range DecodeMessages("gemini", "", "", inOneBuffer(slices.Values([]rawjson.Value{}))) {
		if err == nil || !strings.Contains(err.Error(), "gemini cannot be read one by one") {
			t.Errorf("a dialect that is read whole gives %v", err)
		}
	}
}
