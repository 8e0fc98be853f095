package settings

import (
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// A family is settings of one sort, for each name that people choose: a header,
// or a model. Its row in the table has that part of the name in capitals.

// maxPrice is more than a million tokens cost in any currency.
const maxPrice = 1e9

// maxModel is the most bytes of a model's name in the name of a setting.
const maxModel = 200

// families are the rows of the table that stand for many settings. There are few.
var families = sync.OnceValue(func() []*Key {
	var list []*Key
	for i := range table {
		if _, _, many := table[i].family(); many {
			list = append(list, &table[i])
		}
	}
	return list
})

// family gives the parts of the name around the one that is chosen.
func (k *Key) family() (before, after string, ok bool) {
	for _, part := range []string{"NAME", "MODEL"} {
		if before, after, ok = strings.Cut(k.Name, "."+part); ok {
			return before + ".", after, true
		}
	}
	return "", "", false
}

// familyOf is the row of the table that a setting belongs to; nil when it is no
// one of many.
func familyOf(name string) *Key {
	for _, k := range families() {
		before, after, _ := k.family()
		if len(name) > len(before)+len(after) && strings.HasPrefix(name, before) && strings.HasSuffix(name, after) {
			return k
		}
	}
	return nil
}

// modelKey is the setting for one model, or for those that a pattern matches.
func modelKey(name string) (Key, bool) {
	for _, k := range table {
		before, after, ok := k.family()
		if !ok || before == headers {
			continue
		}
		dots := strings.Count(before, ".")
		parts := strings.SplitN(name, ".", dots+1)
		if len(parts) <= dots || fold(strings.Join(parts[:dots], ".")+".") != fold(before) {
			continue
		}
		model := parts[dots]
		if after != "" {
			at := strings.LastIndexByte(model, '.')
			if at < 0 || fold(model[at:]) != fold(after) {
				continue
			}
			model = model[:at]
		}
		if validModel(model) {
			k.Name = before + strings.ToLower(model) + after
			return k, true
		}
	}
	return Key{}, false
}

func validModel(name string) bool {
	return name != "" && len(name) <= maxModel && utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f })
}

// members lists what is set of a family, by name.
func (v Values) members(before, after string) []string {
	var names []string
	for name := range v.set {
		if len(name) > len(before)+len(after) && strings.HasPrefix(name, before) && strings.HasSuffix(name, after) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Match tells whether the name of a model fits a pattern: case does not matter,
// and * stands for anything, or nothing.
func Match(pattern, model string) bool {
	first, rest, wild := strings.Cut(strings.ToLower(pattern), "*")
	model = strings.ToLower(model)
	if !wild {
		return model == first
	}
	model, ok := strings.CutPrefix(model, first)
	for ok && wild {
		if first, rest, wild = strings.Cut(rest, "*"); wild {
			_, model, ok = strings.Cut(model, first)
		}
	}
	return ok && strings.HasSuffix(model, first)
}

// Budgets is reasoning.budgets: limits of a session by pattern of the model.
func (v Values) Budgets() map[string]int {
	const before = "reasoning.budgets."
	m := map[string]int{}
	for _, name := range v.members(before, "") {
		m[strings.TrimPrefix(name, before)] = v.Int(name)
	}
	return m
}

// Price is what a million tokens of a model cost, in the currency in which the
// prices were written down.
type Price struct{ Input, Output, Cached, CacheWrite float64 }

// Price gives the price of a model; false when none is set. Of the patterns that
// fit it the one with the most letters counts.
func (v Values) Price(model string) (Price, bool) {
	letters := func(pattern string) int { return len(pattern) - strings.Count(pattern, "*") }
	best, found := "", false
	for _, name := range append(v.members("price.", ".input"), v.members("price.", ".output")...) {
		pattern := name[len("price."):strings.LastIndexByte(name, '.')]
		if Match(pattern, model) && (!found || letters(pattern) > letters(best)) {
			best, found = pattern, true
		}
	}
	of := func(sort string, otherwise float64) float64 {
		if f := v.Float("price." + best + "." + sort); f != nil {
			return *f
		}
		return otherwise
	}
	if !found {
		return Price{}, false
	}
	p := Price{Input: of("input", 0), Output: of("output", 0)}
	p.Cached, p.CacheWrite = of("cached", p.Input), of("cache_write", p.Input)
	return p, true
}
