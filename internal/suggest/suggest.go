// Package suggest tells which of some names a person may have meant by one that is
// none of them: [Search.Try] each, then ask for the [Search.Name]. It knows neither
// what the names are of nor how the guess is put.
package suggest

// Search looks for the name that is nearest to a given one.
type Search struct {
	given, name string
	below       int // what is as far off as this is no guess
}

// To begins a search for what was meant by given, with at most so many bytes wrong.
func To(given string, wrong int) *Search { return &Search{given: given, below: wrong + 1} }

// Try holds a spelling of a name against what was given. Of names that are equally
// near the one that was tried first stays.
func (s *Search) Try(spelling, name string) {
	if apart := len(spelling) - len(s.given); max(apart, -apart) >= s.below {
		return
	}
	if d := distance(s.given, spelling); d < s.below {
		s.below, s.name = d, name
	}
}

// Name is the nearest name so far; empty: none is near.
func (s *Search) Name() string { return s.name }

// distance is how many bytes have to be changed, added or taken away to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1) // from the part of a so far to each beginning of b
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j]+1, row[j+1]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
