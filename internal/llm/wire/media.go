package wire

import (
	"cmp"
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/tract-vcs/tract/content"
)

// InlineData returns the bytes of m, or those in its data URL, and their media type, which it
// detects if m does not have it. ok is false if m has no bytes.
func InlineData(m content.Media) (media, rawBytes string, ok bool) {
	media, rawBytes = m.MediaType, m.Data
	if rest, isData := strings.CutPrefix(m.URL, "data:"); isData && rawBytes == "" {
		head, body, _ := strings.Cut(rest, ",")
		kind, coded := strings.CutSuffix(head, ";base64")
		if b, err := base64.StdEncoding.DecodeString(body); coded && err == nil {
			media, rawBytes = cmp.Or(media, kind), string(b)
		}
	}
	if rawBytes == "" {
		return "", "", false
	}
	if media == "" {
		media, _, _ = strings.Cut(http.DetectContentType([]byte(rawBytes)), ";")
	}
	return media, rawBytes, true
}

// Inlined returns m with the bytes of its data URL in Data. Other media stay as they are.
func Inlined(m content.Media) content.Media {
	if kind, data, ok := InlineData(m); ok {
		m.URL, m.MediaType, m.Data = "", kind, data
	}
	return m
}

// DataURL returns a data URL for bytes of a media type.
func DataURL(media, data string) string { return "data:" + media + ";base64," + Base64(data) }

// Base64 returns bytes in standard base64.
func Base64(data string) string { return base64.StdEncoding.EncodeToString([]byte(data)) }

// DecodeExactBase64 decodes base64 if encoding the bytes gives the same text again.
func DecodeExactBase64(text string) (data string, ok bool) {
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(b) == 0 || base64.StdEncoding.EncodeToString(b) != text {
		return "", false
	}
	return string(b), true
}
