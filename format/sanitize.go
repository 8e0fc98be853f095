package format

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// How text is sanitized. Stored text comes from models, tools and logs, and a terminal obeys control
// sequences in it, so every rune that is not plainly visible is replaced by an escape. firstUnsafeIndex
// finds the next rune to escape: control characters, the invisible runes of isInvisible, and
// invalid UTF-8. Two kinds of invisible runes are kept where text needs them: a variation selector
// after a visible rune, and a joiner between letters of a cursive script or between emoji. Both
// depend on the rune before, so firstUnsafeIndex and the escaper remember it. The escaper accepts a text
// in pieces, as a stream brings it; completePrefixLen tells how much of a piece can be shown before the
// next one arrives.

// Sanitize returns text that cannot control a terminal or hide anything. Letters, marks, line
// feeds, tabs, and joiners that a script or an emoji needs are kept. Control characters,
// bidirectional controls, other invisible characters and invalid UTF-8 become escapes: \x1b,
// \u202e, \U000e0041, \xff. CR LF becomes a line feed.
func Sanitize(s string) string {
	i := firstUnsafeIndex(s, 0, textStart)
	if i == len(s) {
		return s
	}
	var e escaper
	return string(e.appendEscaped(make([]byte, 0, len(s)+16), s))
}

// Line is Sanitize for one line: line feeds become \n.
func Line(s string) string {
	return strings.ReplaceAll(Sanitize(s), "\n", `\n`)
}

// textStart stands for the rune before a text.
const textStart = '\n'

// firstUnsafeIndex returns the index of the first byte of s, from i on, that must be escaped. before
// is the rune before s[i].
func firstUnsafeIndex(s string, i int, before rune) int {
	for i < len(s) {
		if c := s[i]; c < utf8.RuneSelf {
			if c < ' ' && c != '\n' && c != '\t' || c == 0x7f {
				return i
			}
			before = rune(c)
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			return i
		case isJoiner(r) && joinsNeighbours(r, before, s[i+size:]): // kept, although it is invisible
		case isInvisible(r) || isVariationSelector(r) && !canTakeSelector(before):
			return i
		}
		before = r
		i += size
	}
	return i
}

// isInvisible reports whether a rune that is not printable ASCII has no shape or changes the
// order of others.
func isInvisible(r rune) bool {
	switch {
	case r < 0xa0: // DEL, C1
		return true
	case r < 0x34f:
		return r == 0xad
	case r < 0x600 && r > 0x34f, r < 0xfdd0 && r > 0x3164: // a fast path for most letters
		return false
	}
	return unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Noncharacter_Code_Point, invisible)
}

// invisible has runes that Unicode counts as letters, marks or unassigned, and fonts show as
// nothing.
var invisible = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x034f, Hi: 0x034f, Stride: 1}, // combining grapheme joiner
		{Lo: 0x115f, Hi: 0x1160, Stride: 1}, // Hangul fillers
		{Lo: 0x17b4, Hi: 0x17b5, Stride: 1}, // Khmer inherent vowels
		{Lo: 0x180b, Hi: 0x180f, Stride: 1}, // Mongolian selectors
		{Lo: 0x2065, Hi: 0x2065, Stride: 1},
		{Lo: 0x3164, Hi: 0x3164, Stride: 1}, // Hangul filler
		{Lo: 0xffa0, Hi: 0xffa0, Stride: 1}, // likewise, half width
		{Lo: 0xfff0, Hi: 0xfff8, Stride: 1},
	},
	R32: []unicode.Range32{
		{Lo: 0xe0000, Hi: 0xe0fff, Stride: 1}, // tags and variation selectors
	},
}

// isVariationSelector reports whether a rune selects the shape of the rune before it, text or
// emoji. A row of them could hide bytes.
func isVariationSelector(r rune) bool { return 0xfe00 <= r && r <= 0xfe0f }

// canTakeSelector reports whether a variation selector can follow r.
func canTakeSelector(r rune) bool { return r > ' ' && !isVariationSelector(r) }

// The joiners: they choose how the letters on both sides of them are written, or
// make one emoji of several.
const (
	nonJoiner  = 0x200c
	joiner     = 0x200d
	joinerSize = 3 // bytes
)

func isJoiner(r rune) bool { return r == nonJoiner || r == joiner }

// joinsNeighbours reports whether a joiner has an effect between before and the text after:
// between letters of a cursive script, or between emoji.
func joinsNeighbours(r, before rune, after string) bool {
	next, _ := utf8.DecodeRuneInString(after)
	if r == joiner && (isEmoji(before) || before == emojiShape) && isEmoji(next) {
		return true
	}
	return unicode.In(before, cursive...) && !isInvisible(before) && unicode.In(next, cursive...) && unicode.IsLetter(next)
}

// cursive has the scripts whose letters change their shape beside each other.
var cursive = []*unicode.RangeTable{
	unicode.Arabic, unicode.Syriac, unicode.Mandaic, unicode.Nko, unicode.Mongolian, unicode.Adlam,
	unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi, unicode.Gujarati, unicode.Oriya, unicode.Tamil,
	unicode.Telugu, unicode.Kannada, unicode.Malayalam, unicode.Sinhala, unicode.Khmer, unicode.Myanmar,
}

// emojiShape is the variation selector that makes an emoji of a symbol.
const emojiShape = 0xfe0f

// isEmoji reports whether r can be part of an emoji sequence: a pictograph, an arrow or sign, or
// a skin tone.
func isEmoji(r rune) bool {
	return 0x2190 <= r && r <= 0x2bff || 0x1f000 <= r && r <= 0x1faff
}

// escaper sanitizes a text that arrives in pieces.
type escaper struct {
	before rune // 0: nothing came yet
}

// appendEscaped appends the sanitized form of s. Each piece is taken as complete: a rune cut between
// pieces is shown as bytes.
func (e *escaper) appendEscaped(dst []byte, s string) []byte {
	before := e.before
	if before == 0 {
		before = textStart
	}
	for i := 0; i < len(s); {
		end := firstUnsafeIndex(s, i, before)
		if end > i {
			dst = append(dst, s[i:end]...)
			before, _ = utf8.DecodeLastRuneInString(s[i:end])
		}
		if i = end; i == len(s) {
			break
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '\r' && i+1 < len(s) && s[i+1] == '\n':
		case r < 0x80 || r == utf8.RuneError && size == 1:
			dst, before = fmt.Appendf(dst, `\x%02x`, s[i]), '0'
		default:
			dst, before = appendGoEscape(dst, r), '0'
		}
		i += size
	}
	e.before = before
	return dst
}

// appendGoEscape appends a rune as an escape of Go, such as \u200b.
func appendGoEscape(dst []byte, r rune) []byte {
	if r > 0xffff {
		return fmt.Appendf(dst, `\U%08x`, r)
	}
	return fmt.Appendf(dst, `\u%04x`, r)
}

// completePrefixLen returns the length of the part of s that can be shown before more text arrives:
// all but a possibly cut rune or CR LF, or a joiner, at its end.
func completePrefixLen(s string) int {
	if strings.HasSuffix(s, "\r") {
		return len(s) - 1
	}
	end := len(s)
	for n := 1; n < utf8.UTFMax && n <= len(s); n++ {
		if c := s[len(s)-n]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRuneInString(s[len(s)-n:]) {
				end -= n
			}
			break
		}
	}
	if r, _ := utf8.DecodeLastRuneInString(s[:end]); isJoiner(r) {
		end -= joinerSize
	}
	return end
}
