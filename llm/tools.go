package llm

import "github.com/tract-vcs/tract/llm/rawjson"

// AppendTools appends tool definitions as one JSON array, in a form of its own
// that no provider reads: what a manifest keeps of them. Equal definitions give
// equal bytes.
func AppendTools(dst []byte, tools []Tool) []byte {
	var list rawjson.Array
	for _, t := range tools {
		var o rawjson.Object
		o.SetString("name", t.Name)
		if t.Description != "" {
			o.SetString("description", t.Description)
		}
		o.Set("schema", t.Schema)
		o.Set("native", t.Native)
		list.Add(o.Bytes())
	}
	return append(dst, list.Bytes()...)
}
