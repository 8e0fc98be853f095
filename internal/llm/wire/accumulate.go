package wire

import (
	"bytes"
	"strings"

	"github.com/tract-vcs/tract/internal/llm/rawjson"
)

// growth is a value that comes in pieces: strings and lists get longer, objects
// get more members, of all else the last counts.
type ValueAccumulator struct {
	scalar   rawjson.Value
	strings  []string
	elements []rawjson.Value
	members  FieldAccumulator
}

func (g *ValueAccumulator) Add(v rawjson.Value) {
	switch v.Kind() {
	case rawjson.KindString:
		g.scalar, g.strings = nil, append(g.strings, v.Text())
	case rawjson.KindArray:
		for e := range v.Elements() {
			g.elements = append(g.elements, bytes.Clone(e))
		}
	case rawjson.KindObject:
		for key, m := range v.Members() {
			g.members.Field(key).Add(m)
		}
	case rawjson.KindNumber, rawjson.KindBool:
		g.scalar = bytes.Clone(v)
	case rawjson.KindAbsent, rawjson.KindNull:
	}
}

// bytes is what it has become, or nil.
func (g *ValueAccumulator) Value() rawjson.Value {
	switch {
	case g.scalar != nil:
		return g.scalar
	case len(g.strings) > 0:
		return rawjson.AppendString(nil, strings.Join(g.strings, ""))
	case len(g.elements) > 0:
		return rawjson.ArrayOf(g.elements)
	case len(g.members.Keys) > 0:
		return g.members.Object()
	}
	return nil
}

// growing is the members of an object that no block stands for.
type FieldAccumulator struct {
	Keys   []string
	Fields map[string]*ValueAccumulator
}

func (r *FieldAccumulator) Field(key string) *ValueAccumulator {
	if r.Fields == nil {
		r.Fields = map[string]*ValueAccumulator{}
	}
	g := r.Fields[key]
	if g == nil {
		g = &ValueAccumulator{}
		r.Keys, r.Fields[key] = append(r.Keys, key), g
	}
	return g
}

func (r *FieldAccumulator) Set(key string, v rawjson.Value) {
	*r.Field(key) = ValueAccumulator{scalar: bytes.Clone(v)}
}

func (r *FieldAccumulator) Object() rawjson.Value {
	var o rawjson.Object
	for _, key := range r.Keys {
		o.Set(key, r.Fields[key].Value())
	}
	return o.Bytes()
}
