package format

import (
	"strconv"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/diff"
	"github.com/tract-vcs/tract/objects"
)

// Run writes the steps at which two runs first differ in reasoning, text, calls, arguments and
// results. Equal runs print nothing.
func (p *Printer) Run(r *diff.Run, base objects.ID, s DiffStyle) {
	if r.Equal() {
		return
	}
	g := p.newBuffer()
	from := "no commit in common"
	if !base.IsZero() {
		from = "both from " + base.Short()
	}
	g.line(colorize(p.styles.dim, from+"; "+plural(r.Same, "step")+" the same of "+strconv.Itoa(r.Steps[0])+" and "+strconv.Itoa(r.Steps[1])))
	for _, point := range r.First {
		g.divergence(point, s)
	}
	g.flush()
}

func (g *lineBuffer) divergence(pt diff.Point, s DiffStyle) {
	g.line(colorize(g.styles.head, "step "+strconv.Itoa(pt.Step)+", "+string(pt.Part)), " ", colorize(g.styles.id, firstIDOrNothing(pt.A)+" → "+firstIDOrNothing(pt.B)))
	if pt.Part == diff.PartCall || pt.Part == diff.PartArguments {
		for _, side := range []struct {
			op      diff.Op
			commits []*commit.Commit
		}{{diff.Remove, pt.A}, {diff.Add, pt.B}} {
			for _, c := range side.commits {
				g.markedLine(g.styles.forOp(side.op), side.op, SummaryOf(c, 0))
			}
		}
		return
	}
	for i := range max(len(pt.A), len(pt.B)) {
		it := diff.Item{Op: diff.Change}
		if i < len(pt.A) {
			it.A = &diff.Block{Commit: pt.A[i].ID, Role: pt.A[i].Role, Kind: pt.A[i].Kind, Content: pt.A[i].Block}
		}
		if i < len(pt.B) {
			it.B = &diff.Block{Commit: pt.B[i].ID, Role: pt.B[i].Role, Kind: pt.B[i].Kind, Content: pt.B[i].Block}
		}
		switch {
		case it.B == nil:
			g.oneSidedBlock(diff.Remove, it.A.Content)
		case it.A == nil:
			g.oneSidedBlock(diff.Add, it.B.Content)
		case it.A.Content.String() != it.B.Content.String():
			g.changedBlock(it, s)
		}
	}
}

// firstIDOrNothing returns the short id of the first commit; "nothing" if there is none.
func firstIDOrNothing(commits []*commit.Commit) string {
	if len(commits) == 0 {
		return "nothing"
	}
	return commits[0].ID.Short()
}

// RunJSON returns the comparison of two runs for programs.
func RunJSON(r *diff.Run, a, b, base objects.ID) any {
	type pointJSON struct {
		Part diff.Part  `json:"part"`
		Step int        `json:"step"`
		A    []showJSON `json:"a"`
		B    []showJSON `json:"b"`
	}
	v := struct {
		A     objects.ID  `json:"a"`
		B     objects.ID  `json:"b"`
		Base  objects.ID  `json:"base,omitzero"`
		Equal bool        `json:"equal"`
		Same  int         `json:"same_steps"`
		Steps [2]int      `json:"steps"`
		First []pointJSON `json:"first"`
	}{A: a, B: b, Base: base, Equal: r.Equal(), Same: r.Same, Steps: r.Steps, First: []pointJSON{}}
	side := func(commits []*commit.Commit) []showJSON {
		list := []showJSON{}
		for _, c := range commits {
			list = append(list, showJSON{commitJSON: newCommit(Commit{Commit: c}), Content: newBlock(c.Block), Annotations: []annotationJSON{}})
		}
		return list
	}
	for _, p := range r.First {
		v.First = append(v.First, pointJSON{Part: p.Part, Step: p.Step, A: side(p.A), B: side(p.B)})
	}
	return v
}
