// Package format is the pen: it writes histories, prompts and differences, for
// people and for programs. It is the only place that prints stored text.
//
// For most uses: make a [Printer] with [New] for a stream and call its method
// for what is to be shown. For programs, [Encode] what the functions ending in
// JSON give. An answer that is still coming is shown by a [Live].
//
// Stored text never controls the terminal: whatever a commit holds, what leaves
// here is letters, line feeds, tabs and the printer's own colours, unless
// [Options].Raw says otherwise. The package knows no terminal: what there is to
// know of one is in the Options.
package format

import (
	"io"
	"strings"
	"time"
)

// Background is whether the terminal is dark or light.
type Background uint8

// The backgrounds.
const (
	Unknown Background = iota
	Dark
	Light
)

// Options is what a printer has to know of where it writes.
type Options struct {
	Color      bool
	Background Background     // for the shade of thoughts
	Width      int            // cells of the terminal; 0: no line is cut or filled
	Raw        bool           // stored text as it is
	Now        time.Time      // for "2 hours ago"; zero: dates instead
	Zone       *time.Location // of the dates; nil: UTC
}

// Printer writes for people. It is for one goroutine. An error of writing stops
// it; [Printer.Err] has the first.
type Printer struct {
	w    io.Writer
	o    Options
	ink  *palette
	own  map[string]bool // what Accent, Dim and Warn made
	fail error

	logged bool // Log wrote a commit in its long style
}

// New gives a printer that writes to w.
func New(w io.Writer, o Options) *Printer {
	if o.Zone == nil {
		o.Zone = time.UTC
	}
	return &Printer{w: w, o: o, ink: newPalette(o), own: map[string]bool{}}
}

// Err is the first error of writing, nil when there was none.
func (p *Printer) Err() error { return p.fail }

// Text writes stored text as it is shown: sanitised, unless the printer is raw.
// What [Printer.Accent] and its like of this printer made keeps its colour. It
// adds no line feed.
func (p *Printer) Text(s string) { p.say(s, p.clean) }

// Line writes one line that has stored text in it, such as a name or an id: a
// line feed of that text is shown as \n. It ends the line.
func (p *Printer) Line(s string) {
	p.say(s, func(s string) string {
		if p.o.Raw {
			return s
		}
		return Line(s)
	})
	p.write("\n")
}

func (p *Printer) say(s string, clean func(string) string) {
	g := p.page()
	for _, part := range p.pieces(s, clean) {
		g.add(part.show())
	}
	g.end()
}

// Accent highlights own words, such as the current branch. It is for words that
// are no stored text, and may be part of a [Printer.Text] or of a cell of a
// [Printer.Table].
func (p *Printer) Accent(s string) string { return p.mine(p.ink.accent, s) }

// Dim is Accent for words that matter less.
func (p *Printer) Dim(s string) string { return p.mine(p.ink.dim, s) }

// Warn is Accent for words that ask for attention.
func (p *Printer) Warn(s string) string { return p.mine(p.ink.warn, s) }

// mine paints own words and remembers them, so that their colour can be
// told from one that stored text brings.
func (p *Printer) mine(i ink, s string) string {
	painted := paint(i, Line(s))
	if p.o.Color && painted != "" {
		p.own[painted] = true
	}
	return painted
}

func (p *Printer) write(s string) {
	if p.fail == nil && s != "" {
		_, p.fail = io.WriteString(p.w, s)
	}
}

// clean is stored text as this printer shows it.
func (p *Printer) clean(s string) string {
	if p.o.Raw {
		return s
	}
	return Sanitize(s)
}

// one is one line of stored text, without its end.
func (p *Printer) one(line string) string {
	return strings.TrimSuffix(p.clean(strings.TrimSuffix(line, "\n")+"\n"), "\n")
}

// gitTime is how git writes a date.
const gitTime = "Mon Jan 2 15:04:05 2006 -0700"

// date is a time in full.
func (p *Printer) date(t time.Time) string { return t.In(p.o.Zone).Format(gitTime) }

// when is a time as people say it, where it is known what time it is.
func (p *Printer) when(t time.Time) string {
	ago := p.o.Now.Sub(t)
	if p.o.Now.IsZero() || ago < 0 {
		return t.In(p.o.Zone).Format("2006-01-02 15:04:05 -0700")
	}
	for _, unit := range []struct {
		of   time.Duration
		upTo int
		name string
	}{
		{time.Second, 90, "second"},
		{time.Minute, 90, "minute"},
		{time.Hour, 36, "hour"},
		{24 * time.Hour, 14, "day"},
		{7 * 24 * time.Hour, 10, "week"},
		{30 * 24 * time.Hour, 24, "month"},
		{365 * 24 * time.Hour, 1 << 20, "year"},
	} {
		if n := int(ago / unit.of); n < unit.upTo {
			return many(n, unit.name) + " ago"
		}
	}
	return ""
}

// page is what one call of a printer writes, at once.
type page struct {
	*Printer
	b strings.Builder
}

func (p *Printer) page() *page { return &page{Printer: p} }

// end writes the page.
func (g *page) end() { g.write(g.b.String()) }

// add adds words that are sanitised, or ours.
func (g *page) add(words ...string) {
	for _, s := range words {
		g.b.WriteString(s)
	}
}

// line adds a line of words that are sanitised, or ours.
func (g *page) line(words ...string) {
	g.add(words...)
	g.add("\n")
}

// field adds a line with a name and stored text, if there is any. Without a
// name it goes on with the field before it.
func (g *page) field(name, value string) {
	if value == "" {
		return
	}
	if name != "" {
		name += ":"
	}
	g.line(pad(name, fieldWidth), Line(value))
}

// fieldWidth is where the values of fields begin.
const fieldWidth = 10

// gap adds an empty line.
func (g *page) gap() { g.add("\n") }

// text adds lines of stored text.
func (g *page) text(indent string, i ink, s string) {
	for line := range lines(g.clean(s)) {
		g.row(indent, i, line)
	}
}

// row adds one line of sanitised text.
func (g *page) row(indent string, i ink, line string) {
	if line != "" {
		g.add(indent, paint(i, line))
	}
	g.add("\n")
}

// lines cuts text into lines, without their ends.
func lines(s string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for line := range strings.Lines(s) {
			if !yield(strings.TrimSuffix(line, "\n")) {
				return
			}
		}
	}
}
