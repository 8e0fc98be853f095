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

// Masker finds secrets in text before it is stored, and replaces them by masks if its Mode requires
// that. The secrets of a sealed block stay, because the seal is valid only for the unchanged block.
type Masker struct {
	Mode     string                                                    // of the setting secrets.mask
	External bool                                                      // everything comes from another program
	Found    func(rule string, kind content.Kind, masked, sealed bool) // is called for each secret; kind 0: the secret is in no block

	// The state for the text that is being searched:
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
		if d = m.maskLabelAndOrigin(d, origins); d.Block != nil {
			d.Block = m.reportAndMaskBlock(d.Block, m.isFromOtherProgram(&d))
		}
		masked[i] = d
	}
	return masked
}

// Blocks returns blocks as they would be committed.
func (m *Masker) Blocks(list []content.Block) []content.Block {
	masked := make([]content.Block, len(list))
	for i, b := range list {
		masked[i] = m.reportAndMaskBlock(b, m.External)
	}
	return masked
}

// isFromOtherProgram reports whether the content of a draft comes from another program.
func (m *Masker) isFromOtherProgram(d *commit.Draft) bool {
	return m.External || d.Origin != nil && (d.Origin.Source == commit.SourceImport || d.Origin.Source == commit.SourceRemote)
}

// reportAndMaskBlock reports the secrets of a block, and masks them if the mode requires it for such a
// block. fromOtherProgram tells that the block comes from another program.
func (m *Masker) reportAndMaskBlock(b content.Block, fromOtherProgram bool) content.Block {
	if m.Mode == MaskOff {
		return b
	}
	m.kind = b.Kind()
	m.mask, m.sealed = m.Mode == MaskAll || fromOtherProgram || m.kind == content.KindReasoning, !b.Form().Seal.IsZero()
	return content.RewriteText(b, m.reportAndMaskText)
}

// maskLabelAndOrigin masks the label and the origin of a draft. origins has the origins that were
// masked before.
func (m *Masker) maskLabelAndOrigin(d commit.Draft, origins map[*commit.Origin]*commit.Origin) commit.Draft {
	m.mask, m.sealed, m.kind = m.Mode == MaskAll || m.isFromOtherProgram(&d), false, content.KindNote
	if d.Block != nil {
		m.kind = d.Block.Kind()
	}
	d.Label = m.maskLabel(d.Label)
	if o := d.Origin; o != nil && (o.Finish != "" || len(o.Original)+len(o.Usage.Raw) > 0) {
		if origins[o] == nil {
			m.mask, m.sealed = true, false
			origins[o] = m.maskProviderFields(o)
		}
		d.Origin = origins[o]
	}
	return d
}

// Setting returns a setting of a request with its secrets masked. A request whose setting was
// masked cannot be reproduced, because it was sent with the original.
func (m *Masker) Setting(s string) string {
	if m.Mode == MaskOff {
		return s
	}
	m.mask, m.sealed, m.kind = true, false, 0
	return m.reportAndMaskText(s)
}

// reportAndMaskText reports the secrets of a text, and masks them if the state of the masker says so.
func (m *Masker) reportAndMaskText(s string) string {
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
	return m.maskLabel(l)
}

// maskLabel masks a label.
func (m *Masker) maskLabel(l commit.Label) commit.Label {
	return commit.Label{Text: m.reportAndMaskText(l.Text), Meta: m.maskValues(l.Meta)}
}

// maskValues masks the values of a map, which is not changed.
func (m *Masker) maskValues(of map[string]string) map[string]string {
	masked := maps.Clone(of)
	for k, v := range of {
		masked[k] = m.reportAndMaskText(v)
	}
	return masked
}

// maskProviderFields masks the fields of an origin that come from providers and other programs.
func (m *Masker) maskProviderFields(o *commit.Origin) *commit.Origin {
	masked := *o
	masked.Finish = m.reportAndMaskText(o.Finish)
	masked.Original = m.maskValues(o.Original)
	if len(o.Usage.Raw) > 0 {
		masked.Usage.Raw = []byte(m.reportAndMaskText(string(o.Usage.Raw)))
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
		t.Description, t.Schema, t.Native = m.reportAndMaskText(t.Description), []byte(m.reportAndMaskText(string(t.Schema))), []byte(m.reportAndMaskText(string(t.Native)))
	}
	return tools
}

// MaskBlock returns a block with its secrets masked, and the rules that found them. A block without
// secrets is returned unchanged, with no rules. With only, it masks only secrets that these rules
// find. A block with secrets loses its seal, which is not valid for changed content: store the
// result only where no open tool loop needs the seal.
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
