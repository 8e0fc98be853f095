package tract

import (
	"maps"
	"slices"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/secrets"
)

// Secret is one that was found in what was about to be committed.
type Secret struct {
	Rule   string       // see secrets.Rules
	Kind   content.Kind // of the block that it was in, or beside; 0: the definition of a tool
	Masked bool         // a mask is stored; else the secret is, as it came
	Sealed bool         // it is stored because a seal covers it: the provider would refuse other words
}

// MaskSecrets says where secrets are masked before anything is hashed, as the
// setting secrets.mask does: "traces", "all" or "off".
func MaskSecrets(where string) OpenOption {
	return func(o *opening) (err error) {
		o.settings, err = o.settings.With(maskSetting, where)
		return err
	}
}

// Masks tells whether secrets are masked in what another program said: in what
// [Branch.Continue] and imports bring.
func (r *Repo) Masks(opts ...Option) (bool, error) {
	c, err := r.call(opts)
	if err != nil {
		return false, err
	}
	return c.masking().mode != maskOff, nil
}

// OnSecrets is told of every secret that was found in what is about to be committed,
// masked or not; with MaskSecrets("off") nothing is looked for. It is called by the
// goroutine that commits, and again when a write is done again.
func OnSecrets(f func([]Secret)) OpenOption {
	return func(o *opening) error { o.found = f; return nil }
}

// The setting, and its values that are asked for here.
const (
	maskSetting = "secrets.mask"
	maskAll     = "all"
	maskOff     = "off"
)

// commits makes the commits of drafts as commit.Write does.
func (c *call) commits(parent *commit.Commit, drafts ...commit.Draft) (commits []*commit.Commit, put []objects.Object, err error) {
	var w commit.Writer
	commits, err = c.write(&w, parent, drafts...)
	return commits, w.Put(), err
}

// write makes the commits of drafts with a writer. It is the one way into the store, and
// so the place where secrets are masked.
func (c *call) write(w *commit.Writer, parent *commit.Commit, drafts ...commit.Draft) ([]*commit.Commit, error) {
	m := c.masking()
	commits := make([]*commit.Commit, len(drafts))
	for i, d := range m.all(drafts) {
		made, err := w.Write(parent, &d)
		if err != nil {
			return nil, err
		}
		commits[i], parent = made, made
	}
	c.tell(m.found)
	return commits, nil
}

func (c *call) tell(found []Secret) {
	if c.found != nil && len(found) > 0 {
		c.found(found)
	}
}

func (c *call) masking() *masking {
	return &masking{mode: c.settings.Text(maskSetting), brought: c.observed != nil}
}

// masking looks for secrets in drafts, and masks them where that is asked for.
type masking struct {
	mode    string
	brought bool // another program said it all: what was recorded
	found   []Secret

	// Of the text that is looked at:
	kind         content.Kind
	mask, sealed bool
}

// all is drafts with their secrets masked.
func (m *masking) all(drafts []commit.Draft) []commit.Draft {
	if m.mode == maskOff {
		return drafts
	}
	var origins map[*commit.Origin]*commit.Origin // drafts share them
	masked := make([]commit.Draft, len(drafts))
	for i, d := range drafts {
		masked[i] = m.draft(d, &origins)
	}
	return masked
}

// blocks is blocks as they would be committed.
func (m *masking) blocks(list []content.Block) []content.Block {
	drafts := make([]commit.Draft, len(list))
	for i, b := range list {
		drafts[i].Block = b
	}
	masked := make([]content.Block, len(list))
	for i, d := range m.all(drafts) {
		masked[i] = d.Block
	}
	return masked
}

// draft is a draft with its secrets masked. origins are those that were masked before, as
// they are then: drafts share them.
func (m *masking) draft(d commit.Draft, origins *map[*commit.Origin]*commit.Origin) commit.Draft {
	if d = m.beside(d, origins); d.Block != nil {
		d.Block = m.block(d.Block, m.broughtIn(&d))
	}
	return d
}

// broughtIn tells whether another program said what a draft says.
func (m *masking) broughtIn(d *commit.Draft) bool {
	return m.brought || d.Origin != nil && (d.Origin.Source == commit.SourceImport || d.Origin.Source == commit.SourceRemote)
}

// block masks a block, which another program may have said.
func (m *masking) block(b content.Block, brought bool) content.Block {
	if m.mode == maskOff {
		return b
	}
	m.kind = b.Kind()
	m.mask, m.sealed = m.mode == maskAll || brought || m.kind == content.KindReasoning, !b.Form().Seal.IsZero()
	return content.Rewritten(b, m.text)
}

// beside masks what a draft has beside its block.
func (m *masking) beside(d commit.Draft, origins *map[*commit.Origin]*commit.Origin) commit.Draft {
	m.mask, m.sealed, m.kind = m.mode == maskAll || m.broughtIn(&d), false, content.KindNote
	if d.Block != nil {
		m.kind = d.Block.Kind()
	}
	d.Label = m.label(d.Label)
	if o := d.Origin; o != nil && (o.Finish != "" || len(o.Original)+len(o.Usage.Raw) > 0) {
		if (*origins)[o] == nil {
			m.mask, m.sealed = true, false
			if *origins == nil {
				*origins = map[*commit.Origin]*commit.Origin{}
			}
			(*origins)[o] = m.origin(o)
		}
		d.Origin = (*origins)[o]
	}
	return d
}

// setting is a setting of a request as it is to be stored. What was sent had the
// true bytes: such a request cannot be made again.
func (m *masking) setting(s string) string {
	if m.mode == maskOff {
		return s
	}
	m.mask, m.sealed, m.kind = true, false, 0
	return m.text(s)
}

// text is a text as it is to be stored.
func (m *masking) text(s string) string {
	found := secrets.Find(s)
	if len(found) == 0 {
		return s
	}
	mask := m.mask && !m.sealed
	for _, f := range found {
		m.found = append(m.found, Secret{Rule: f.Rule, Kind: m.kind, Masked: mask, Sealed: m.sealed})
	}
	if !mask {
		return s
	}
	return secrets.Mask(s)
}

// labelOf is a label that is on no commit, with its secrets masked.
func (m *masking) labelOf(l commit.Label) commit.Label {
	if m.mode == maskOff {
		return l
	}
	m.mask, m.sealed, m.kind = m.mode == maskAll, false, content.KindNote
	return m.label(l)
}

func (m *masking) label(l commit.Label) commit.Label {
	return commit.Label{Text: m.text(l.Text), Meta: m.values(l.Meta)}
}

// values masks the values of a map, which stays as it is.
func (m *masking) values(of map[string]string) map[string]string {
	var masked map[string]string
	for k, v := range of {
		if now := m.text(v); now != v {
			if masked == nil {
				masked = maps.Clone(of)
			}
			masked[k] = now
		}
	}
	if masked == nil {
		return of
	}
	return masked
}

// origin masks what others wrote into an origin.
func (m *masking) origin(o *commit.Origin) *commit.Origin {
	masked := *o
	masked.Finish = m.text(o.Finish)
	masked.Original = m.values(o.Original)
	if len(o.Usage.Raw) > 0 {
		masked.Usage.Raw = []byte(m.text(string(o.Usage.Raw)))
	}
	return &masked
}

// maskedTools is the tools of a call as they are sent and stored.
func (c *call) maskedTools() []llm.Tool {
	if len(c.tools) == 0 {
		return c.tools
	}
	m := c.masking()
	if m.mode == maskOff {
		return c.tools
	}
	m.mask = m.mode == maskAll || m.brought
	tools := make([]llm.Tool, len(c.tools))
	for i, t := range c.tools {
		t.Description, t.Schema, t.Native = m.text(t.Description), []byte(m.text(string(t.Schema))), []byte(m.text(string(t.Native)))
		tools[i] = t
	}
	c.tell(m.found)
	return tools
}

// Masked gives a block with its secrets masked, and the rules that found them; none:
// there are no secrets, and the block is as it was. With only, what other rules find
// counts as none. A block with a seal loses it, since a seal is worth nothing over
// other words: whoever stores that has to know that no open tool loop needs the seal.
func Masked(b content.Block, only ...string) (masked content.Block, rules []string) {
	masked = content.Rewritten(b, func(s string) string {
		found := secrets.Find(s)
		if len(found) == 0 {
			return s
		}
		for _, f := range found {
			if len(only) == 0 || slices.Contains(only, f.Rule) {
				rules = append(rules, f.Rule)
			}
		}
		return secrets.Mask(s, only...)
	})
	if len(rules) > 0 && !b.Form().Seal.IsZero() {
		masked = content.Unsealed(masked)
	}
	return masked, rules
}
