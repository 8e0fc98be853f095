package diff

import (
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/objects"
)

// Prompts compares two prompts block by block. It pairs blocks of the same commit, then
// blocks of equal content, then, between those, blocks of one role and kind with similar
// texts. A block that differs only in its form, such as a seal, is a Change between equal
// texts.
func Prompts(a, b *compile.Prompt) *Diff {
	d := &Diff{A: a.Head, B: b.Head}
	d.pairByCommit(blocks(a), blocks(b))
	return d
}

// blocks lists the blocks of a prompt.
func blocks(p *compile.Prompt) []*Block {
	edits := map[objects.ID]objects.ID{} // their contents
	for i := range p.Entries {
		if e := &p.Entries[i]; e.Op == commit.Edit {
			edits[e.ID] = e.Content
		}
	}
	var list []*Block
	rows := p.EntryTokens()
	for _, m := range p.Messages {
		for _, block := range m.Blocks {
			at := p.BlockEntries[len(list)]
			e := &p.Entries[at]
			b := &Block{Commit: e.ID, Edit: e.EditedBy(), Tokens: rows[at], Role: m.Role, Kind: block.Kind(), Content: block}
			b.roleAndContent.role, b.roleAndContent.content = m.Role, e.Content
			if edit, ok := edits[b.Edit]; ok {
				b.roleAndContent.content = edit
			}
			list = append(list, b)
		}
	}
	return list
}

func (d *Diff) add(it Item) {
	d.Items = append(d.Items, it)
	d.Stat.count(it)
}

// addPair adds two blocks that are paired.
func (d *Diff) addPair(a, b *Block) {
	op := Change
	if a.roleAndContent == b.roleAndContent {
		op = Same
	}
	d.add(Item{Op: op, A: a, B: b})
}

// addUnpaired adds blocks that are paired with none of the other side.
func (d *Diff) addUnpaired(a, b []*Block) {
	for _, block := range a {
		d.add(Item{Op: Remove, A: block})
	}
	for _, block := range b {
		d.add(Item{Op: Add, B: block})
	}
}

func (d *Diff) pairByCommit(a, b []*Block) {
	d.addPairs(a, b, anchors(a, b, func(b *Block) objects.ID { return b.Commit }), d.pairByContent)
}

func (d *Diff) pairByContent(a, b []*Block) {
	d.addPairs(a, b, anchors(a, b, func(b *Block) roleAndContent { return b.roleAndContent }), d.pairBySimilarity)
}

// addPairs adds the pairs, and calls between with the blocks between two pairs.
func (d *Diff) addPairs(a, b []*Block, pairs []pair, between func(a, b []*Block)) {
	i, j := 0, 0
	for _, p := range append(pairs, pair{len(a), len(b)}) {
		if i < p.a || j < p.b {
			between(a[i:p.a], b[j:p.b])
		}
		if p.a < len(a) {
			d.addPair(a[p.a], b[p.b])
		}
		i, j = p.a+1, p.b+1
	}
}

// pairBySimilarity pairs similar blocks so that pairs do not cross and the sum of their
// similarities is greatest.
func (d *Diff) pairBySimilarity(a, b []*Block) {
	if len(a) == 0 || len(b) == 0 {
		d.addUnpaired(a, b)
		return
	}
	i, j := 0, 0
	for _, p := range alignBySimilarity(a, b) {
		d.addUnpaired(a[i:p.a], b[j:p.b])
		d.addPair(a[p.a], b[p.b])
		i, j = p.a+1, p.b+1
	}
	d.addUnpaired(a[i:], b[j:])
}
