package content

// Form is the form in which a provider sent a block, so that the block can be sent back there
// unchanged.
type Form struct {
	Dialect    string // the dialect of ID, Type and Extra: "messages", "chat", ...
	ID         string // the provider's id of the item
	Type       string // the provider's type of item, where a kind has several
	Extra      []byte // a JSON object: the item's members that have no field here
	Seal       Seal
	Role       Role // when it is not the usual role of the kind
	Incomplete bool // the response broke off inside this block
}

// Wire holds the form of a block, which embeds it. Most blocks of a long history have
// none: that is the zero Wire, which takes one pointer of memory. It is a value: the Set
// methods do not change the copies of a block.
type Wire struct {
	_    [0][]byte // makes Wire not comparable: == would compare pointers
	form *Form     // nil: the zero form. Copies share it, so it is never modified.
}

// Wire returns the value that a block embeds for this form.
func (f Form) Wire() Wire {
	if f.isZero() {
		return Wire{}
	}
	kept := f // made here: the zero form makes none
	return Wire{form: &kept}
}

func (f *Form) isZero() bool {
	return f.Dialect == "" && f.ID == "" && f.Type == "" && len(f.Extra) == 0 && f.Seal.IsZero() && f.Role == NoRole && !f.Incomplete
}

// Form returns the form. It is zero for a block made by hand.
func (w Wire) Form() (f Form) {
	if w.form != nil {
		f = *w.form
	}
	return f
}

// SetID puts another id into the form.
func (w *Wire) SetID(id string) {
	f := w.Form()
	f.ID = id
	*w = f.Wire()
}

// SetType puts another type into the form.
func (w *Wire) SetType(t string) {
	f := w.Form()
	f.Type = t
	*w = f.Wire()
}

// SetExtra puts other members into the form.
func (w *Wire) SetExtra(extra []byte) {
	f := w.Form()
	f.Extra = extra
	*w = f.Wire()
}

// SetSeal puts another seal into the form.
func (w *Wire) SetSeal(s Seal) {
	f := w.Form()
	f.Seal = s
	*w = f.Wire()
}

// SetRole puts another role into the form.
func (w *Wire) SetRole(r Role) {
	f := w.Form()
	f.Role = r
	*w = f.Wire()
}

// SetIncomplete sets in the form whether the response broke off inside the block.
func (w *Wire) SetIncomplete(incomplete bool) {
	f := w.Form()
	f.Incomplete = incomplete
	*w = f.Wire()
}

// WithForm returns a block with another form.
func WithForm(b Block, f Form) Block { return b.withWire(f.Wire()) }

// afterEdit returns the form of a block whose text was replaced.
func (w Wire) afterEdit() Wire { return Form{Role: w.Form().Role}.Wire() }
