package providers

import (
	"encoding/json"
	"fmt"
	"iter"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
)

// DecodeMessages decodes the messages of a request one by one, and yields each message as soon
// as it is complete. It yields the same messages as [DecodeRequest], but needs little memory.
// The model is that of the request, and may be empty. The elements of list are JSON; the
// caller may reuse the memory of an element when list continues with the next one. An error
// concerns one element, which is left out; DecodeMessages continues with the next.
func DecodeMessages(api, provider, model string, list iter.Seq[json.RawMessage]) iter.Seq2[content.Message, error] {
	return func(yield func(content.Message, error) bool) {
		t, err := targetOrGeneric(api, provider, model)
		if err == nil && t.Dialect.NewMessageReader == nil {
			err = fmt.Errorf("messages of the dialect %s cannot be read one by one", api)
		}
		if err != nil {
			yield(content.Message{}, fmt.Errorf("decode message: %w", err))
			return
		}
		q := t.Dialect.NewMessageReader(t)
		wrong := func(err error) bool {
			return yield(content.Message{}, fmt.Errorf("decode message: %s: %w", t.Dialect.Name, err))
		}
		for v := range list {
			keepLast := 1
			err := q.Next(rawjson.Value(v))
			if err != nil {
				keepLast = 0
				_ = q.End() // yield the messages before the element first, then its error
			}
			if !yieldMessages(q, keepLast, yield) || err != nil && !wrong(err) {
				return
			}
		}
		err = q.End()
		if yieldMessages(q, 0, yield) && err != nil {
			wrong(err)
		}
	}
}

// yieldMessages yields and removes the messages that q has read, except the last keepLast ones,
// which may still grow. It returns false if yield did.
func yieldMessages(q wire.MessageReader, keepLast int, yield func(content.Message, error) bool) bool {
	list := q.Messages()
	n := max(len(*list)-keepLast, 0)
	for _, m := range (*list)[:n] {
		if !yield(m, nil) {
			return false
		}
	}
	*list = append((*list)[:0], (*list)[n:]...)
	return true
}
