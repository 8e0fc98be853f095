package llm

import (
	"errors"
	"fmt"

	"github.com/tract-vcs/tract/internal/llm/rawjson"
)

// AppendTools appends tool definitions as one JSON array, in a form of tract's own that no
// provider reads: manifests keep it. Equal definitions give equal bytes.
func AppendTools(dst []byte, tools []Tool) []byte {
	var list rawjson.Array
	for _, t := range tools {
		var o rawjson.Object
		o.SetString("name", t.Name)
		o.SetNonEmpty("description", t.Description)
		o.Set("schema", t.Schema)
		o.Set("native", t.Native)
		list.Add(o.Bytes())
	}
	return append(dst, list.Bytes()...)
}

// ReadTools reads what [AppendTools] wrote: the same definitions, byte for byte.
func ReadTools(b []byte) ([]Tool, error) {
	list, err := rawjson.Parse(b)
	if err != nil {
		return nil, fmt.Errorf("read tools: %w", err)
	}
	if list.Kind() != rawjson.KindArray {
		return nil, errors.New("read tools: want an array")
	}
	var tools []Tool
	for v := range list.Elements() {
		tools = append(tools, Tool{
			Name: v.Get("name").Text(), Description: v.Get("description").Text(), Schema: v.Get("schema"), Native: v.Get("native"),
		})
	}
	return tools, nil
}
