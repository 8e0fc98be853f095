package tract

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/refs"
)

// How many commits of an import land in one transaction, and how many bytes of what
// they say: enough that a transaction costs little, and little memory. The first ones are
// smaller, so that writing begins soon.
const (
	importBatch = 1 << 14
	importFirst = 3 << 19
	importBytes = 3 << 20
)

// landing is a batch that is being written while the next one is made.
type landing struct {
	done  chan error
	moves []move
}

// move is what a batch does to a branch.
type move struct {
	branch *growing
	tip    objects.ID
	parts  int
}

// flush begins to write the batch, once the one before it is written.
func (m *importing) flush(ctx context.Context) error {
	if err := m.landed(); err != nil || m.count == 0 {
		return err
	}
	if err := m.goesOn(ctx); err != nil {
		return err
	}
	next := &landing{done: make(chan error, 1)}
	batch := objects.Batch{Put: m.writer.commits.Put(), Note: m.call.note("import"), Copies: true}
	for _, g := range m.order {
		switch {
		case g.waiting == 0:
			continue
		case m.dry:
			next.moves = append(next.moves, move{g, g.stored, g.waiting})
		default:
			tip := *g.tip // whose memory is used again
			tip.Parents = slices.Clone(tip.Parents)
			g.tip = &tip
			m.repo.headers.put(g.tip)
			next.moves = append(next.moves, move{g, g.tip.ID, g.waiting})
			batch.Refs = append(batch.Refs, objects.RefUpdate{Name: refs.Heads + g.name, Old: g.stored, New: g.tip.ID})
		}
		g.waiting = 0
	}
	m.landing = next
	if len(m.spare.Put()) == 0 {
		m.spare.Reset(len(batch.Put))
	}
	m.writer.commits, m.spare, m.count, m.size = m.spare, m.writer.commits, 0, 0
	m.most = min(2*m.most, importBytes)
	if m.dry {
		next.done <- nil
		return nil
	}
	go func() { next.done <- m.repo.store.Apply(ctx, batch) }()
	return nil
}

// goesOn makes the next batch part of the operation that the first one began.
func (m *importing) goesOn(ctx context.Context) (err error) {
	for _, g := range m.order {
		if m.call.with == 0 && !m.dry && g.Added > 0 {
			m.call.with, err = m.repo.Branch(g.name).Moved(ctx, g.stored)
			return err
		}
	}
	return nil
}

// landed waits for the batch that is being written.
func (m *importing) landed() error {
	last := m.landing
	if last == nil {
		return nil
	}
	m.landing = nil
	if err := <-last.done; err != nil {
		m.count = 0 // what is made since stands on what is not there
		return fmt.Errorf("import: %w", err)
	}
	m.spare.Reset(len(m.spare.Put()))
	for _, moved := range last.moves {
		moved.branch.stored = moved.tip
		moved.branch.Added += moved.parts
	}
	return nil
}

// header is that of a commit that was imported, perhaps in a batch that is not written
// yet.
func (m *importing) header(ctx context.Context, id objects.ID) (*commit.Commit, error) {
	for _, made := range [][]objects.Object{m.writer.commits.Put(), m.spare.Put()} {
		for _, o := range made {
			if o.ID == id {
				o.Data = bytes.Clone(o.Data) // its memory is used again
				return commit.Parse(o)
			}
		}
	}
	return m.repo.header(ctx, id)
}
