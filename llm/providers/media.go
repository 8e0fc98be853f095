package providers

import (
	"cmp"
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/tract-vcs/tract/content"
)

// inlineData is the bytes of m, be they in a data URL, and their type, which is
// found by looking when nobody tells.
func inlineData(m content.Media) (media, data string, ok bool) {
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
func inlined(m content.Media) content.Media {
	if kind, data, ok := inlineData(m); ok {
		m.URL, m.MediaType, m.Data = "", kind, data
	}
	return m
}

// dataURL is a URL that holds bytes.
func dataURL(media, data string) string { return "data:" + media + ";base64," + base64Of(data) }

// base64Of is bytes as most formats take them.
func base64Of(data string) string { return base64.StdEncoding.EncodeToString([]byte(data)) }

// exactBase64 is the bytes that a text spells, if it is the only spelling of them
// that would be sent.
func exactBase64(text string) (data string, ok bool) {
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(b) == 0 || base64.StdEncoding.EncodeToString(b) != text {
		return "", false
	}
	return string(b), true
}
