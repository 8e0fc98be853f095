package tract

import (
	"context"
	"fmt"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/objects"
)

// The most commits that an import writes in one transaction, and the bytes of content: enough to make
// the cost of a transaction small, and few enough to need little memory. The first batches are small,
// so that a short import has little to write when everything is read.
const (
	mostCommits = 1 << 13
	leastBytes  = 1 << 20
	mostBytes   = 4 << 20
)

// importBatch is a batch that a goroutine writes.
type importBatch struct {
	done     chan error // has the result
	branches []batchBranch
}

// batchBranch is a branch that a batch moves.
type batchBranch struct {
	*importedBranch
	newTip objects.ID
	added  int // parts that are new
}

// startWritingBatch waits until the batch before is written, and lets a goroutine write this one while
// the next is made. Once a batch has failed it returns that error and writes nothing.
func (m *importer) startWritingBatch(ctx context.Context) error {
	if err := m.waitForBatch(); err != nil || m.batchCommits == 0 {
		return err
	}
	batch := objects.Batch{Put: m.writer.Objects(), Copies: true, Note: m.options.note(ctx, "import")}
	m.writer, m.batchCommits, m.batchBytes = commit.Writer{}, 0, 0
	m.writer.Reserve(len(batch.Put) * 9 / 8) // the next batch is about as large
	m.writing = &importBatch{done: make(chan error, 1)}
	for _, g := range m.order {
		if g.batchParts > 0 {
			m.writing.branches = append(m.writing.branches, batchBranch{g, g.tip.ID, g.batchParts})
			batch.Refs = append(batch.Refs, objects.RefUpdate{Name: refs.Heads + g.name, Old: g.stored, New: g.tip.ID})
			g.batchParts = 0
		}
	}
	go func(done chan error) { done <- m.repo.store.Apply(ctx, batch) }(m.writing.done)
	return nil
}

// waitForBatch waits until the last batch is written, and returns the error of the batch that failed, if
// any.
func (m *importer) waitForBatch() error {
	if m.writing == nil {
		return m.failed
	}
	err := <-m.writing.done
	if err != nil {
		m.failed = fmt.Errorf("import: %w", err)
	} else {
		for _, g := range m.writing.branches {
			g.stored, g.Added = g.newTip, g.Added+g.added
		}
	}
	m.writing = nil
	return m.failed
}

// header returns the header of an imported commit, also of one that is not written yet.
func (m *importer) header(ctx context.Context, id objects.ID) (*commit.Commit, error) {
	for _, o := range m.writer.Objects() {
		if o.ID == id {
			return commit.Parse(o)
		}
	}
	if err := m.waitForBatch(); err != nil {
		return nil, err
	}
	return m.repo.header(ctx, id)
}
