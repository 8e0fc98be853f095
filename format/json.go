package format

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/tract-vcs/tract/internal/llm/rawjson"
)

// ErrorJSON is an error for programs.
type ErrorJSON struct {
	Code    int    `json:"code"` // the exit code
	Kind    string `json:"kind"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	Rescued string `json:"rescued,omitempty"` // the rescue ref of the response

	Errors    []string `json:"errors,omitempty"`    // the errors that this error combines
	Conflicts []any    `json:"conflicts,omitempty"` // of a merge, as ConflictJSON gives them
}

// Encode writes one indented JSON value and a line feed. Characters that could control a
// terminal are escaped.
func Encode(w io.Writer, v any) error { return encodeJSON(w, v, "  ") }

// EncodeLine is Encode on one line.
func EncodeLine(w io.Writer, v any) error { return encodeJSON(w, v, "") }

func encodeJSON(w io.Writer, v any, indent string) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	if _, err := w.Write(EscapeJSON(b.Bytes())); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	return nil
}

// EscapeJSON returns equivalent JSON that cannot control a terminal: it escapes invisible
// characters, and replaces invalid UTF-8 by U+FFFD and a carriage return between values by a space.
func EscapeJSON(text []byte) []byte {
	var out []byte
	from, before := 0, rune(textStart)
	for i := 0; i < len(text); {
		if c := text[i]; c < utf8.RuneSelf && c != 0x7f && c != '\r' {
			before = rune(c)
			i++
			continue
		}
		r, size := utf8.DecodeRune(text[i:])
		if r == '\r' {
			out, from = append(append(out, text[from:i]...), ' '), i+size
		} else if isInvisible(r) || isVariationSelector(r) && !canTakeSelector(before) || r == utf8.RuneError && size == 1 {
			out = append(out, text[from:i]...)
			out = appendUTF16Escapes(out, r)
			from = i + size
		}
		before = r
		i += size
	}
	if from == 0 {
		return text
	}
	return append(out, text[from:]...)
}

// appendUTF16Escapes appends a rune as JSON escapes of its UTF-16 units.
func appendUTF16Escapes(dst []byte, r rune) []byte {
	if r > 0xffff {
		r -= 0x10000
		return fmt.Appendf(dst, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
	}
	return fmt.Appendf(dst, `\u%04x`, r)
}

// base64OrEmptyIfValid returns text that is not valid UTF-8, which JSON cannot represent, in base64; for
// other text the empty string.
func base64OrEmptyIfValid(text string) string {
	if utf8.ValidString(text) {
		return ""
	}
	return base64.StdEncoding.EncodeToString([]byte(text))
}

// parsedJSON returns text as JSON, or nil if it is not JSON. Blank text is an empty object.
func parsedJSON(text string) json.RawMessage {
	if len(bytes.TrimSpace([]byte(text))) == 0 {
		return json.RawMessage("{}")
	}
	v, err := rawjson.Parse([]byte(validUTF8(text)))
	if err != nil {
		return nil
	}
	return json.RawMessage(v)
}

// jsonTime returns a time for programs: RFC 3339, UTC. The zero time becomes the empty string.
func jsonTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.999Z07:00")
}
