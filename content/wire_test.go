package content

import (
	"testing"
	"unsafe"
)

// TestWireIsAValue: a block that is given another form leaves those that it was
// copied from as they were.
func TestWireIsAValue(t *testing.T) {
	first := ToolCall{Wire: Form{Dialect: "chat", ID: "1", Extra: []byte(`{"a":1}`)}.Wire(), CallID: "1"}
	second := first
	second.SetID("2")
	second.SetType("custom")
	second.SetExtra([]byte(`{"b":2}`))
	second.SetSeal(Seal{Type: Signature, Data: "s"})
	second.SetRole(RoleUser)
	second.SetIncomplete(true)
	if f := first.Form(); f.ID != "1" || f.Type != "" || string(f.Extra) != `{"a":1}` || !f.Seal.IsZero() || f.Role != NoRole || f.Incomplete {
		t.Errorf("the first is now %+v", f)
	}
	if f := second.Form(); f.Dialect != "chat" || f.ID != "2" || f.Type != "custom" || string(f.Extra) != `{"b":2}` || f.Seal.Data != "s" || f.Role != RoleUser || !f.Incomplete {
		t.Errorf("the second is %+v", f)
	}
	form := first.Form()
	if form.ID = "3"; first.Form().ID != "1" {
		t.Error("who changes what Form gave changes the block")
	}
}

// TestZeroFormTakesNoMemory checks that a form without fields takes no memory.
func TestZeroFormTakesNoMemory(t *testing.T) {
	b := Assistant("words")
	b.SetID("1")
	b.SetID("")
	if b.form != nil || (Form{Extra: []byte{}}).Wire().form != nil {
		t.Error("a zero form takes memory")
	}
}

// TestPlainTextIsSmall bounds the memory of a text block: a long history has a hundred thousand of
// them.
func TestPlainTextIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(Text{}); size > 48 {
		t.Errorf("a block of words takes %d bytes beside them", size)
	}
	var b Block
	if n := testing.AllocsPerRun(10, func() { b = Text{Of: KindUser, Wire: Form{}.Wire(), Text: "words"} }); n > 1 {
		t.Errorf("%v allocations for %v", n, b)
	}
}
