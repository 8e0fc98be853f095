package providers

import (
	"encoding/json"
	"fmt"
	"iter"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
)

// DecodeMessages reads the messages of a request of which the elements of the list come
// one by one, and yields each when it is whole: what [DecodeRequest] would make of the
// list, in little memory. The model is the one that is asked, and may be empty. The
// elements are JSON; their memory may be used again once the list is asked for the next
// one. An error is about one element, which is left out; the rest may be read all the same.
func DecodeMessages(api, provider, model string, list iter.Seq[json.RawMessage]) iter.Seq2[content.Message, error] {
	return func(yield func(content.Message, error) bool) {
		t, err := targetOf(api, provider, model)
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
			kept := 1
			err := q.Next(rawjson.Value(v))
			if err != nil {
				kept = 0
				_ = q.End() // what came before the element comes before its error
			}
			if !yieldMessages(q, kept, yield) || err != nil && !wrong(err) {
				return
			}
		}
		err = q.End()
		if yieldMessages(q, 0, yield) && err != nil {
			wrong(err)
		}
	}
}

// yieldMessages yields the messages so far but the last kept ones, which may still grow.
func yieldMessages(q wire.MessageReader, kept int, yield func(content.Message, error) bool) bool {
	list := q.Messages()
	n := max(len(*list)-kept, 0)
	for _, m := range (*list)[:n] {
		if !yield(m, nil) {
			return false
		}
	}
	*list = append((*list)[:0], (*list)[n:]...)
	return true
}
