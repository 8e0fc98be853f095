// Package format prints histories, prompts and differences for people and for programs. It is
// the only package that prints stored text.
//
// For most uses, make a [Printer] with [New] and call its method for the value to print. For
// programs, pass the result of a function whose name ends in JSON to [Encode]. [Live] shows a
// response while it streams.
//
// Stored text never controls the terminal: the output has only printable characters, line feeds,
// tabs and the printer's own colors, unless [Options].Raw is set. The package reads no stores and
// does not query the terminal: the caller passes loaded values, and [Options] describe the
// terminal.
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

// Options describe the terminal, or other output, that a printer writes to.
type Options struct {
	Color      bool
	Background Background     // selects the background color of reasoning
	Width      int            // cells of the terminal; 0: no line is cut or filled
	Raw        bool           // write stored text unchanged
	Now        time.Time      // for times such as "2 hours ago"; zero: full dates
	Zone       *time.Location // of the dates; nil: UTC
}

// Printer writes for people. It is for one goroutine. The first write error stops it;
// [Printer.Err] returns it.
type Printer struct {
	w          io.Writer
	o          Options
	styles     *styles
	ownColored map[string]bool // the results of Accent, Dim and Warn
	err        error

	logged bool // Log wrote a commit in its long style
}

// New returns a printer that writes to w.
func New(w io.Writer, o Options) *Printer {
	if o.Zone == nil {
		o.Zone = time.UTC
	}
	return &Printer{w: w, o: o, styles: newStyles(o), ownColored: map[string]bool{}}
}

// Err returns the first error of writing, nil when there was none.
func (p *Printer) Err() error { return p.err }

// Text writes stored text, sanitized unless the printer is raw. Text from [Printer.Accent], Dim
// and Warn of this printer keeps its color. Text adds no line feed.
func (p *Printer) Text(s string) { p.writeCleaned(s, p.clean) }

// Line writes one line with stored text in it, such as a name; its line feeds are shown as \n.
func (p *Printer) Line(s string) {
	p.writeCleaned(s, func(s string) string {
		if p.o.Raw {
			return s
		}
		return Line(s)
	})
	p.write("\n")
}

// writeCleaned writes text: its stored parts cleaned, its colored parts unchanged.
func (p *Printer) writeCleaned(s string, clean func(string) string) {
	g := p.newBuffer()
	for _, part := range p.cleanPieces(s, clean) {
		g.add(part.render())
	}
	g.flush()
}

// Accent returns text of the program, such as the name of the current branch, in a highlighting
// color, for use in [Printer.Text] or a cell of [Printer.Table].
func (p *Printer) Accent(s string) string { return p.colorAndRemember(p.styles.accent, s) }

// Dim is Accent for less important text.
func (p *Printer) Dim(s string) string { return p.colorAndRemember(p.styles.dim, s) }

// Warn is Accent for text that needs attention.
func (p *Printer) Warn(s string) string { return p.colorAndRemember(p.styles.warn, s) }

// colorAndRemember colors text of the program and remembers the result, to distinguish its colors from
// those in stored text.
func (p *Printer) colorAndRemember(s style, text string) string {
	colored := colorize(s, Line(text))
	if p.o.Color && colored != "" {
		p.ownColored[colored] = true
	}
	return colored
}

func (p *Printer) write(s string) {
	if p.err == nil && s != "" {
		_, p.err = io.WriteString(p.w, s)
	}
}

// clean returns stored text as this printer shows it.
func (p *Printer) clean(s string) string {
	if p.o.Raw {
		return s
	}
	return Sanitize(s)
}

// cleanLine is clean for one line, without its line feed.
func (p *Printer) cleanLine(line string) string {
	return strings.TrimSuffix(p.clean(strings.TrimSuffix(line, "\n")+"\n"), "\n")
}

// gitTime is git's date format.
const gitTime = "Mon Jan 2 15:04:05 2006 -0700"

// fullTime returns a time in full.
func (p *Printer) fullTime(t time.Time) string { return t.In(p.o.Zone).Format(gitTime) }

// relativeTime returns a time relative to now, or in full when now is not known.
func (p *Printer) relativeTime(t time.Time) string {
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

// lineBuffer collects the output of one call of a printer, which flush writes at once.
type lineBuffer struct {
	*Printer
	b strings.Builder
}

func (p *Printer) newBuffer() *lineBuffer { return &lineBuffer{Printer: p} }

// flush writes the text of the buffer to the printer, and empties the buffer.
func (g *lineBuffer) flush() {
	g.write(g.b.String())
	g.b.Reset()
}

// add adds sanitized text.
func (g *lineBuffer) add(parts ...string) {
	for _, s := range parts {
		g.b.WriteString(s)
	}
}

// line adds a line of sanitized text.
func (g *lineBuffer) line(parts ...string) {
	g.add(parts...)
	g.add("\n")
}

// field adds a line with a name and stored text, if not empty. An empty name continues the field
// before.
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

// emptyLine adds an empty line.
func (g *lineBuffer) emptyLine() { g.add("\n") }

// textLines adds lines of stored text, indented.
func (g *lineBuffer) textLines(s style, text string) {
	for line := range lines(g.clean(text)) {
		g.styledLine(indent, s, line)
	}
}

// styledLine adds one line of text that is sanitized already, in a style.
func (g *lineBuffer) styledLine(indent string, s style, sanitized string) {
	if sanitized != "" {
		g.add(indent, colorize(s, sanitized))
	}
	g.add("\n")
}

// lines yields the lines of text, without their line feeds.
func lines(s string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for line := range strings.Lines(s) {
			if !yield(strings.TrimSuffix(line, "\n")) {
				return
			}
		}
	}
}
