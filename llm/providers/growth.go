package providers

import (
	"bytes"
	"strings"

	"github.com/tract-vcs/tract/internal/llm/rawjson"
)

// growth is a value that comes in pieces: strings and lists get longer, objects
// get more members, of all else the last counts.
type growth struct {
	value rawjson.Value
	text  []string
	list  []rawjson.Value
	below growing
}

func (g *growth) add(v rawjson.Value) {
	switch v.Kind() {
	case rawjson.KindString:
		g.text = append(g.text, v.Text())
	case rawjson.KindArray:
		for e := range v.Elements() {
			g.list = append(g.list, bytes.Clone(e))
		}
	case rawjson.KindObject:
		for key, m := range v.Members() {
			g.below.member(key).add(m)
		}
	case rawjson.KindNumber, rawjson.KindBool:
		g.value = bytes.Clone(v)
	case rawjson.KindAbsent, rawjson.KindNull:
	}
}

// bytes is what it has become, or nil.
func (g *growth) bytes() rawjson.Value {
	switch {
	case g.value != nil:
		return g.value
	case len(g.text) > 0:
		return rawjson.AppendString(nil, strings.Join(g.text, ""))
	case len(g.list) > 0:
		return array(g.list)
	case len(g.below.keys) > 0:
		return g.below.object()
	}
	return nil
}

// growing is the members of an object that no block stands for.
type growing struct {
	keys    []string
	members map[string]*growth
}

func (r *growing) member(key string) *growth {
	if r.members == nil {
		r.members = map[string]*growth{}
	}
	g := r.members[key]
	if g == nil {
		g = &growth{}
		r.keys, r.members[key] = append(r.keys, key), g
	}
	return g
}

func (r *growing) set(key string, v rawjson.Value) { *r.member(key) = growth{value: bytes.Clone(v)} }

func (r *growing) object() rawjson.Value {
	var o rawjson.Object
	for _, key := range r.keys {
		o.Set(key, r.members[key].bytes())
	}
	return o.Bytes()
}
