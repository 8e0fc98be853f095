package wire

import (
	"slices"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
)

// What a request says can be written in several ways: a text alone or in a list of one
// part, an instruction under the role system or developer. Decoding notes the way that
// the request used in the extra of the blocks, under ExtraForm, so that encoding writes
// it again. A form changes nothing of what a block says. Names of members that begin
// with $ are tract's own: they are in no body.

// ExtraForm is the member of the extra of a block that holds the form in which a
// request wrote its message, an object with some of these members:
//
//	string  true: the content of the message is a string, not a list
//	first   true: the block begins a message, although the one before has the same role
//	list    true: the content is a list, not a string
//	empty   the members of the message that are empty
//	role    the role of the message, where another one is usual
//	late    true: a result that came after that of a later call; the results stay in this order
const ExtraForm = "$form"

// WithForm returns the block with a form in its extra; an empty form changes nothing.
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

// Extra returns the members of a block of this dialect that no field stands for; nil for
// any other block.
func (t Target) Extra(b content.Block) rawjson.Value {
	if !t.Owns(b) {
		return nil
	}
	return rawjson.Without(b.Form().Extra, ExtraForm)
}

// ResultOrder compares the order of results with that of their calls. The zero value
// is ready.
type ResultOrder struct {
	calls  []string // of the last message of the model
	latest int      // the index in calls of the latest call that has a result
}

// Note reads the next blocks of a request. Results that come after that of a later call
// get the form late.
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
