package diff

import (
	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/objects"
)

// Prompts compares two prompts block by block. Blocks of one commit belong
// together, then blocks that say the same, then, between those, blocks of one
// role and kind whose words are alike. A block that differs only in what its
// provider knows of it, such as a seal, is a Change between equal texts.
func Prompts(a, b *compile.Prompt) *Diff {
	d := &Diff{A: a.Head, B: b.Head}
	left, right := blocks(a), blocks(b)
	head := 0
	for head < min(len(left), len(right)) && same(left[head], right[head]) {
		d.both(left[head], right[head])
		head++
	}
	left, right = left[head:], right[head:]
	tail := 0
	for tail < min(len(left), len(right)) && same(left[len(left)-1-tail], right[len(right)-1-tail]) {
		tail++
	}
	d.byCommit(left[:len(left)-tail], right[:len(right)-tail])
	for i := range tail {
		d.both(left[len(left)-tail+i], right[len(right)-tail+i])
	}
	return d
}

func same(a, b *Block) bool { return a.Commit == b.Commit && a.key == b.key }

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
		for _, say := range m.Blocks {
			at := p.BlockEntries[len(list)]
			e := &p.Entries[at]
			b := &Block{Commit: e.ID, Edit: e.EditedBy(), Tokens: rows[at], Role: m.Role, Kind: say.Kind(), Content: say}
			b.key.role, b.key.content = m.Role, e.Content
			if edit, ok := edits[b.Edit]; ok {
				b.key.content = edit
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

// both adds two blocks that belong together.
func (d *Diff) both(a, b *Block) {
	op := Change
	if a.key == b.key {
		op = Same
	}
	d.add(Item{Op: op, A: a, B: b})
}

// apart adds blocks that belong to none of the other side.
func (d *Diff) apart(a, b []*Block) {
	for _, block := range a {
		d.add(Item{Op: Remove, A: block})
	}
	for _, block := range b {
		d.add(Item{Op: Add, B: block})
	}
}

func (d *Diff) byCommit(a, b []*Block) {
	d.around(a, b, anchors(a, b, func(b *Block) objects.ID { return b.Commit }), d.byContent)
}

func (d *Diff) byContent(a, b []*Block) {
	d.around(a, b, anchors(a, b, func(b *Block) key { return b.key }), d.byWords)
}

// around adds the pairs, and what lies between them as between says.
func (d *Diff) around(a, b []*Block, pairs []pair, between func(a, b []*Block)) {
	i, j := 0, 0
	for _, p := range append(pairs, pair{len(a), len(b)}) {
		if i < p.a || j < p.b {
			between(a[i:p.a], b[j:p.b])
		}
		if p.a < len(a) {
			d.both(a[p.a], b[p.b])
		}
		i, j = p.a+1, p.b+1
	}
}

// byWords pairs blocks that are alike, as many and as much as can be without
// crossing.
func (d *Diff) byWords(a, b []*Block) {
	if len(a) == 0 || len(b) == 0 {
		d.apart(a, b)
		return
	}
	i, j := 0, 0
	for _, p := range align(a, b) {
		d.apart(a[i:p.a], b[j:p.b])
		d.both(a[p.a], b[p.b])
		i, j = p.a+1, p.b+1
	}
	d.apart(a[i:], b[j:])
}
