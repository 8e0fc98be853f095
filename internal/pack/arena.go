package pack

import "github.com/tract-vcs/tract/objects"

// Arena is memory for the tables that are parsed, and for one that is encoded. It is used
// again after a Reset. An arena is for one goroutine, the tables in it are not.
type Arena struct {
	tables       []Table
	templates    []template
	rowTemplates []rowTemplate
	counts       []counts
	rows         []row
	edges        []objects.ID
	encoder      tableEncoder
}

// Reset ends the use of all tables that were parsed into the arena, and of the one that
// was encoded.
func (a *Arena) Reset() {
	a.tables, a.templates, a.rowTemplates, a.counts, a.rows = a.tables[:0], a.templates[:0], a.rowTemplates[:0], a.counts[:0], a.rows[:0]
	a.edges = a.edges[:0]
}

// Object is [Table.Object] with the edges in the arena.
func (a *Arena) Object(t *Table, i int) objects.Object { return t.Object(i, &a.edges) }

// takeTable returns a zero table.
func (a *Arena) takeTable() *Table {
	if a == nil {
		return new(Table)
	}
	t := &take(&a.tables, 1)[0]
	*t = Table{}
	return t
}

// takeTemplates returns n templates, which are not zero.
func (a *Arena) takeTemplates(n int) []template {
	if a == nil {
		return make([]template, n)
	}
	return take(&a.templates, n)
}

func (a *Arena) takeRowTemplates(n int) []rowTemplate {
	if a == nil {
		return make([]rowTemplate, n)
	}
	return take(&a.rowTemplates, n)
}

func (a *Arena) takeCounts(n int) []counts {
	if a == nil {
		return make([]counts, n)
	}
	return take(&a.counts, n)
}

// takeRows returns n rows, and makes memory for their edges.
func (a *Arena) takeRows(n int) []row {
	if a == nil {
		return make([]row, n)
	}
	if cap(a.edges)-len(a.edges) < 2*n {
		a.edges = make([]objects.ID, 0, max(2*n, 2*cap(a.edges)))
	}
	return take(&a.rows, n)
}

// take returns the next n elements of a list. Those returned before stay where they are.
func take[T any](list *[]T, n int) []T {
	from := len(*list)
	if cap(*list)-from < n {
		*list, from = make([]T, 0, max(n, 2*cap(*list))), 0
	}
	*list = (*list)[:from+n]
	return (*list)[from : from+n : from+n]
}
