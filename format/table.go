package format

import (
	"strings"

	"github.com/clipperhouse/displaywidth"
)

// gutter is the space between two columns.
const gutter = "  "

// Table writes rows of sanitized cells in aligned columns and cuts the last column to the width.
func (p *Printer) Table(rows [][]string) {
	shown := make([][]cell, len(rows))
	for i, row := range rows {
		for _, text := range row {
			shown[i] = append(shown[i], p.cleanCell(text))
		}
	}
	g := p.newBuffer()
	g.table(shown)
	g.flush()
}

type cell struct {
	pieces []piece
	right  bool // aligned right
}

// piece is sanitized text in one style.
type piece struct {
	style   style
	text    string
	colored string // the text in its color, when this printer has colored it before
}

// styledCell returns a cell of text that is sanitized already.
func styledCell(s style, sanitized string) cell {
	return cell{pieces: []piece{{style: s, text: sanitized}}}
}

// render returns the piece in its style.
func (p piece) render() string {
	if p.colored != "" {
		return p.colored
	}
	return colorize(p.style, p.text)
}

func (p *Printer) cleanCell(text string) cell { return cell{pieces: p.cleanPieces(text, p.flatten)} }

// cleanPieces splits text into stored text, cleaned, and text that this printer colored.
func (p *Printer) cleanPieces(text string, clean func(string) string) []piece {
	var list []piece
	for text != "" {
		before, colored, rest := p.cutOwnColored(text)
		if before != "" {
			list = append(list, piece{style: p.styles.plain, text: clean(before)})
		}
		if colored != "" {
			list = append(list, piece{style: p.styles.plain, text: textOfColored(colored), colored: colored})
		}
		text = rest
	}
	return list
}

// flatten returns stored text as one line without tabs.
func (p *Printer) flatten(s string) string {
	if !p.o.Raw {
		s = Line(s)
	}
	return strings.ReplaceAll(s, "\t", " ")
}

// cutOwnColored slices text around the first text in it that this printer colored. When there is
// none, it returns text, "", "".
func (p *Printer) cutOwnColored(text string) (before, colored, rest string) {
	if len(p.ownColored) == 0 {
		return text, "", ""
	}
	for at := strings.IndexByte(text, esc); at >= 0; {
		end := at + coloredTextLen(text[at:])
		if colored := text[at:end]; p.ownColored[colored] {
			return text[:at], colored, text[end:]
		}
		next := strings.IndexByte(text[at+1:], esc)
		if next < 0 {
			break
		}
		at += 1 + next
	}
	return text, "", ""
}

const esc = 0x1b

// coloredTextLen returns the length in bytes of the colored text at the start of s, with its escape
// sequences.
func coloredTextLen(s string) int {
	end := strings.IndexByte(s[1:], esc) + 1
	if end == 0 {
		return 0
	}
	return end + strings.IndexByte(s[end:], 'm') + 1
}

// textOfColored returns the text in colored, the result of one colorize.
func textOfColored(colored string) string {
	text := colored[strings.IndexByte(colored, 'm')+1:]
	return text[:strings.IndexByte(text, esc)]
}

func (c cell) width() int {
	w := 0
	for _, p := range c.pieces {
		w += displaywidth.String(p.text)
	}
	return w
}

// render returns the content of the table cell, cut to limit terminal cells; 0: not cut.
func (c cell) render(limit int) string {
	var b strings.Builder
	if limit > 0 && c.width() <= limit {
		limit = 0
	}
	for _, p := range c.pieces {
		if limit == 0 {
			b.WriteString(p.render())
			continue
		}
		shown := p
		if text := truncate(p.text, limit); text != p.text {
			shown = piece{style: p.style, text: text}
		}
		b.WriteString(shown.render())
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

// tableRow adds one row.
func (g *lineBuffer) tableRow(row []cell, widths []int) {
	from, gap := 0, ""
	for j, c := range row {
		blank := strings.Repeat(" ", max(widths[j]-c.width(), 0))
		last := j == len(row)-1
		limit := 0
		if last && g.o.Width > 0 {
			limit = max(g.o.Width-from, minLastColumn)
		}
		shown := c.render(limit)
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

// minLastColumn is the least width of the last column, on a narrow terminal too.
const minLastColumn = 8
