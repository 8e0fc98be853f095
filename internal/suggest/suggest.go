// Package suggest finds, among some names, the one that was probably meant by a name that is none
// of them: make a [Search], [Search.Add] each name, and ask for [Search.Best].
package suggest

// Search looks for the name that is nearest to a given one.
type Search struct {
	given, best string
	limit       int // a name at this distance or more is no guess
}

// NewSearch begins a search for names that differ from given by at most maxEdits bytes.
func NewSearch(given string, maxEdits int) *Search {
	return &Search{given: given, limit: maxEdits + 1}
}

// Add considers a name, which may have several spellings. Of names at the same distance the first
// one counts.
func (s *Search) Add(spelling, name string) {
	if apart := len(spelling) - len(s.given); max(apart, -apart) >= s.limit {
		return
	}
	if d := distance(s.given, spelling); d < s.limit {
		s.limit, s.best = d, name
	}
}

// Best returns the nearest name so far; empty: none is near.
func (s *Search) Best() string { return s.best }

// distance returns the Levenshtein distance of a and b in bytes.
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
