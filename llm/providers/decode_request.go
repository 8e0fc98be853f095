package providers

import (
	"fmt"

	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/llm"
)

// DecodeRequest decodes a request body: the reverse of [llm.Target].Encode, for any
// dialect. The provider may be empty or unknown. Seals are assumed to be those of the
// model that the body names. Members that have no field are kept in the Extra of the
// settings or of a block. Encoding the request for the same provider gives an equal
// body, except for forms that mean the same, such as a text instead of a list of one
// text.
func DecodeRequest(api, provider string, body []byte) (*llm.Request, error) {
	t, err := targetOrGeneric(api, provider, "")
	if err != nil {
		return nil, fmt.Errorf("decode request: %w", err)
	}
	if t.Dialect.DecodeRequest == nil {
		return nil, fmt.Errorf("decode request: requests of the dialect %s cannot be read", t.Dialect.Name)
	}
	v, err := rawjson.Parse(body)
	if err != nil {
		return nil, fmt.Errorf("decode request: %w", err)
	}
	if v.Kind() != rawjson.KindObject {
		return nil, fmt.Errorf("decode request: want an object, have %s %q", v.Kind(), rawjson.Excerpt(v))
	}
	t.Model = v.Get("model").Text()
	req, err := t.Dialect.DecodeRequest(t, v)
	if err != nil {
		return nil, fmt.Errorf("decode request: %s: %w", t.Dialect.Name, err)
	}
	return req, nil
}
