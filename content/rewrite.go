package content

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Rewritten gives b with everything that can be read in it replaced by what f makes
// of it: words, names, arguments, and the JSON that is kept of a provider's form,
// which f has to leave valid. Of media it is the URL, the name, and the bytes when they
// are text. What ties blocks together (ids, the name of a tool) and the seal stay.
// When f changes nothing it is b itself.
func Rewritten(b Block, f func(string) string) Block {
	r := rewriter{f: f}
	var now Block
	switch b := b.(type) {
	case Text:
		if r.form(&b.Wire); r.text(&b.Name, &b.Text) {
			now = b
		}
	case Reasoning:
		r.parts(&b.Parts)
		if r.form(&b.Wire); r.text(&b.Text) {
			now = b
		}
	case ToolCall:
		if r.form(&b.Wire); r.text(&b.Arguments) {
			now = b
		}
	case ToolResult:
		r.raw(&b.Parts)
		if r.form(&b.Wire); r.text(&b.Text) {
			now = b
		}
	case Media:
		if utf8.ValidString(b.Data) && strings.IndexByte(b.Data, 0) < 0 {
			r.text(&b.Data)
		}
		if r.form(&b.Wire); r.text(&b.Name, &b.URL) {
			now = b
		}
	case Native:
		if r.form(&b.Wire); r.text(&b.JSON) {
			now = b
		}
	}
	if now == nil {
		return b
	}
	return now
}

// rewriter replaces texts, and tells whether any was.
type rewriter struct {
	f       func(string) string
	changed bool
}

func (r *rewriter) text(fields ...*string) (changed bool) {
	for _, s := range fields {
		if *s == "" {
			continue
		}
		if now := r.f(*s); now != *s {
			*s, r.changed = now, true
		}
	}
	return r.changed
}

func (r *rewriter) raw(field *[]byte) {
	if len(*field) == 0 {
		return
	}
	s := string(*field)
	if r.text(&s); s != string(*field) {
		*field = []byte(s)
	}
}

func (r *rewriter) form(w *Wire) {
	if w.form == nil || len(w.form.Extra) == 0 {
		return
	}
	f := w.Form()
	r.raw(&f.Extra)
	*w = f.Wire()
}

func (r *rewriter) parts(field *[]string) {
	parts := slices.Clone(*field)
	for i := range parts {
		r.text(&parts[i])
	}
	*field = parts
}

// Unsealed gives b without its seal and without what its provider knows it by: what
// is left when its words are changed. The words themselves stay.
func Unsealed(b Block) Block {
	switch b := b.(type) {
	case Text:
		b.Wire = b.unsealed()
		return b
	case Reasoning:
		b.Wire = b.unsealed()
		return b
	case ToolCall:
		b.Wire = b.unsealed()
		return b
	case ToolResult:
		b.Wire = b.unsealed()
		return b
	case Media:
		b.Wire = b.unsealed()
		return b
	case Native:
		b.Wire = b.unsealed()
		return b
	}
	return b
}
