package format

import (
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/diff"
	"github.com/tract-vcs/tract/objects"
)

// DiffStyle selects the form of a difference.
type DiffStyle struct {
	Stat bool // one line for each block and a total, without the text
	Word bool // mark changes within lines; without color as [-old-]{+new+}
}

// marks are the marks of changed blocks and lines.
var marks = map[diff.Op]string{diff.Same: " ", diff.Remove: "-", diff.Add: "+", diff.Change: "~"}

// forOp returns the style of a changed block or line.
func (s *styles) forOp(op diff.Op) style {
	switch op {
	case diff.Remove:
		return s.removed
	case diff.Add:
		return s.added
	case diff.Change:
		return s.changed
	}
	return s.plain
}

// Diff writes the difference of two prompts: blocks of one side with - or +, changed blocks with
// ~ and their changed lines or words, and the numbers of unchanged blocks between them. Equal
// prompts print nothing.
func (p *Printer) Diff(d *diff.Diff, s DiffStyle) {
	if d.Equal() {
		return
	}
	if s.Stat {
		p.writeLinePerChangedBlockAndTotal(d)
		return
	}
	g := p.newBuffer()
	g.line(colorize(p.styles.head, "--- "+d.A.Short()))
	g.line(colorize(p.styles.head, "+++ "+d.B.Short()))
	same := 0
	for _, it := range d.Items {
		if it.Op == diff.Same {
			same++
			continue
		}
		g.unchangedBlocks(same)
		same = 0
		g.diffItem(it, s)
	}
	g.unchangedBlocks(same)
	g.flush()
}

// unchangedBlocks adds a line for n unchanged blocks.
func (g *lineBuffer) unchangedBlocks(n int) {
	if n > 0 {
		g.line(colorize(g.styles.dim, "  … "+plural(n, "block")+" the same"))
	}
}

// diffTitle is the heading of an item without its mark, and its ids.
func diffTitle(it diff.Item) (title, ids string) {
	b := it.B
	if b == nil {
		b = it.A
	}
	ids = editOrCommitID(b).Short()
	if it.A != nil && it.B != nil && editOrCommitID(it.A) != editOrCommitID(it.B) {
		ids = editOrCommitID(it.A).Short() + " → " + ids
	}
	return heading(b.Role, b.Content), ids
}

// editOrCommitID returns the commit that has the current text of a block: its edit, or its own commit.
func editOrCommitID(b *diff.Block) objects.ID {
	if !b.Edit.IsZero() {
		return b.Edit
	}
	return b.Commit
}

// diffItem adds a block that is not the same on both sides.
func (g *lineBuffer) diffItem(it diff.Item, s DiffStyle) {
	title, ids := diffTitle(it)
	g.line(colorize(g.styles.forOp(it.Op), marks[it.Op]+" "+title), " ", colorize(g.styles.id, ids))
	switch it.Op {
	case diff.Remove:
		g.oneSidedBlock(it.Op, it.A.Content)
	case diff.Add:
		g.oneSidedBlock(it.Op, it.B.Content)
	case diff.Change:
		g.changedBlock(it, s)
	}
}

// textOrTitle returns the text of a block, or a title for a block without text.
func textOrTitle(b content.Block) string {
	if text := b.String(); text != "" && b.Kind() != content.KindImage && b.Kind() != content.KindFile {
		return text
	}
	line, _ := unsanitizedSummary(b)
	return line
}

// oneSidedBlock adds the lines of a block that one side has.
func (g *lineBuffer) oneSidedBlock(op diff.Op, b content.Block) {
	s := g.opStyleUnlessReasoning(op, b)
	for line := range lines(g.clean(textOrTitle(b))) {
		g.markedLine(s, op, line)
	}
}

// opStyleUnlessReasoning returns the style of a line of b: dim for reasoning, otherwise that of op.
func (g *lineBuffer) opStyleUnlessReasoning(op diff.Op, b content.Block) style {
	if b.Kind() == content.KindReasoning {
		return g.styles.dim
	}
	return g.styles.forOp(op)
}

// changedBlock adds the changes of a block that both sides have.
func (g *lineBuffer) changedBlock(it diff.Item, s DiffStyle) {
	a, b := textOrTitle(it.A.Content), textOrTitle(it.B.Content)
	others := differingFieldsExceptText(it.A.Content, it.B.Content)
	if strings.HasSuffix(a, "\n") != strings.HasSuffix(b, "\n") {
		a, b = strings.TrimSuffix(a, "\n"), strings.TrimSuffix(b, "\n")
		others = append(others, "line feed at the end")
	}
	if a == b {
		g.line(colorize(g.styles.dim, "    the same words; what differs: "+strings.Join(others, ", ")))
		return
	}
	others = slices.DeleteFunc(others, func(field string) bool { return field == "parts" }) // they are the text
	// With a line feed at the end, the last line compares equal to the same line in the middle.
	a, b = a+"\n", b+"\n"
	spans := diff.Texts(a, b, diff.TextOptions{Words: s.Word})
	if s.Word {
		g.addWordDiff(spans, it.B.Content)
	} else {
		g.addLineDiff(spans, it.B.Content)
	}
	if len(others) > 0 {
		g.line(colorize(g.styles.dim, "    also differs: "+strings.Join(others, ", ")))
	}
}

// differingFieldsExceptText returns the names of the fields in which two blocks of a kind differ, except
// their text.
func differingFieldsExceptText(a, b content.Block) []string {
	list := appendDifferingExceptText(nil, reflect.ValueOf(a.Form()), reflect.ValueOf(b.Form()))
	return appendDifferingExceptText(list, reflect.ValueOf(a), reflect.ValueOf(b))
}

// appendDifferingExceptText appends the names of the fields in which two structs of one type differ,
// without the fields of the text.
func appendDifferingExceptText(list []string, a, b reflect.Value) []string {
	if a.Kind() != reflect.Struct || a.Type() != b.Type() {
		return list
	}
	for i := range a.NumField() {
		f := a.Type().Field(i)
		if f.Anonymous || !f.IsExported() || slices.Contains([]string{"Text", "Arguments", "JSON"}, f.Name) {
			continue
		}
		if !reflect.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()) {
			list = append(list, strings.ToLower(wordBorder.ReplaceAllString(f.Name, "$1 $2")))
		}
	}
	return list
}

// wordBorder matches where a word ends in a field name such as CallID.
var wordBorder = regexp.MustCompile(`([a-z])([A-Z])`)

// writeLinePerChangedBlockAndTotal writes a line for each block that is not the same, and the total.
func (p *Printer) writeLinePerChangedBlockAndTotal(d *diff.Diff) {
	var rows [][]cell
	for _, it := range d.Items {
		if it.Op == diff.Same {
			continue
		}
		title, ids := diffTitle(it)
		change := styledCell(p.styles.plain, tokenChange(it))
		change.right = true
		b := it.B
		if b == nil {
			b = it.A
		}
		rows = append(rows, []cell{
			styledCell(p.styles.forOp(it.Op), marks[it.Op]+" "+title), styledCell(p.styles.id, ids), change, styledCell(p.styles.plain, Summary(b.Content, summaryCells)),
		})
	}
	g := p.newBuffer()
	g.table(rows)
	st := d.Stat
	summary := plural(st.Changed, "block") + " changed, " + thousands(int64(st.Added)) + " added, " + thousands(int64(st.Removed)) + " removed, " + thousands(int64(st.Same)) + " the same"
	g.line(summary, "; ", thousands(int64(st.TokensA)), " → ", thousands(int64(st.TokensB)), " tokens")
	g.flush()
}

// tokenChange returns the change in tokens of an item, with its sign.
func tokenChange(it diff.Item) string {
	n := 0
	if it.A != nil {
		n -= it.A.Tokens
	}
	if it.B != nil {
		n += it.B.Tokens
	}
	if n > 0 {
		return "+" + thousands(int64(n))
	}
	return thousands(int64(n))
}

// History writes the commits that only one of two histories has, - for A and + for B, newest
// first, and the merge base.
func (p *Printer) History(h *diff.History) {
	g := p.newBuffer()
	for _, side := range []struct {
		op   diff.Op
		only []*commit.Commit
	}{{diff.Remove, h.OnlyA}, {diff.Add, h.OnlyB}} {
		for _, c := range side.only {
			g.add(colorize(p.styles.forOp(side.op), marks[side.op]), " ", colorize(p.styles.id, c.ID.Short()), " ")
			g.endLineWithTitleAndContentSummary("+ 1234567 ", kindOrEffect(c), Commit{Commit: c})
		}
	}
	switch {
	case len(h.OnlyA)+len(h.OnlyB) == 0:
	case h.Base.IsZero():
		g.line(colorize(p.styles.dim, "no commit in common"))
	default:
		g.line(colorize(p.styles.dim, "both from "), colorize(p.styles.id, h.Base.Short()))
	}
	g.flush()
}
