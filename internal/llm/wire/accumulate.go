package wire

import (
	"bytes"
	"strings"

	"github.com/tract-vcs/tract/internal/llm/rawjson"
)

// ValueAccumulator assembles a JSON value that arrives in pieces. Strings and lists are
// concatenated, objects are merged member by member, and a number or a boolean replaces the
// previous piece. The zero value is ready to use.
type ValueAccumulator struct {
	scalar   rawjson.Value
	strings  []string
	elements []rawjson.Value
	members  FieldAccumulator
}

// Add adds a piece. The piece is copied.
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

// Value returns the value so far; nil if there was no piece.
func (g *ValueAccumulator) Value() rawjson.Value {
	switch {
	case g.scalar != nil:
		return g.scalar
	case len(g.strings) > 0:
		return rawjson.AppendString(nil, strings.Join(g.strings, ""))
	case len(g.elements) > 0:
		return rawjson.ArrayOf(g.elements...)
	case len(g.members.Keys) > 0:
		return g.members.Object()
	}
	return nil
}

// FieldAccumulator assembles the members of an object that have no block, in the order of
// their first piece. The zero value is ready to use.
type FieldAccumulator struct {
	Keys   []string
	Fields map[string]*ValueAccumulator
}

// Field returns the accumulator of a member, and creates it if necessary.
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

// Set replaces the value of a member. The value is copied.
func (r *FieldAccumulator) Set(key string, v rawjson.Value) {
	*r.Field(key) = ValueAccumulator{scalar: bytes.Clone(v)}
}

// Object returns an object of all members.
func (r *FieldAccumulator) Object() rawjson.Value {
	var o rawjson.Object
	for _, key := range r.Keys {
		o.Set(key, r.Fields[key].Value())
	}
	return o.Bytes()
}
