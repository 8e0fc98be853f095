package format

import (
	"errors"

	"github.com/tract-vcs/tract/objects"
)

// damagedText replaces content that cannot be read.
func damagedText(err error) string {
	if c := (*objects.CorruptError)(nil); errors.As(err, &c) && c.Cause != nil {
		err = c.Cause
	}
	return "[damaged: " + err.Error() + "]"
}

// damagedJSON is what cannot be read of a commit; empty: nothing.
func damagedJSON(err error) string {
	if err == nil {
		return ""
	}
	if c := (*objects.CorruptError)(nil); errors.As(err, &c) {
		err = c
	}
	return validUTF8(err.Error())
}

// damaged adds that something of a commit cannot be read, on a line of its own.
func (g *lineBuffer) damaged(err error) {
	if err != nil {
		g.line(indent, paint(g.styles.warn, g.flat(damagedText(err))))
	}
}

// summary is the content in one line, with mark if there are more.
func (c Commit) summary(width int, mark string) string {
	if c.Damaged != nil && c.Block == nil {
		return truncate(oneLine(clipBytes(damagedText(c.Damaged), width)), width)
	}
	return summaryOf(c.Block, c.Tombstone, width, mark)
}
