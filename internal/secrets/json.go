package secrets

import (
	"encoding/json"
	"slices"
	"strings"
)

// isJSON reports whether a text is a JSON object or array.
func isJSON(text string) bool {
	begin := strings.TrimLeft(text, " \t\r\n")
	return begin != "" && (begin[0] == '{' || begin[0] == '[') && json.Valid([]byte(text))
}

// sealed lists the members in which providers send bytes that they want back unchanged:
// secrets in them are not masked.
var sealed = []string{
	"signature", "thoughtSignature", "thought_signature", "encrypted_content", "encryptedContent", "encrypted_index", "redactedContent",
}

// replaceInJSONStrings replaces secrets by masks, only inside strings. The part of a secret that
// is in a string is masked; an escape is replaced whole or not at all.
func replaceInJSONStrings(text string, spans []span) string {
	var b strings.Builder
	b.Grow(len(text))
	at, key := 0, ""
	for len(spans) > 0 {
		open := strings.IndexByte(text[at:], '"')
		if open < 0 {
			break
		}
		open += at + 1
		end := stringEnd(text, open)
		b.WriteString(text[at:open])
		isKey := strings.HasPrefix(strings.TrimLeft(text[end+1:], " \t\r\n"), ":")
		for len(spans) > 0 && spans[0].end <= open {
			spans = spans[1:]
		}
		if !isKey && slices.Contains(sealed, key) {
			b.WriteString(text[open:end])
		} else {
			writeMasked(&b, text, open, end, spans)
		}
		key = ""
		if isKey {
			key = text[open:end]
		}
		at = end
		b.WriteByte('"')
		at++
	}
	b.WriteString(text[at:])
	return b.String()
}

// stringEnd returns the position of the quote that ends the string that begins at a position.
func stringEnd(text string, at int) int {
	for text[at] != '"' {
		if text[at] == '\\' {
			at++
		}
		at++
	}
	return at
}

// writeMasked writes the part of a string from at to end, with masks.
func writeMasked(b *strings.Builder, text string, at, end int, spans []span) {
	masked := -1 // the span whose mask was written last
	n := 0
	for at < end {
		next := at + 1
		if text[at] == '\\' {
			if next = at + 2; text[at+1] == 'u' {
				next = at + 6
			}
		}
		for n < len(spans) && spans[n].end <= at {
			n++
		}
		switch {
		case n == len(spans) || spans[n].start >= next:
			b.WriteString(text[at:next])
		case masked != n:
			b.WriteString(spans[n].mask())
			masked = n
		}
		at = next
	}
}
