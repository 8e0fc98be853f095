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
	w       io.Writer
	o       Options
	styles  *styles
	painted map[string]bool // what Accent, Dim and Warn made
	err     error

	logged bool // Log wrote a commit in its long style
}

// New gives a printer that writes to w.
func New(w io.Writer, o Options) *Printer {
	if o.Zone == nil {
		o.Zone = time.UTC
	}
	return &Printer{w: w, o: o, styles: newPalette(o), painted: map[string]bool{}}
}

// Err is the first error of writing, nil when there was none.
func (p *Printer) Err() error { return p.err }

// Text writes stored text as it is shown: sanitised, unless the printer is raw.
// What [Printer.Accent] and its like of this printer made keeps its colour. It
// adds no line feed.
func (p *Printer) Text(s string) { p.writeCleaned(s, p.clean) }

// Line writes one line that has stored text in it, such as a name or an id: a
// line feed of that text is shown as \n. It ends the line.
func (p *Printer) Line(s string) {
	p.writeCleaned(s, func(s string) string {
		if p.o.Raw {
			return s
		}
		return Line(s)
	})
	p.write("\n")
}

func (p *Printer) writeCleaned(s string, clean func(string) string) {
	g := p.buffer()
	for _, part := range p.pieces(s, clean) {
		g.add(part.show())
	}
	g.end()
}

// Accent highlights own words, such as the current branch. It is for words that
// are no stored text, and may be part of a [Printer.Text] or of a cell of a
// [Printer.Table].
func (p *Printer) Accent(s string) string { return p.paintOwn(p.styles.accent, s) }

// Dim is Accent for words that matter less.
func (p *Printer) Dim(s string) string { return p.paintOwn(p.styles.dim, s) }

// Warn is Accent for words that ask for attention.
func (p *Printer) Warn(s string) string { return p.paintOwn(p.styles.warn, s) }

// paintOwn paints own words and remembers them, so that their colour can be
// told from one that stored text brings.
func (p *Printer) paintOwn(i style, s string) string {
	painted := paint(i, Line(s))
	if p.o.Color && painted != "" {
		p.painted[painted] = true
	}
	return painted
}

func (p *Printer) write(s string) {
	if p.err == nil && s != "" {
		_, p.err = io.WriteString(p.w, s)
	}
}

// clean is stored text as this printer shows it.
func (p *Printer) clean(s string) string {
	if p.o.Raw {
		return s
	}
	return Sanitize(s)
}

// cleanLine is one line of stored text, without its end.
func (p *Printer) cleanLine(line string) string {
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
			return plural(n, unit.name) + " ago"
		}
	}
	return ""
}

// lineBuffer is what one call of a printer writes, at once.
type lineBuffer struct {
	*Printer
	b strings.Builder
}

func (p *Printer) buffer() *lineBuffer { return &lineBuffer{Printer: p} }

// end writes the page.
func (g *lineBuffer) end() { g.write(g.b.String()) }

// add adds words that are sanitised, or ours.
func (g *lineBuffer) add(words ...string) {
	for _, s := range words {
		g.b.WriteString(s)
	}
}

// line adds a line of words that are sanitised, or ours.
func (g *lineBuffer) line(words ...string) {
	g.add(words...)
	g.add("\n")
}

// field adds a line with a name and stored text, if there is any. Without a
// name it goes on with the field before it.
func (g *lineBuffer) field(name, value string) {
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
func (g *lineBuffer) gap() { g.add("\n") }

// text adds lines of stored text.
func (g *lineBuffer) text(indent string, i style, s string) {
	for line := range lines(g.clean(s)) {
		g.row(indent, i, line)
	}
}

// row adds one line of sanitised text.
func (g *lineBuffer) row(indent string, i style, line string) {
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
