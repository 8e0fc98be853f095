package tract

import (
	"context"
	"fmt"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/objects"
)

// The most commits, and bytes of content, that an import writes in one transaction: enough
// to make the cost of a transaction small, and few enough to need little memory.
const (
	mostCommits = 1 << 13
	mostBytes   = 4 << 20
)

// flush writes the batch in one transaction and begins a new one.
func (m *importer) flush(ctx context.Context) error {
	if m.count == 0 {
		return nil
	}
	batch := objects.Batch{Put: m.writer.Objects(), Copies: true, Note: m.options.note(ctx, "import")}
	m.writer, m.count, m.size = commit.Writer{}, 0, 0
	var changed []*importedBranch
	for _, g := range m.order {
		if g.waiting > 0 {
			changed = append(changed, g)
			batch.Refs = append(batch.Refs, objects.RefUpdate{Name: refs.Heads + g.name, Old: g.stored, New: g.tip.ID})
		}
	}
	if err := m.repo.store.Apply(ctx, batch); err != nil {
		return fmt.Errorf("import: %w", err)
	}
	for _, g := range changed {
		g.stored = g.tip.ID
		g.Added += g.waiting
		g.waiting = 0
	}
	return nil
}

// header returns the header of an imported commit, also of one in the batch.
func (m *importer) header(ctx context.Context, id objects.ID) (*commit.Commit, error) {
	for _, o := range m.writer.Objects() {
		if o.ID == id {
			return commit.Parse(o)
		}
	}
	return m.repo.header(ctx, id)
}
