package content

import (
	"reflect"
	"strconv"
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

// TestAFormOfNothingIsNone: what is taken out of a form leaves no trace.
func TestAFormOfNothingIsNone(t *testing.T) {
	b := Assistant("words")
	b.SetID("1")
	b.SetID("")
	if b.form != nil || (Form{Extra: []byte{}}).Wire().form != nil {
		t.Error("a zero form takes memory")
	}
}

// TestPlainWordsAreSmall: a long history is a hundred thousand of these.
func TestPlainWordsAreSmall(t *testing.T) {
	if size := unsafe.Sizeof(Text{}); size > 48 {
		t.Errorf("a block of words takes %d bytes beside them", size)
	}
	var b Block
	if n := testing.AllocsPerRun(10, func() { b = Text{Of: KindUser, Wire: Form{}.Wire(), Text: "words"} }); n > 1 {
		t.Errorf("%v allocations for %v", n, b)
	}
}

// TestBlocksOfOneDialectShareTheirForm: what a long conversation with one provider
// keeps of its form is there once, and keeps no record in memory.
func TestBlocksOfOneDialectShareTheirForm(t *testing.T) {
	call := ToolCall{Wire: Form{Dialect: "messages", Type: "tool_use"}.Wire(), CallID: "1", Name: "look"}
	said := Text{Wire: Form{Dialect: "messages"}.Wire(), Of: KindAssistant, Text: "words"}
	sealed := Reasoning{Wire: Form{Dialect: "messages", Seal: Seal{Type: Signature, Data: "s"}}.Wire(), Text: "hm"}
	for _, b := range []Block{call, said, sealed} {
		record := Encode(b)
		for range 3 {
			got, err := DecodeNoCopy(record)
			if err != nil || !reflect.DeepEqual(got, b) {
				t.Fatalf("%+v, %v: want %+v", got, err, b)
			}
		}
	}
	record := Encode(Text{Wire: Form{Dialect: "read once", Type: "only here"}.Wire(), Of: KindAssistant, Text: "words"})
	got, err := DecodeNoCopy(record)
	if err != nil {
		t.Fatal(err)
	}
	begin := uintptr(unsafe.Pointer(&record[0]))
	for _, name := range []string{got.Form().Dialect, got.Form().Type} {
		if at := uintptr(unsafe.Pointer(unsafe.StringData(name))); at >= begin && at < begin+uintptr(len(record)) {
			t.Errorf("%q keeps the record that it was read from", name)
		}
	}
	var shared sharedForms
	first, second := shared.wire(said.Form()), shared.wire(said.Form())
	if first.form != second.form {
		t.Error("two blocks have two forms")
	}
	if first.SetType("text"); second.Form().Type != "" {
		t.Error("who changes the form of a block changes that of another")
	}
	for i := range 3 * len(shared.last) {
		shared.wire(Form{Dialect: strconv.Itoa(i)})
		if one, other := shared.wire(sealed.Form()), shared.wire(sealed.Form()); one.form == other.form || one.Form().Seal.Data != "s" {
			t.Fatal("a sealed block has the form of another")
		}
	}
	if shared.wire(said.Form()).form == second.form {
		t.Error("a form is remembered for ever")
	}
}
