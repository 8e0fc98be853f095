package tract

import (
	"slices"

	"github.com/tract-vcs/tract/objects"
)

// Fixing says what [Repo.Redact] has to do so that the secrets that a [Repo.Scan] found
// are gone: blocks with masks come in the place of those that have one, labels,
// descriptions and definitions of tools go. With rules, only what these find is masked.
// What is not erasable stays; so does what an open tool loop needs under its seal.
func Fixing(leaks []Leak, rules ...string) (p Redacting) {
	at := map[objects.ID]int{} // places in the list of redactions
	redaction := func(l *Leak) *Redaction {
		n, ok := at[l.Commit.ID]
		if !ok {
			n = len(p.List)
			at[l.Commit.ID], p.List = n, append(p.List, Redaction{Commit: l.Commit.ID})
		}
		return &p.List[n]
	}
	for i := range leaks {
		l := &leaks[i]
		if !l.Erasable() {
			continue
		}
		switch l.Where {
		case inTools, inDescription:
			if !slices.Contains(p.Objects, l.Object) {
				p.Objects = append(p.Objects, l.Object)
			}
		case inContent:
			if one := redaction(l); !one.Content {
				one.Content = true
				one.Block, _ = Masked(l.Commit.Block, rules...)
			}
		default:
			redaction(l).Label = true
		}
	}
	return p
}

// Erasable tells whether Redact and Purge can take the words away that a leak is in. Of
// where words came from, and of how a model was asked, every proof is made: that stays.
// So do names.
func (l *Leak) Erasable() bool {
	return l.Where != inOrigin && l.Where != inRequest && !l.Named()
}
