package providers

import (
	"bytes"
	"fmt"

	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/internal/llm/wire"
	"github.com/tract-vcs/tract/llm"
)

// DecodeRequest decodes a request body: the reverse of [llm.Target].Encode, for any
// dialect. The provider may be empty or unknown. Seals are assumed to be those of the
// model that the body names. Members that have no field are kept in the Extra of the
// settings or of a block. Encoding the request for the same provider gives an equal
// body, except for forms that mean the same, such as a text instead of a list of one
// text.
func DecodeRequest(api, provider string, body []byte) (*llm.Request, error) {
	req, _, err := DecodeNextRequest(api, provider, body, nil)
	return req, err
}

// RequestPrefix is the beginning of a request body, up to the end of one of its messages, with what it was
// decoded to. It keeps the memory of the body.
type RequestPrefix struct {
	api, provider, model string

	bytes      []byte
	list       int // where the messages begin in bytes
	member     string
	checkpoint *wire.Checkpoint
}

// changingMessages is the number of messages at the end of a request that a RequestPrefix leaves
// out, because clients change them in the next request: they move the cache marks.
const changingMessages = 4

// DecodeNextRequest is [DecodeRequest] for the requests of one conversation, each of which repeats
// most of the one before it. earlier is the prefix that an earlier call returned, or nil. If the
// body begins with the prefix, and names the same model, only the rest is decoded, and the
// messages before it share their blocks with those of the earlier request. The result is the same
// in any case. next is for the next request, and may be nil. The body must not be changed afterwards.
func DecodeNextRequest(api, provider string, body []byte, earlier *RequestPrefix) (req *llm.Request, next *RequestPrefix, err error) {
	t, err := targetOrGeneric(api, provider, "")
	if err != nil {
		return nil, nil, fmt.Errorf("decode request: %w", err)
	}
	if t.Dialect.DecodeRequest == nil {
		return nil, nil, fmt.Errorf("decode request: requests of the dialect %s cannot be read", t.Dialect.Name)
	}
	short, ok := earlier.removeFrom(body)
	v, err := rawjson.Parse(short)
	if t.Model = v.Get("model").Text(); ok && (err != nil || earlier.api != api || earlier.provider != provider || earlier.model != t.Model || !hasOneList(v, earlier.member)) {
		return DecodeNextRequest(api, provider, body, nil)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("decode request: %w", err)
	}
	if v.Kind() != rawjson.KindObject {
		return nil, nil, fmt.Errorf("decode request: want an object, have %s %q", v.Kind(), rawjson.Excerpt(v))
	}
	c := &wire.Continuation{Body: v, Tail: changingMessages}
	if ok {
		c.From = earlier.checkpoint
	}
	if req, err = t.Dialect.DecodeRequest(t.Continuing(c), v); err != nil {
		return nil, nil, fmt.Errorf("decode request: %s: %w", t.Dialect.Name, err)
	}
	made := *c
	*c = wire.Continuation{} // the reader in the checkpoint holds it: it must not hold this body
	if made.Made == nil || made.Elements == 0 || !hasOneList(v, made.Member) {
		return req, earlier, nil
	}
	next = &RequestPrefix{api: api, provider: provider, model: t.Model, member: made.Member, checkpoint: made.Made}
	begin := len(short) - len(bytes.TrimLeft(short, "\ufeff \t\r\n"))
	list, end := rawjson.ElementsEnd(v, made.Member, made.Elements)
	next.list, next.bytes = begin+list, body[:len(body)-len(short)+begin+end]
	return req, next, nil
}

// removeFrom returns a body without the messages of the prefix. If the body does not begin with the
// prefix, it returns the body itself, and ok is false.
func (p *RequestPrefix) removeFrom(body []byte) (short []byte, ok bool) {
	if p == nil || !bytes.HasPrefix(body, p.bytes) {
		return body, false
	}
	rest := bytes.TrimLeft(body[len(p.bytes):], " \t\r\n")
	if more, comma := bytes.CutPrefix(rest, []byte{','}); comma {
		if rest = more; bytes.HasPrefix(bytes.TrimLeft(rest, " \t\r\n"), []byte{']'}) {
			return body, false // a comma before the end of the list is an error
		}
	} else if !bytes.HasPrefix(rest, []byte{']'}) {
		return body, false
	}
	return append(bytes.Clone(body[:p.list]), rest...), true
}

// hasOneList reports whether an object has exactly one member with this key, and it is an array. Of
// several members the last counts, which may be another one in the next body.
func hasOneList(v rawjson.Value, key string) bool {
	n := 0
	for name := range v.Members() {
		if name == key {
			n++
		}
	}
	return n == 1 && v.Get(key).Kind() == rawjson.KindArray
}
