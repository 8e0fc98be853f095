package settings

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// A family is a group of settings, one for each name that the user chooses: the name of a header
// or of a model. The name of its row in the table has NAME or MODEL in the place of the chosen
// part.

// maxPrice is the highest accepted price of a million tokens, in any currency.
const maxPrice = 1e9

// maxModel is the largest length in bytes of a model's name in the name of a setting.
const maxModel = 200

// familyAffixes returns the parts of the name before and after the chosen part. k may be a row of the
// table or a setting of the family; ok is false for any other setting.
func (k Key) familyAffixes() (before, after string, ok bool) {
	row := cmp.Or(k.row, k.Name)
	if before, after, ok = strings.Cut(row, "NAME"); !ok {
		before, after, ok = strings.Cut(row, "MODEL")
	}
	return before, after, ok
}

// chosenPart returns the part of a name that the user chose, if the name belongs to the family k.
func (k Key) chosenPart(name string) (part string, ok bool) {
	before, after, many := k.familyAffixes()
	dots := strings.Count(before, ".")
	parts := strings.SplitN(strings.TrimSpace(name), ".", dots+1)
	if !many || len(parts) <= dots || foldName(strings.Join(parts[:dots], ".")+".") != foldName(before) {
		return "", false
	}
	part = parts[dots]
	if after != "" {
		at := strings.LastIndexByte(part, '.')
		if at < 0 || foldName(part[at:]) != foldName(after) {
			return "", false
		}
		part = part[:at]
	}
	return part, true
}

// withPart returns the setting of the family k with a chosen part.
func (k Key) withPart(part string) Key {
	before, after, _ := k.familyAffixes()
	k.Name, k.row, k.part = before+part+after, k.Name, part
	return k
}

func isValidModelName(model string) bool {
	return model != "" && len(model) <= maxModel && utf8.ValidString(model) && !strings.ContainsFunc(model, func(r rune) bool { return r <= ' ' || r == 0x7f })
}

// fullNamesInFamily returns the full names, sorted, of the settings that are set and whose names
// have a chosen part between before and after.
func (v Values) fullNamesInFamily(before, after string) []string {
	var names []string
	for name := range v.set {
		if len(name) > len(before)+len(after) && strings.HasPrefix(name, before) && strings.HasSuffix(name, after) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Match reports whether the name of a model matches a pattern: case does not matter, and *
// stands for any number of characters.
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

// Budgets returns reasoning.budgets: limits of a session by pattern of the model.
func (v Values) Budgets() map[string]int {
	const before = "reasoning.budgets."
	m := map[string]int{}
	for _, name := range v.fullNamesInFamily(before, "") {
		m[strings.TrimPrefix(name, before)] = v.Int(name)
	}
	return m
}

// Price is what a million tokens of a model cost, in whatever currency the prices are
// given.
type Price struct{ Input, Output, Cached, CacheWrite float64 }

// Price returns the price of a model; false when none is set. Of the patterns that match,
// the one with the most characters other than * counts.
func (v Values) Price(model string) (Price, bool) {
	letters := func(pattern string) int { return len(pattern) - strings.Count(pattern, "*") }
	best, found := "", false
	for _, name := range append(v.fullNamesInFamily("price.", ".input"), v.fullNamesInFamily("price.", ".output")...) {
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
