package format

import (
	"errors"

	"github.com/tract-vcs/tract/objects"
)

// damagedText returns the text that is shown in place of content that cannot be read.
func damagedText(err error) string {
	if c := (*objects.CorruptError)(nil); errors.As(err, &c) && c.Cause != nil {
		err = c.Cause
	}
	return "[damaged: " + err.Error() + "]"
}

// damagedJSON returns the error of reading a commit for programs; empty: there is none.
func damagedJSON(err error) string {
	if err == nil {
		return ""
	}
	if c := (*objects.CorruptError)(nil); errors.As(err, &c) {
		err = c
	}
	return validUTF8(err.Error())
}

// damagedLine adds a line with the error of reading a commit, if there is one.
func (g *lineBuffer) damagedLine(err error) {
	if err != nil {
		g.line(indent, colorize(g.styles.warn, g.flatten(damagedText(err))))
	}
}

// summary returns the content in one line, followed by markIfMore if it has more lines.
func (c Commit) summary(width int, markIfMore string) string {
	if c.Damaged != nil && c.Block == nil {
		return truncate(oneLine(clipBytes(damagedText(c.Damaged), width)), width)
	}
	return summaryOrPurged(c.Block, c.Tombstone, width, markIfMore)
}
