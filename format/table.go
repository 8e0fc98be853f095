package format

import (
	"strings"

	"github.com/clipperhouse/displaywidth"
)

// gutter lies between two columns.
const gutter = "  "

// Table writes rows of sanitized cells in aligned columns and cuts the last column to the width.
func (p *Printer) Table(rows [][]string) {
	shown := make([][]cell, len(rows))
	for i, row := range rows {
		for _, text := range row {
			shown[i] = append(shown[i], p.cell(text))
		}
	}
	g := p.buffer()
	g.table(shown)
	g.end()
}

type cell struct {
	pieces []piece
	right  bool // aligned right
}

// piece is sanitised text in one ink.
type piece struct {
	ink     style
	text    string
	painted string // the text with its colour, when it has that already
}

// styledCell is a cell of sanitised text.
func styledCell(i style, text string) cell { return cell{pieces: []piece{{ink: i, text: text}}} }

// show is the piece in its ink.
func (p piece) show() string {
	if p.painted != "" {
		return p.painted
	}
	return paint(p.ink, p.text)
}

func (p *Printer) cell(text string) cell { return cell{pieces: p.pieces(text, p.flat)} }

// pieces splits text into stored text, cleaned, and text that this printer painted.
func (p *Printer) pieces(text string, clean func(string) string) []piece {
	var list []piece
	for text != "" {
		at, own := p.findOwn(text)
		if at > 0 {
			list = append(list, piece{ink: p.styles.plain, text: clean(text[:at])})
		}
		if own != "" {
			list = append(list, piece{ink: p.styles.plain, text: stripPaint(own), painted: own})
		}
		text = text[at+len(own):]
	}
	return list
}

// flat is stored text as one line without tabs.
func (p *Printer) flat(s string) string {
	if !p.o.Raw {
		s = Line(s)
	}
	return strings.ReplaceAll(s, "\t", " ")
}

// findOwn returns the first text that this printer painted and its index, or the length of text.
func (p *Printer) findOwn(text string) (at int, own string) {
	if len(p.painted) == 0 {
		return len(text), ""
	}
	for at := strings.IndexByte(text, esc); at >= 0; {
		if own := text[at : at+paintedLen(text[at:])]; p.painted[own] {
			return at, own
		}
		next := strings.IndexByte(text[at+1:], esc)
		if next < 0 {
			break
		}
		at += 1 + next
	}
	return len(text), ""
}

const esc = 0x1b

// paintedLen returns the length of the painted text at the start of s.
func paintedLen(s string) int {
	end := strings.IndexByte(s[1:], esc) + 1
	if end == 0 {
		return 0
	}
	return end + strings.IndexByte(s[end:], 'm') + 1
}

// stripPaint returns painted text without its color.
func stripPaint(s string) string {
	s = s[strings.IndexByte(s, 'm')+1:]
	return s[:strings.IndexByte(s, esc)]
}

func (c cell) width() int {
	w := 0
	for _, p := range c.pieces {
		w += displaywidth.String(p.text)
	}
	return w
}

// show is the cell in at most limit cells; 0: all of it.
func (c cell) show(limit int) string {
	var b strings.Builder
	if limit > 0 && c.width() <= limit {
		limit = 0
	}
	for _, p := range c.pieces {
		if limit == 0 {
			b.WriteString(p.show())
			continue
		}
		shown := p
		if text := truncate(p.text, limit); text != p.text {
			shown = piece{ink: p.ink, text: text}
		}
		b.WriteString(shown.show())
		if limit -= displaywidth.String(shown.text); limit <= 0 || shown.text != p.text {
			break
		}
	}
	return b.String()
}

// table adds rows in columns.
func (g *lineBuffer) table(rows [][]cell) {
	var widths []int
	for _, row := range rows {
		for j, c := range row {
			if j == len(widths) {
				widths = append(widths, 0)
			}
			if j < len(row)-1 || c.right {
				widths[j] = max(widths[j], c.width())
			}
		}
	}
	for _, row := range rows {
		g.tableRow(row, widths)
	}
}

func (g *lineBuffer) tableRow(row []cell, widths []int) {
	from, gap := 0, ""
	for j, c := range row {
		blank := strings.Repeat(" ", max(widths[j]-c.width(), 0))
		last := j == len(row)-1
		limit := 0
		if last && g.o.Width > 0 {
			limit = max(g.o.Width-from, minLastColumn)
		}
		shown := c.show(limit)
		if shown != "" && c.right {
			shown, blank = blank+shown, ""
		}
		if shown != "" {
			g.add(gap, shown)
			gap = ""
		}
		gap += blank + gutter
		from += widths[j] + len(gutter)
	}
	g.add("\n")
}

// minLastColumn is what is left of the last column on the narrowest terminal.
const minLastColumn = 8
