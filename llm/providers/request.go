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
	if t.dialect.request == nil {
		return nil, fmt.Errorf("decode request: requests of the dialect %s cannot be read", t.dialect.name)
	}
	v, err := rawjson.Parse(body)
	if err != nil {
		return nil, fmt.Errorf("decode request: %w", err)
	}
	if v.Kind() != rawjson.KindObject {
		return nil, fmt.Errorf("decode request: want an object, have %s %q", v.Kind(), excerpt(v))
	}
	t.model = v.Get("model").Text()
	req, err := t.dialect.request(t, v)
	if err != nil {
		return nil, fmt.Errorf("decode request: %s: %w", t.dialect.name, err)
	}
	return req, nil
}
