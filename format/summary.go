package format

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/llm/rawjson"
)

// Summary returns a block in one line: its first line with a letter or digit, with a mark if it has
// more lines, sanitized and cut to width cells (0: not cut). For a block without text it returns a
// description in brackets, such as [redacted] or [image cat.png, image/png, 12 kB].
func Summary(b content.Block, width int) string { return summary(b, width, moreMark) }

// moreMark follows the first of several lines, except in output for programs.
const moreMark = " …"

func summary(b content.Block, width int, markIfMore string) string {
	line, more := unsanitizedSummary(b)
	line = oneLine(clipBytes(line, width))
	if more {
		line += markIfMore
	}
	return truncate(line, width)
}

// unsanitizedSummary returns the unsanitized text of a summary, and whether the block has more lines.
func unsanitizedSummary(b content.Block) (line string, more bool) {
	switch b := b.(type) {
	case nil:
		return "", false
	case content.Reasoning:
		if line, more := firstReadableLine(b.String()); line != "" {
			return line, more
		}
		return "[" + noTextReason(b) + "]", false
	case content.ToolCall:
		return b.Name + "(" + strings.TrimSpace(b.Arguments) + ")", false
	case content.ToolResult:
		line, more := firstReadableLine(resultText(b))
		if b.IsError {
			line = strings.TrimSpace("error: " + line)
		}
		return line, more
	case content.Media:
		return mediaTitle(b), false
	case content.Native:
		return nativeType(b), false
	}
	return firstReadableLine(b.String())
}

// firstReadableLine returns the first line with a letter or digit, otherwise the first that is not
// blank, and whether there are others.
func firstReadableLine(text string) (first string, more bool) {
	found := false
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if more = first != ""; found {
			break
		}
		found = strings.ContainsFunc(line, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
		if found || !more {
			first = line
		}
	}
	return first, more
}

// oneLine sanitizes text and replaces every run of white space by one space.
func oneLine(s string) string {
	s = Sanitize(s)
	for i := range len(s) {
		if c := s[i]; c == '\n' || c == '\t' || c == ' ' && i+1 < len(s) && s[i+1] == ' ' {
			return strings.Join(strings.Fields(s), " ")
		}
	}
	return strings.TrimSpace(s)
}

// noTextReason returns the reason why reasoning has no text.
func noTextReason(r content.Reasoning) string {
	switch r.Form().Seal.Type {
	case content.Redacted:
		return "redacted"
	case content.Encrypted, content.Opaque:
		return "encrypted"
	case content.Signature:
		return "signature only"
	}
	return "empty"
}

// resultText returns the text of a result: that of its text parts, otherwise its JSON.
func resultText(r content.ToolResult) string {
	if len(r.Parts) == 0 {
		return r.Text
	}
	v, err := rawjson.Parse(r.Parts)
	if err != nil {
		return string(r.Parts)
	}
	var texts []string
	for part := range v.Elements() {
		if text := part.Get("text"); text.Kind() == rawjson.KindString {
			texts = append(texts, text.Text())
		}
	}
	if len(texts) == 0 {
		return string(r.Parts)
	}
	return strings.Join(texts, "\n")
}

// mediaTitle returns a description of an image or a file.
func mediaTitle(m content.Media) string {
	parts := []string{m.Of.String()}
	if name := m.String(); name != "" {
		parts[0] += " " + name
	}
	if m.MediaType != "" {
		parts = append(parts, m.MediaType)
	}
	if m.URL == "" {
		parts = append(parts, sizeText(len(m.Data)))
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// nativeType returns the type of an unknown item: the provider's name, or that of its dialect.
func nativeType(n content.Native) string {
	if v, err := rawjson.Parse([]byte(n.JSON)); err == nil && v.Get("type").Text() != "" {
		return v.Get("type").Text()
	}
	if n.Form().Type != "" {
		return n.Form().Type
	}
	return n.Kind().String()
}

// sizeText returns a size for people.
func sizeText(n int) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d bytes", n)
	case n < 999_500:
		return fmt.Sprintf("%.3g kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%.3g MB", float64(n)/1e6)
}

// thousands returns a number with commas between thousands.
func thousands(n int64) string {
	digits := fmt.Sprint(n)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return sign + digits
}

// plural returns a number with a noun, in the plural unless the number is 1.
func plural(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return thousands(int64(n)) + " " + thing
}

// validUTF8 returns text with invalid UTF-8 replaced by U+FFFD.
func validUTF8(s string) string {
	return strings.ToValidUTF8(s, string(utf8.RuneError))
}
