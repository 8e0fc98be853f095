package format

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/priority"
)

// Show writes everything about one commit: header, changes, origin and content.
func (p *Printer) Show(c Commit) {
	g := p.newBuffer()
	c.Rev = "" // that is for lists
	g.commitLine(c)
	g.parentOrParentsField(c.Commit)
	g.kindField(c)
	g.field("Author", c.Author)
	g.field("Date", p.fullTime(c.Time))
	g.turnAndSizeFields(c)
	g.field("Key", c.Key.String())
	g.field("Label", c.Label.Text)
	g.pairFields("Meta", c.Label.Meta)
	g.originFields(c.Origin)
	g.wireFormFields(c.Block)
	g.purgedField(c.Commit)
	g.annotationAndEditLines(c.Notes)
	if c.Block != nil || c.Damaged != nil {
		g.emptyLine()
	}
	g.damagedLine(c.Damaged)
	g.commitContent(c.Commit)
	g.flush()
}

func (g *lineBuffer) parentOrParentsField(c *commit.Commit) {
	var ids []string
	for _, id := range c.Parents {
		ids = append(ids, id.Short())
	}
	name := "Parent"
	if len(ids) > 1 {
		name = "Parents"
	}
	g.field(name, strings.Join(ids, " "))
}

// turnAndSizeFields adds the turn and the index of a commit that appends a block, and its size.
func (g *lineBuffer) turnAndSizeFields(c Commit) {
	if c.Op == commit.Append {
		g.field("Turn", fmt.Sprintf("%d, block %d of its message", c.Turn, c.Index+1))
		size := sizeText(int(c.Size)) + ", about " + plural(estimatedTokens(c.Commit), "token")
		g.field("Size", size)
	}
}

// pairFields adds a field for each named value, sorted by name.
func (g *lineBuffer) pairFields(name string, values map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		g.field(name, key+"="+values[key])
		name = ""
	}
}

// originFields adds the fields of an origin.
func (g *lineBuffer) originFields(o *commit.Origin) {
	if o == nil {
		return
	}
	g.field("Source", string(o.Source))
	g.field("Session", o.Session)
	where := joinNonEmpty("/", o.Provider, o.Model)
	if about := joinNonEmpty(", ", o.Dialect, o.Endpoint); about != "" {
		where = strings.TrimSpace(where + " (" + about + ")")
	}
	g.field("Model", where)
	if !o.Usage.IsZero() {
		g.field("Usage", usageText(o.Usage))
	}
	g.field("Finish", o.Finish)
	if o.Incomplete {
		g.line(pad("", fieldWidth), colorize(g.styles.warn, "the response broke off"))
	}
	if o.UncommittedReasoning > 0 {
		g.field("Unkept", plural(o.UncommittedReasoning, "block")+" of reasoning, as requested")
	}
	g.field("Response", o.ResponseID)
	if !o.Manifest.IsZero() {
		g.field("Manifest", o.Manifest.String())
	}
	if !o.Started.IsZero() {
		g.field("Started", g.fullTime(o.Started))
	}
	if o.Duration > 0 {
		took := o.Duration.Round(time.Millisecond).String()
		if o.FirstToken > 0 {
			took += ", " + o.FirstToken.Round(time.Millisecond).String() + " until the first token"
		}
		g.field("Took", took)
	}
	g.pairFields("Settings", o.Settings)
	g.field("Importer", o.Importer)
	g.pairFields("Original", o.Original)
}

// wireFormFields adds the fields about the wire form of a block: format, item and seal.
func (g *lineBuffer) wireFormFields(b content.Block) {
	if b == nil {
		return
	}
	w := b.Form()
	if r, ok := b.(content.Reasoning); ok {
		g.field("Format", joinNonEmpty(", ", string(r.Format), r.Source))
	}
	g.field("Item", joinNonEmpty(" ", w.Type, w.ID))
	if !w.Seal.IsZero() {
		seal := w.Seal.Type.String() + ", " + sizeText(len(w.Seal.Data))
		if w.Seal.Minted != "" {
			seal += ", by " + w.Seal.Minted
		}
		g.field("Seal", seal)
	}
}

// annotationAndEditLines adds the annotations and edits of a commit.
func (g *lineBuffer) annotationAndEditLines(changes []*commit.Commit) {
	for i, n := range changes {
		name := ""
		if i == 0 {
			name = "Notes:"
		}
		text := "edited"
		if n.Op == commit.Annotate {
			text = levelName(n.Priority)
			if n.Block != nil && n.Block.String() != "" {
				text += ": " + oneLine(n.Block.String())
			}
		}
		by := joinNonEmpty(", ", Line(n.Author), g.relativeTime(n.Time))
		g.line(pad(name, fieldWidth), colorize(g.styles.id, n.ID.Short()), " ", colorize(g.styles.changed, text), colorize(g.styles.dim, " ("+by+")"))
	}
}

// levelName describes the priority that an annotation sets.
func levelName(l priority.Level) string {
	if l == priority.Unset {
		return "as its kind says"
	}
	return l.String()
}
