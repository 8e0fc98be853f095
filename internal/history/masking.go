package history

import (
	"maps"
	"slices"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/secrets"
	"github.com/tract-vcs/tract/llm"
)

// The values of the setting secrets.mask that differ from the default, "traces".
const (
	MaskAll = "all"
	MaskOff = "off"
)

// Masker finds secrets in what is about to be stored, and replaces them by masks where its
// Mode says so. The secrets of a sealed block stay: the seal covers the block as it is.
type Masker struct {
	Mode     string                                                    // of the setting secrets.mask
	External bool                                                      // all comes from another program, which was recorded
	Found    func(rule string, kind content.Kind, masked, sealed bool) // is called for each secret; kind 0: of no block

	// Of the text that is being searched:
	kind         content.Kind
	mask, sealed bool
}

// Drafts returns drafts with their secrets masked.
func (m *Masker) Drafts(drafts []commit.Draft) []commit.Draft {
	if m.Mode == MaskOff {
		return drafts
	}
	origins := map[*commit.Origin]*commit.Origin{} // masked, by the original: drafts share them
	masked := make([]commit.Draft, len(drafts))
	for i, d := range drafts {
		if d = m.maskMetadata(d, origins); d.Block != nil {
			d.Block = m.block(d.Block, m.isExternal(&d))
		}
		masked[i] = d
	}
	return masked
}

// Blocks returns blocks as they would be committed.
func (m *Masker) Blocks(list []content.Block) []content.Block {
	masked := make([]content.Block, len(list))
	for i, b := range list {
		masked[i] = m.block(b, m.External)
	}
	return masked
}

// isExternal reports whether the content of a draft comes from another program.
func (m *Masker) isExternal(d *commit.Draft) bool {
	return m.External || d.Origin != nil && (d.Origin.Source == commit.SourceImport || d.Origin.Source == commit.SourceRemote)
}

// block masks a block.
func (m *Masker) block(b content.Block, brought bool) content.Block {
	if m.Mode == MaskOff {
		return b
	}
	m.kind = b.Kind()
	m.mask, m.sealed = m.Mode == MaskAll || brought || m.kind == content.KindReasoning, !b.Form().Seal.IsZero()
	return content.RewriteText(b, m.text)
}

// maskMetadata masks the label and the origin of a draft. origins has the origins that were
// masked before.
func (m *Masker) maskMetadata(d commit.Draft, origins map[*commit.Origin]*commit.Origin) commit.Draft {
	m.mask, m.sealed, m.kind = m.Mode == MaskAll || m.isExternal(&d), false, content.KindNote
	if d.Block != nil {
		m.kind = d.Block.Kind()
	}
	d.Label = m.label(d.Label)
	if o := d.Origin; o != nil && (o.Finish != "" || len(o.Original)+len(o.Usage.Raw) > 0) {
		if origins[o] == nil {
			m.mask, m.sealed = true, false
			origins[o] = m.origin(o)
		}
		d.Origin = origins[o]
	}
	return d
}

// Setting returns a setting of a request as it is stored. The request was sent with the
// original, so it cannot be reproduced.
func (m *Masker) Setting(s string) string {
	if m.Mode == MaskOff {
		return s
	}
	m.mask, m.sealed, m.kind = true, false, 0
	return m.text(s)
}

// text masks a text.
func (m *Masker) text(s string) string {
	found := secrets.Find(s)
	if len(found) == 0 {
		return s
	}
	mask := m.mask && !m.sealed
	for _, f := range found {
		m.Found(f.Rule, m.kind, mask, m.sealed)
	}
	if !mask {
		return s
	}
	return secrets.Mask(s)
}

// Label returns the label of a ref with its secrets masked.
func (m *Masker) Label(l commit.Label) commit.Label {
	if m.Mode == MaskOff {
		return l
	}
	m.mask, m.sealed, m.kind = m.Mode == MaskAll, false, content.KindNote
	return m.label(l)
}

func (m *Masker) label(l commit.Label) commit.Label {
	return commit.Label{Text: m.text(l.Text), Meta: m.values(l.Meta)}
}

// values masks the values of a map, which is not changed.
func (m *Masker) values(of map[string]string) map[string]string {
	masked := maps.Clone(of)
	for k, v := range of {
		masked[k] = m.text(v)
	}
	return masked
}

// origin masks what others wrote into an origin.
func (m *Masker) origin(o *commit.Origin) *commit.Origin {
	masked := *o
	masked.Finish = m.text(o.Finish)
	masked.Original = m.values(o.Original)
	if len(o.Usage.Raw) > 0 {
		masked.Usage.Raw = []byte(m.text(string(o.Usage.Raw)))
	}
	return &masked
}

// Tools returns definitions of tools as they are sent and stored.
func (m *Masker) Tools(list []llm.Tool) []llm.Tool {
	if len(list) == 0 || m.Mode == MaskOff {
		return list
	}
	m.mask, m.sealed, m.kind = m.Mode == MaskAll || m.External, false, 0
	tools := slices.Clone(list)
	for i := range tools {
		t := &tools[i]
		t.Description, t.Schema, t.Native = m.text(t.Description), []byte(m.text(string(t.Schema))), []byte(m.text(string(t.Native)))
	}
	return tools
}

// MaskBlock returns a block with its secrets masked, and the rules that found them; none
// when the block has no secrets and is unchanged. With only, the findings of other rules do
// not count. A block with secrets loses its seal, which does not fit other content: store
// the result only where no open tool loop needs the seal.
func MaskBlock(b content.Block, only ...string) (masked content.Block, rules []string) {
	masked = content.RewriteText(b, func(s string) string {
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
		masked = content.WithoutSeal(masked)
	}
	return masked, rules
}
