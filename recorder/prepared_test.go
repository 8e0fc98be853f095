package recorder

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/llm"
)

// TestMasksDoNotDependOnEarlierBodies: a body is masked as if it were the first, also where a
// secret begins in what an earlier body had, or an earlier body had one.
func TestMasksDoNotDependOnEarlierBodies(t *testing.T) {
	const token = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
	long := strings.Repeat("some words of a long conversation. ", 10_000)
	mask := func(c *committer, text string) []byte { return (&exchange{c: c}).maskRequest([]byte(text)) }
	last := newCommitter(nil, Options{})
	for i, text := range []string{
		long, long + token[:20], long + token, long + token + long, long + "other", long[:50_000] + " " + token + " " + long, long, token, "", long + token[:20] + "!",
	} {
		fresh := mask(newCommitter(nil, Options{}), text)
		if have := mask(last, text); !bytes.Equal(have, fresh) {
			t.Errorf("body %d is masked in another way than alone", i)
		}
		if bytes.Contains(fresh, []byte(token)) {
			t.Errorf("body %d has the secret", i)
		}
	}
}

// TestPreparedRequestsEqualUnprepared: what the last request of a session was compared by does not change
// what the next one is compared by, be it longer, shorter or another one.
func TestPreparedRequestsEqualUnprepared(t *testing.T) {
	conversation := func(turns, changed int) (messages []content.Message) {
		for n := range turns {
			text := fmt.Sprint("question ", n)
			if n == changed {
				text = "changed"
			}
			call := content.ToolCall{CallID: fmt.Sprint("call_", n), Name: "look", Arguments: fmt.Sprintf(`{"n":%d}`, n)}
			messages = append(messages, content.Message{Role: content.RoleUser, Blocks: []content.Block{content.User(text)}},
				content.Message{Role: content.RoleAssistant, Blocks: []content.Block{content.Assistant("I look."), call}},
				content.Message{Role: content.RoleTool, Blocks: []content.Block{content.ToolResult{CallID: call.CallID, Text: "green"}}})
		}
		return messages
	}
	x := newIndex(nil, "", true)
	last := &preparedMessages{}
	for _, c := range [][2]int{{1, -1}, {3, -1}, {4, -1}, {9, 8}, {10, 2}, {12, 2}, {5, -1}, {5, 4}, {0, -1}, {6, -1}} {
		messages := conversation(c[0], c[1])
		alone, after := &clientRequest{request: &llm.Request{Messages: messages}}, &clientRequest{request: &llm.Request{Messages: messages}}
		if _, err := alone.prepare(t.Context(), x, &preparedMessages{}); err != nil {
			t.Fatal(err)
		}
		next, err := after.prepare(t.Context(), x, last)
		if err != nil {
			t.Fatal(err)
		}
		for i := range after.entries {
			after.entries[i].Ref = after.entries[i].Key // as when it is committed
		}
		last = next
		for i := range alone.entries {
			alone.entries[i].Ref = alone.entries[i].Key
		}
		if !reflect.DeepEqual(alone.entries, after.entries) || !reflect.DeepEqual(alone.masked, after.masked) || !reflect.DeepEqual(alone.externalIDs, after.externalIDs) {
			t.Errorf("%v: compared by other entries than alone", c)
		}
		more := conversation(1, -1)
		if !reflect.DeepEqual(alone.builder.Add(more, nil), after.builder.Add(more, nil)) {
			t.Errorf("%v: what follows is compared by other entries than alone", c)
		}
	}
}
