package wire

import (
	"slices"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
)

// How the form of a request is preserved.
//
// An API lets a client write the same request in several ways: a text as a string or as a list
// of one part, an instruction under the role system or developer. Decoding records the form
// that the request used in the extra of the blocks, under ExtraForm, and encoding uses that
// form again, so that the body is the same. A form does not change the content of a block.
// Names of extra members that begin with $ are tract's own: they are never sent.

// ExtraForm is the member of the extra of a block that holds the form in which a
// request wrote its message, an object with some of these members:
//
//	string  true: the content of the message is a string, not a list
//	first   true: the block begins a message, although the previous message has the same role
//	list    true: the content is a list, not a string
//	empty   the members of the message that are empty
//	role    the role of the message, if it is not the usual one
//	late    true: the result came after the result of a later call; encoding keeps this order
const ExtraForm = "$form"

// WithForm returns the block with a form in its extra. An empty form changes nothing.
func WithForm(b content.Block, form *rawjson.Object) content.Block {
	if rawjson.IsEmpty(form.Bytes()) {
		return b
	}
	f := b.Form()
	f.Extra = rawjson.WithMember(f.Extra, ExtraForm, form.Bytes())
	return content.WithForm(b, f)
}

// FormOf returns the form in which a request of this dialect wrote the message of a
// block; nil for any other block.
func (t Target) FormOf(b content.Block) rawjson.Value {
	if !t.Owns(b) {
		return nil
	}
	return rawjson.Value(b.Form().Extra).Get(ExtraForm)
}

// Extra returns the members of a block of this dialect that have no field; nil for any other
// block.
func (t Target) Extra(b content.Block) rawjson.Value {
	if !t.Owns(b) {
		return nil
	}
	return rawjson.Without(b.Form().Extra, ExtraForm)
}

// ResultOrder compares the order of results with the order of their calls. The zero value is
// ready to use.
type ResultOrder struct {
	calls  []string // ids of the calls in the last message of the model
	latest int      // 1 + the largest index in calls of a call that has a result; 0: none has
}

// Copy returns a copy that is independent of o.
func (o ResultOrder) Copy() ResultOrder {
	o.calls = slices.Clip(o.calls)
	return o
}

// Note reads the next blocks of a request. It sets the form late in a result that comes after
// the result of a later call.
func (o *ResultOrder) Note(blocks []content.Block) {
	for i, b := range blocks {
		switch b := b.(type) {
		case content.ToolCall:
			if o.latest > 0 {
				o.calls, o.latest = nil, 0
			}
			if !b.Server {
				o.calls = append(o.calls, b.CallID)
			}
		case content.ToolResult:
			at := slices.Index(o.calls, b.CallID) + 1
			if at == 0 || b.Server {
				continue
			}
			if at < o.latest {
				form := new(rawjson.Object).Merge(rawjson.Value(b.Form().Extra).Get(ExtraForm))
				form.SetBool("late", true)
				blocks[i] = WithForm(b, form)
			}
			o.latest = max(o.latest, at)
		}
	}
}
