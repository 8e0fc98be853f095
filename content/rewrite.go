package content

import "slices"

// RewriteText returns b with everything that can be read in it replaced by what f makes
// of it: texts, names, arguments, and the JSON that is kept of a provider's form,
// which f has to leave valid. Of media it is the URL, the name, and the bytes when they
// are text. What ties blocks together (ids, the name of a tool) and the seal stay.
func RewriteText(b Block, f func(string) string) Block {
	b = b.rewriteOutsideForm(f)
	if form := b.Form(); len(form.Extra) > 0 {
		rewriter(f).rewriteBytes(&form.Extra)
		b = b.withWire(form.Wire())
	}
	return b
}

// rewriter returns what replaces a text.
type rewriter func(string) string

// rewrite replaces the texts in fields; empty ones stay.
func (f rewriter) rewrite(fields ...*string) {
	for _, s := range fields {
		if *s != "" {
			*s = f(*s)
		}
	}
}

// rewriteBytes is rewrite for bytes, which others may share.
func (f rewriter) rewriteBytes(field *[]byte) {
	s := string(*field)
	if f.rewrite(&s); s != string(*field) {
		*field = []byte(s)
	}
}

// rewriteList is rewrite for a list, which others may share.
func (f rewriter) rewriteList(field *[]string) {
	*field = slices.Clone(*field)
	for i := range *field {
		f.rewrite(&(*field)[i])
	}
}

// WithoutSeal returns b without its seal and without what its provider knows it by: what
// is left when its text is changed. The text itself stays.
func WithoutSeal(b Block) Block {
	f := b.Form()
	f.ID, f.Seal = "", Seal{} // whose it is stays, so that it goes back in the form it had
	return b.withWire(f.Wire())
}
