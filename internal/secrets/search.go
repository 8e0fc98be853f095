package secrets

import (
	"cmp"
	"html"
	"slices"
	"strings"
)

// Long texts are searched in overlapping windows, so that memory stays small. A secret
// has at most maxSecret bytes, escapes included; one that begins in the overlap is whole
// in one of the two windows.
const (
	window    = 1 << 20
	overlap   = 128 << 10
	maxSecret = overlap / 2
)

// minText is the shortest text that a secret may be found in: a name, a sign and six bytes.
const minText = len("pwd=") + 6

// maxDepth is how many levels of escapes are decoded.
const maxDepth = 5

// findSpans lists the secrets of a text, in order and without overlap.
func findSpans(text string) []span {
	if len(text) < minText {
		return nil
	}
	return searchInWindows(text, automaton().scan)
}

// searchInWindows lists what scan finds in a text and in the unescaped text, in order and without
// overlap.
func searchInWindows(text string, scan func(*searchedText)) []span {
	var all []span
	for from := 0; ; from += window - overlap {
		to := min(from+window, len(text))
		begin, end := from+overlap/2, to-overlap/2
		if from == 0 {
			begin = 0
		}
		if to == len(text) {
			end = to
		}
		for _, s := range searchWindow(text[from:to], 0, scan) {
			if s.start += from; s.start >= begin && s.start < end {
				s.end += from
				all = append(all, s)
			}
		}
		if to == len(text) {
			return sortAndMerge(all)
		}
	}
}

// searchWindow lists what scan finds in one window of a text and in the unescaped window. The spans
// are neither sorted nor merged.
func searchWindow(text string, depth int, scan func(*searchedText)) (unmerged []span) {
	t := &searchedText{text: text}
	scan(t)
	spans := t.spans
	if depth == maxDepth {
		return spans
	}
	plain, shifts := unescapeOneKind(text)
	if len(shifts) == 0 {
		return spans
	}
	for _, s := range searchWindow(plain, depth+1, scan) {
		s.start, s.end = rawPosition(shifts, s.start), rawPosition(shifts, s.end)
		spans = append(spans, s)
	}
	return spans
}

// sortAndMerge sorts spans and joins those that overlap. A joined span has the rule that is
// first in the table, which is the most exact one.
func sortAndMerge(spans []span) []span {
	if len(spans) == 0 {
		return nil
	}
	rank := ranks()
	slices.SortFunc(spans, func(a, b span) int { return cmp.Or(a.start-b.start, b.end-a.end, rank[a.rule]-rank[b.rule]) })
	merged := spans[:0]
	for _, s := range spans {
		if n := len(merged); n > 0 && s.start < merged[n-1].end {
			last := &merged[n-1]
			less := rank[s.rule] - rank[last.rule]
			if plainer := s.start == last.start && s.end == last.end && len(s.secret) < len(last.secret); less < 0 || less == 0 && plainer {
				last.rule, last.secret = s.rule, s.secret
			}
			last.end = max(last.end, s.end)
			continue
		}
		merged = append(merged, s)
	}
	return merged
}

// searchedText is a text that is being searched.
type searchedText struct {
	text  string
	runs  [setEnd]struct{ from, to int }
	read  struct{ cookies, options int } // the end of the last list of them that was read
	spans []span
}

// addSpan adds a secret at a position of the view's text.
func (t *searchedText) addSpan(rule string, start, end int) {
	t.spans = append(t.spans, span{start: start, end: end, rule: rule, secret: t.text[start:end]})
}

// set is a set of bytes.
type set uint8

// The sets of bytes of which secrets consist.
const (
	alnum    set = iota
	word         // letters, digits and _
	token        // and -
	dotted       // and .
	b64          // letters, digits and + / =
	header       // all that the value of an Authorization header has
	escaped      // and %
	hexLower     // digits and a to f
	upper        // capitals and digits
	bare         // a value without quotes
	inDouble     // what stands between quotes
	inSingle
	inBack
	userinfo // of a URL
	field    // what stands between blanks
	cookie   // and between ; and ,
	setEnd
)

// sets has, for each byte, a bit for each set that contains it. It is computed whenever a
// program starts, so it is made without maps and strings.
var sets = func() (table [256]uint16) {
	const digits, lower, capitals = "0123456789", "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	add := func(s set, bytes string) {
		for i := range len(bytes) {
			table[bytes[i]] |= 1 << s
		}
	}
	for s, more := range [...]string{alnum: "", word: "_", token: "_-", dotted: "_-.", b64: "+/=", header: "_-.~+/=", escaped: "_-.~%"} {
		add(set(s), digits+lower+capitals)
		add(set(s), more)
	}
	add(hexLower, digits+"abcdef")
	add(upper, digits+capitals)
	without := func(s set, bytes string) {
		for c := range table {
			if strings.IndexByte(bytes, byte(c)) < 0 {
				table[c] |= 1 << s
			}
		}
	}
	without(bare, "\"'`\\,;&<>()[]{}|"+blanks)
	without(userinfo, "\"'`\\/?#<>@()[]{}|"+blanks)
	without(field, "\"'`\\"+blanks)
	without(cookie, "\"'`\\,;"+blanks)
	without(inDouble, "\"\\\n\r")
	without(inSingle, "'\\\n\r")
	without(inBack, "`\\\n\r")
	return table
}()

// blanks is the blank, DEL, and what has no shape.
const blanks = "\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f" +
	"\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f \x7f"

func (s set) has(c byte) bool { return sets[c]&(1<<s) != 0 }

// runEnd returns the end of the run of bytes of a set that contains a position. A run is
// scanned once, however often runEnd is called within it.
func (t *searchedText) runEnd(s set, at int) int {
	known := &t.runs[s]
	if at >= known.from && at < known.to {
		return known.to
	}
	end := at
	for end < len(t.text) && s.has(t.text[end]) {
		end++
	}
	known.from, known.to = at, end
	return end
}

// mayBeginSecret reports whether a secret may begin at a position: not in the middle of a word.
// Terminal colours and escapes such as %3D are not part of a word.
func (t *searchedText) mayBeginSecret(at int) bool {
	if at == 0 {
		return true
	}
	if c := t.text[at-1]; !alnum.has(c) { // abc-KEY and abc_KEY continue a word
		return c != '-' && c != '_' || at == 1 || !alnum.has(t.text[at-2])
	}
	if at >= 3 && t.text[at-3] == '%' && isHex(t.text[at-1]) && isHex(t.text[at-2]) {
		return true
	}
	if t.text[at-1] != 'm' {
		return false
	}
	i := at - 2
	for i > max(0, at-16) && (t.text[i] >= '0' && t.text[i] <= '9' || t.text[i] == ';') {
		i--
	}
	return i >= 1 && t.text[i] == '[' && t.text[i-1] == 0x1b
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// shift maps a position in the unescaped text to a position in the raw text. It holds
// up to the next shift.
type shift struct{ plain, raw int }

// rawPosition returns the position in the raw text of a byte of the unescaped text.
func rawPosition(shifts []shift, plain int) int {
	i, exact := slices.BinarySearchFunc(shifts, plain, func(s shift, p int) int { return s.plain - p })
	if !exact {
		if i == 0 {
			return plain
		}
		i--
	}
	return shifts[i].raw + plain - shifts[i].plain
}

// unescapeOneKind decodes one kind of escapes of a text: those of JSON strings and programs, or
// else those of URLs, or else those of HTML. There are no shifts when the text has none.
func unescapeOneKind(text string) (plain string, shifts []shift) {
	for _, introducer := range []byte(`\%&`) {
		if plain, shifts = unescapeAfter(text, introducer); len(shifts) > 0 {
			break
		}
	}
	return plain, shifts
}

// unescapeAfter decodes the escapes of a text that begin with one byte.
func unescapeAfter(text string, introducer byte) (plain string, shifts []shift) {
	i := strings.IndexByte(text, introducer)
	if i < 0 {
		return "", nil
	}
	var b strings.Builder
	at := 0
	for {
		decoded, size := decodeEscape(text[i:])
		if size > 0 {
			if shifts == nil {
				b.Grow(len(text))
			}
			b.WriteString(text[at:i])
			b.WriteString(decoded)
			at = i + size
			shifts = append(shifts, shift{b.Len(), at})
		} else {
			size = 1
		}
		next := strings.IndexByte(text[i+size:], introducer)
		if next < 0 {
			break
		}
		i += size + next
	}
	b.WriteString(text[at:])
	return b.String(), shifts
}

// maxEntity is the most bytes of an HTML entity that is decoded, such as &#x0073;.
const maxEntity = 12

// decodeEscape decodes the escape at the start of a text; size 0: there is none.
func decodeEscape(text string) (decoded string, size int) {
	if len(text) < 2 {
		return "", 0
	}
	switch text[:2] {
	case `\n`, `\r`:
		return "\n", 2
	case `\t`, `\b`, `\f`:
		return " ", 2
	case `\/`, `\"`, `\'`, `\\`:
		return text[1:2], 2
	case `\x`:
		if c, ok := parseHex(text, 2, 2); ok {
			return string(c), 4
		}
	case `\u`:
		if c, ok := parseHex(text, 2, 4); ok {
			return string(c), 6 // half of a pair becomes U+FFFD
		}
	}
	switch text[0] {
	case '%':
		if c, ok := parseHex(text, 1, 2); ok {
			return string([]byte{byte(c)}), 3
		}
	case '&':
		end := strings.IndexByte(text[:min(len(text), maxEntity)], ';') + 1
		if decoded := html.UnescapeString(text[:end]); decoded != text[:end] {
			return decoded, end
		}
	}
	return "", 0
}

// parseHex parses hexadecimal digits.
func parseHex(text string, at, digits int) (r rune, ok bool) {
	if len(text) < at+digits {
		return 0, false
	}
	for _, c := range []byte(text[at : at+digits]) {
		switch {
		case !isHex(c):
			return 0, false
		case c <= '9':
			r = r<<4 | rune(c-'0')
		default:
			r = r<<4 | rune(c&^0x20-'A'+10)
		}
	}
	return r, true
}
