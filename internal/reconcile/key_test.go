package reconcile

import (
	"testing"

	"github.com/tract-vcs/tract/content"
)

func TestCanonical(t *testing.T) {
	for _, same := range [][]string{
		{`{"a":1,"b":[true,null]}`, ` {"b" : [ true , null ], "a": 1.0}`, `{"b":[true,null],"a":1e0,"cache_control":{"type":"ephemeral"}}`},
		{`{"s":"\u00e9"}`, `{"s":"é"}`},
		{``, `{}`, ` `},
		{`no JSON`, ` no JSON `},
	} {
		for _, text := range same {
			if canonicalJSON(text) != canonicalJSON(same[0]) {
				t.Errorf("%q is not %q", canonicalJSON(text), canonicalJSON(same[0]))
			}
		}
	}
	for _, other := range [][2]string{{`{"a":1}`, `{"a":"1"}`}, {`[1,2]`, `[2,1]`}, {`{"a":1}`, `{"b":1}`}, {`{"s":"a b"}`, `{"s":"ab"}`}} {
		if canonicalJSON(other[0]) == canonicalJSON(other[1]) {
			t.Errorf("%q is %q", other[0], other[1])
		}
	}
}

// TestKeysTellConversationsApart has one conversation in several forms, and others
// that are not the same.
func TestKeysTellConversationsApart(t *testing.T) {
	say := func(role content.Role, blocks ...content.Block) content.Message {
		return content.Message{Role: role, Blocks: blocks}
	}
	call := func(id, arguments string) content.Block {
		return content.ToolCall{CallID: id, Name: "look", Arguments: arguments}
	}
	result := func(id, text string) content.Block { return content.ToolResult{CallID: id, Text: text} }
	key := func(messages ...content.Message) string {
		list := new(Builder).Add(messages, nil)
		return list[len(list)-1].Key.String()
	}
	user, assistant, tool := content.RoleUser, content.RoleAssistant, content.RoleTool
	base := key(say(user, content.User("Q")), say(assistant, content.Assistant("I look."), call("1", `{"a":1}`), call("2", `{"a":2}`)), say(tool, result("1", "x"), result("2", "y")))
	for name, same := range map[string]string{
		"other ids":         key(say(user, content.User("Q ")), say(assistant, content.Assistant("I look."), call("8", `{"a":1}`), call("9", `{"a":2}`)), say(tool, result("8", "x"), result("9", "y"))),
		"another order":     key(say(user, content.User("Q")), say(assistant, call("2", `{"a":2}`), content.Assistant("I look.\n"), call("1", `{"a":1}`)), say(tool, result("2", "y"), result("1", "x"))),
		"a thought":         key(say(user, content.User("Q")), say(assistant, content.Reasoning{Text: "hm"}, content.Assistant("I look."), call("1", `{"a":1}`), call("2", `{"a":2}`)), say(tool, result("1", "x"), result("2", "y"))),
		"cut into messages": key(say(user, content.User("Q")), say(assistant, content.Assistant("I "), content.Assistant("look.")), say(assistant, call("1", `{"a":1}`), call("2", `{"a":2}`)), say(tool, result("1", "x")), say(tool, result("2", "y"))),
	} {
		if same != base {
			t.Errorf("%s: another key", name)
		}
	}
	for name, other := range map[string]string{
		"results exchanged": key(say(user, content.User("Q")), say(assistant, content.Assistant("I look."), call("1", `{"a":1}`), call("2", `{"a":2}`)), say(tool, result("1", "y"), result("2", "x"))),
		"a result less":     key(say(user, content.User("Q")), say(assistant, content.Assistant("I look."), call("1", `{"a":1}`), call("2", `{"a":2}`)), say(tool, result("1", "x"))),
		"other words":       key(say(user, content.User("Q?")), say(assistant, content.Assistant("I look."), call("1", `{"a":1}`), call("2", `{"a":2}`)), say(tool, result("1", "x"), result("2", "y"))),
		"another speaker":   key(say(assistant, content.Assistant("Q")), say(assistant, content.Assistant("I look."), call("1", `{"a":1}`), call("2", `{"a":2}`)), say(tool, result("1", "x"), result("2", "y"))),
	} {
		if other == base {
			t.Errorf("%s: the same key", name)
		}
	}
	if key(say(user, content.User("ab c"))) == key(say(user, content.User("a bc"))) {
		t.Error("white space inside what a person says does not count")
	}
}
