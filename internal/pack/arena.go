package pack

import "github.com/tract-vcs/tract/objects"

// Arena is memory for the tables that are parsed. It is used again after a Reset. An arena is for one goroutine, the tables in it are not.
type Arena struct {
	tables    []Table
	templates []template
	counts    []counts
	rows      []row
	edges     []objects.ID
}

// Reset ends the use of all tables that were parsed into the arena.
func (a *Arena) Reset() {
	a.tables, a.templates, a.counts, a.rows, a.edges = a.tables[:0], a.templates[:0], a.counts[:0], a.rows[:0], a.edges[:0]
}
