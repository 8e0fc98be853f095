package wire

import (
	"reflect"
	"slices"

	"github.com/tract-vcs/tract/internal/llm/rawjson"
)

// How a request is decoded that begins like an earlier one.
//
// A client sends the whole conversation with each request. The caller of DecodeRequest keeps a
// Checkpoint of one request: the state of its message reader after some elements of the list. If the
// next body begins with the same bytes, the caller leaves these elements out of it, and the reader
// continues from the checkpoint.

// Continuation says where [Target.DecodeMessages] begins, and where it makes a checkpoint.
type Continuation struct {
	From *Checkpoint   // the state after the elements that the body lacks; nil: it lacks none
	Body rawjson.Value // the body that is passed to DecodeRequest
	Tail int           // number of elements at the end that no checkpoint covers

	// DecodeMessages sets these if it makes a checkpoint.
	Made     *Checkpoint
	Member   string // the member with the list
	Elements int    // number of elements of this list that Made covers
}

// Checkpoint is the state of a [MessageReader] after a number of elements of a list.
type Checkpoint struct {
	reader   MessageReader
	elements int
	outside  int // number of the reader's first messages that are not in the list, such as instructions
}

// Continuing returns the target for one call of DecodeRequest with a continuation.
func (t Target) Continuing(c *Continuation) Target {
	t.continuation = c
	return t
}

// restore brings q into the state of the checkpoint. The messages that q has already, which are not
// in the list, replace those of the checkpoint.
func (c *Checkpoint) restore(q MessageReader) {
	outside := slices.Clip(*q.Messages())
	reflect.ValueOf(q).Elem().Set(reflect.ValueOf(c.reader.Copy()).Elem())
	*q.Messages() = append(outside, (*q.Messages())[c.outside:]...)
}

// isMemberOfBody reports whether a list is the value of a member of c.Body itself, and not a converted
// form of it.
func (c *Continuation) isMemberOfBody(list rawjson.Value, member string) bool {
	same := c.Body.Get(member)
	return len(same) > 0 && len(same) == len(list) && &same[0] == &list[0]
}
