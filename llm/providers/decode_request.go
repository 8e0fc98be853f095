package providers

import (
	"fmt"

	"github.com/tract-vcs/tract/internal/llm/rawjson"
	"github.com/tract-vcs/tract/llm"
)

// DecodeRequest reads a request body: the reverse of [llm.Target].Encode, for any
// dialect. The provider may be empty or one that nothing is known of. Seals are
// taken to be those of the model that the body asks; what has no field of its own
// is in the Extra of the settings or of the block it came with. Encoding the
// request for the same provider gives an equal body, but for forms that mean the
// same, such as a text in the place of a list of one text.
func DecodeRequest(api, provider string, body []byte) (*llm.Request, error) {
	t, err := targetOf(api, provider, "")
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
