package rawjson

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Text returns the decoded string, or "" if v is not a string. Bytes that are not escapes
// stay unchanged, including invalid UTF-8. A pair of surrogate escapes becomes one
// character; a lone surrogate becomes its three WTF-8 bytes (\ud800 is ED A0 80), so that
// different texts stay different. Text allocates only its result.
func (v Value) Text() string {
	in := v.inner()
	i := bytes.IndexByte(in, '\\')
	if i < 0 {
		return string(in)
	}
	var out strings.Builder
	out.Grow(len(in))
	for ; i >= 0; i = bytes.IndexByte(in, '\\') {
		out.Write(in[:i])
		in = in[i+unescape(&out, in[i:]):]
	}
	out.Write(in)
	return out.String()
}

// inner returns the bytes between the quotes; nil if v is not a string.
func (v Value) inner() []byte {
	if len(v) == 0 || v[0] != '"' {
		return nil
	}
	in := v[1:]
	if n := len(in); n > 0 && in[n-1] == '"' {
		in = in[:n-1]
	}
	return in
}

// unescape decodes the escape at the beginning of in to out, and returns the length of the
// escape. It writes an invalid escape unchanged.
func unescape(out *strings.Builder, in []byte) (escapeLen int) {
	if len(in) < 2 {
		out.WriteByte('\\')
		return 1
	}
	if in[1] == 'u' {
		return unescapeUnit(out, in)
	}
	if c := unescaped[in[1]]; c != 0 {
		out.WriteByte(c)
	} else {
		out.Write(in[:2])
	}
	return 2
}

var unescaped = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// unescapeUnit is unescape for the escape of a UTF-16 code unit, \uXXXX, or a surrogate pair.
func unescapeUnit(out *strings.Builder, in []byte) (escapeLen int) {
	r, ok := codeUnit(in)
	switch {
	case !ok:
		out.Write(in[:2])
		return 2
	case !utf16.IsSurrogate(r):
		out.WriteRune(r)
		return 6
	}
	if low, ok := codeUnit(in[6:]); ok {
		if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
			out.WriteRune(pair)
			return 12
		}
	}
	out.Write([]byte{0xE0 | byte(r>>12), 0x80 | byte(r>>6)&0x3F, 0x80 | byte(r)&0x3F})
	return 6
}

// codeUnit returns the UTF-16 code unit of the escape \uXXXX at the beginning of in; false if
// there is no such escape.
func codeUnit(in []byte) (unit rune, ok bool) {
	if len(in) < 6 || in[0] != '\\' || in[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(in[2:6]), 16, 16)
	return rune(n), err == nil
}

func isHexDigit(c byte) bool { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }

// Clean reports whether s is valid UTF-8, so that [AppendString] keeps its text unchanged.
func Clean(s string) bool { return utf8.ValidString(s) }

// AppendString appends s as a JSON string, quotes included. The result is valid
// JSON and valid UTF-8 for every s. Quotes, backslashes and control characters are
// escaped, and nothing else (not <, > and &, not U+2028). Invalid UTF-8 becomes U+FFFD:
// one for each WTF-8 surrogate as [Value.Text] writes it, one for each truncated
// character, and one for any other byte (the practice of Unicode section 3.9, except
// for surrogates).
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	if utf8.ValidString(s) {
		return append(appendEscaped(dst, s), '"')
	}
	for s != "" {
		n := validPrefixLen(s)
		dst = appendEscaped(dst, s[:n])
		if s = s[n:]; s != "" {
			dst = utf8.AppendRune(dst, utf8.RuneError)
			s = s[invalidPrefixLen(s):]
		}
	}
	return append(dst, '"')
}

// appendEscaped appends s, which must be valid UTF-8, with escapes and without quotes.
func appendEscaped(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	start := 0
	for i := range len(s) {
		esc := escapes[s[i]]
		if esc == 0 {
			continue
		}
		dst = append(dst, s[start:i]...)
		if esc == 'u' {
			dst = append(dst, '\\', 'u', '0', '0', hex[s[i]>>4], hex[s[i]&15])
		} else {
			dst = append(dst, '\\', esc)
		}
		start = i + 1
	}
	return append(dst, s[start:]...)
}

// escapes maps each byte to the character after the backslash of its escape; 0: not escaped.
var escapes = func() (t [256]byte) {
	for c := range ' ' {
		t[c] = 'u'
	}
	t['"'], t['\\'], t['\b'], t['\f'], t['\n'], t['\r'], t['\t'] = '"', '\\', 'b', 'f', 'n', 'r', 't'
	return t
}()

// validPrefixLen returns the length of the longest prefix of s that is valid UTF-8.
func validPrefixLen(s string) int {
	for i, r := range s {
		if r == utf8.RuneError && !strings.HasPrefix(s[i:], string(utf8.RuneError)) {
			return i
		}
	}
	return len(s)
}

// invalidPrefixLen returns the number of bytes at the beginning of s, which must be invalid
// UTF-8, that one U+FFFD replaces.
func invalidPrefixLen(s string) int {
	if len(s) >= 3 && s[0] == 0xED && s[1]&0xE0 == 0xA0 && s[2]&0xC0 == 0x80 {
		return 3 // a surrogate
	}
	n := 1
	for n < len(s) && !utf8.FullRuneInString(s[:n+1]) {
		n++ // the beginning of a character
	}
	return n
}
