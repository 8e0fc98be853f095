package content

import (
	"strings"
	"unicode/utf8"

	"github.com/tract-vcs/tract/internal/canonical"
	"github.com/tract-vcs/tract/priority"
)

// The kinds of [Media].
var (
	// KindImage is a picture.
	KindImage = register(7, Traits{Name: "image", Role: RoleUser, Level: priority.Normal, empty: Media{Of: 7}})

	// KindFile is any other file.
	KindFile = register(8, Traits{Name: "file", Role: RoleUser, Level: priority.Normal, empty: Media{Of: 8}})
)

// Media is an image or a file: its bytes, or a URL where the provider fetches
// them.
type Media struct {
	Wire
	Of        Kind   // KindImage or KindFile
	MediaType string // such as image/png
	Name      string
	URL       string // when there is no Data
	Data      string
}

// Kind returns m.Of.
func (m Media) Kind() Kind { return m.Of }

// String returns the name or the URL.
func (m Media) String() string {
	if m.URL != "" {
		return m.URL
	}
	return m.Name
}

func (m Media) withEditedText(string) Block { return nil }

func (m Media) withWire(w Wire) Block {
	m.Wire = w
	return m
}

// rewriteOutsideForm leaves data that is not text unchanged.
func (m Media) rewriteOutsideForm(r rewriter) Block {
	if utf8.ValidString(m.Data) && strings.IndexByte(m.Data, 0) < 0 {
		r.rewrite(&m.Data)
	}
	r.rewrite(&m.Name, &m.URL)
	return m
}

func (m Media) afterPurge(w Wire) Block { return Media{Wire: w, Of: m.Of, MediaType: m.MediaType} }

// The fields of the record of a [Media].
const (
	fieldMediaType = firstOfKind + iota
	fieldMediaName
	fieldURL
	fieldData
)

func (m Media) fieldsOfKind(r *canonical.Record) Block {
	r.String(fieldMediaType, &m.MediaType)
	r.String(fieldMediaName, &m.Name)
	r.String(fieldURL, &m.URL)
	r.String(fieldData, &m.Data)
	return m
}
