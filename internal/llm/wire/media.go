package wire

import (
	"cmp"
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/tract-vcs/tract/content"
)

// inlineData is the bytes of m, be they in a data URL, and their type, which is
// found by looking when nobody tells.
func InlineData(m content.Media) (media, data string, ok bool) {
	media, data = m.MediaType, m.Data
	if rest, isData := strings.CutPrefix(m.URL, "data:"); isData && data == "" {
		head, body, _ := strings.Cut(rest, ",")
		kind, coded := strings.CutSuffix(head, ";base64")
		if b, err := base64.StdEncoding.DecodeString(body); coded && err == nil {
			media, data = cmp.Or(media, kind), string(b)
		}
	}
	if data == "" {
		return "", "", false
	}
	if media == "" {
		media, _, _ = strings.Cut(http.DetectContentType([]byte(data)), ";")
	}
	return media, data, true
}

// inlined is m with the bytes of a data URL in its place.
func Inlined(m content.Media) content.Media {
	if kind, data, ok := InlineData(m); ok {
		m.URL, m.MediaType, m.Data = "", kind, data
	}
	return m
}

// dataURL is a URL that holds bytes.
func DataURL(media, data string) string { return "data:" + media + ";base64," + Base64(data) }

// base64Of is bytes as most formats take them.
func Base64(data string) string { return base64.StdEncoding.EncodeToString([]byte(data)) }

// exactBase64 is the bytes that a text spells, if it is the only spelling of them
// that would be sent.
func DecodeExactBase64(text string) (data string, ok bool) {
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(b) == 0 || base64.StdEncoding.EncodeToString(b) != text {
		return "", false
	}
	return string(b), true
}
