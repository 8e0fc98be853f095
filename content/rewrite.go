package content

import "slices"

// RewriteText returns b with everything that can be read in it replaced by what f makes
// of it: texts, names, arguments, and the JSON that is kept of a provider's form,
// which f has to leave valid. Of media it is the URL, the name, and the bytes when they
// are text. What ties blocks together (ids, the name of a tool) and the seal stay.
// When f changes nothing it is b itself.
func RewriteText(b Block, f func(string) string) Block {
	r := rewriter{f: f}
	if now := b.rewrite(&r); now != nil {
		b = now
	}
	form := b.Form()
	if r.changed = false; r.raw(&form.Extra) {
		b = b.withWire(form.Wire())
	}
	return b
}

// rewriter replaces texts, and reports whether any was.
type rewriter struct {
	f       func(string) string
	changed bool
}

// text replaces the texts in fields, and reports whether r has changed any so far.
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

// raw is text for bytes, which others may share.
func (r *rewriter) raw(field *[]byte) (changed bool) {
	s := string(*field)
	if r.text(&s); s != string(*field) {
		*field = []byte(s)
	}
	return r.changed
}

// parts is text for a list, which others may share.
func (r *rewriter) parts(field *[]string) {
	parts := slices.Clone(*field)
	for i := range parts {
		r.text(&parts[i])
	}
	*field = parts
}

// WithoutSeal returns b without its seal and without what its provider knows it by: what
// is left when its text is changed. The text itself stays.
func WithoutSeal(b Block) Block {
	f := b.Form()
	f.ID, f.Seal = "", Seal{} // whose it is stays, so that it goes back in the form it had
	return b.withWire(f.Wire())
}
