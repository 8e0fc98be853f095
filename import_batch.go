package tract

import (
	"context"
	"fmt"
	"slices"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/refs"
)

// How many commits of an import land in one transaction, and how many bytes of what
// they say: enough that a transaction costs little, and little memory. The first ones are
// smaller, so that writing begins soon. So many may wait for one another while the next
// is made.
const (
	importBatch = 1 << 14
	importFirst = 3 << 19
	importBytes = 9 << 18
	landingMost = 2
)

// landing is a batch that is being written, or waits for the one before it, while the
// next one is made.
type landing struct {
	commits *commit.Writer
	batch   objects.Batch
	moves   []move
	done    chan struct{} // closed when err says what has come of it
	err     error
}

// move is what a batch does to a branch.
type move struct {
	branch *growing
	tip    objects.ID
	parts  int
}

// flush begins to write the batch, behind those that wait.
func (m *importing) flush(ctx context.Context) error {
	if m.count == 0 {
		return nil
	}
	if len(m.landing) == landingMost {
		if err := m.land(); err != nil {
			return err
		}
	}
	next := &landing{commits: m.writer.commits, done: make(chan struct{})}
	next.batch = objects.Batch{Put: next.commits.Put(), Copies: true}
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
			next.batch.Refs = append(next.batch.Refs, objects.RefUpdate{Name: refs.Heads + g.name, Old: g.sent, New: g.tip.ID})
			g.sent = g.tip.ID
		}
		g.waiting = 0
	}
	before := m.last
	m.landing, m.last = append(m.landing, next), next
	m.writer.commits, m.count, m.size = m.empty(len(next.batch.Put)), 0, 0
	m.most = min(2*m.most, importBytes)
	if m.dry {
		close(next.done)
		return nil
	}
	go func() {
		defer close(next.done)
		next.err = m.apply(ctx, next, before)
	}()
	return nil
}

// empty gives a writer for the next batch.
func (m *importing) empty(room int) *commit.Writer {
	if n := len(m.spare); n > 0 {
		w := m.spare[n-1]
		m.spare = m.spare[:n-1]
		return w
	}
	w := new(commit.Writer)
	w.Reset(room)
	return w
}

// apply writes a batch behind the one before, which it is checked beside.
func (m *importing) apply(ctx context.Context, l, before *landing) error {
	bad := l.batch.CheckAhead()
	if before != nil {
		<-before.done
		if before.err != nil {
			return before.err
		}
		if m.call.with == 0 { // it is part of the operation that the first one began
			first := before.moves[0]
			n, err := m.repo.Branch(first.branch.name).Moved(ctx, first.tip)
			if err != nil {
				return err
			}
			m.call.with = n
		}
	}
	if bad != nil {
		return bad
	}
	l.batch.Note = m.call.note("import")
	return m.repo.store.Apply(ctx, l.batch)
}

// land waits for the first batch that is being written. When it cannot be, those behind
// it are not either, nor is one that is made later: apply sees to that.
func (m *importing) land() error {
	first := m.landing[0]
	if <-first.done; first.err != nil {
		for _, l := range m.landing {
			<-l.done
		}
		m.landing = nil
		return fmt.Errorf("import: %w", first.err)
	}
	m.landing = m.landing[1:]
	first.commits.Reset(len(first.batch.Put))
	m.spare = append(m.spare, first.commits)
	for _, moved := range first.moves {
		moved.branch.stored = moved.tip
		moved.branch.Added += moved.parts
	}
	return nil
}

// landed waits for all batches that are being written.
func (m *importing) landed() error {
	for len(m.landing) > 0 {
		if err := m.land(); err != nil {
			return err
		}
	}
	return nil
}

// header is that of a commit that was imported, perhaps in a batch that is not written
// yet: then it holds until the next flush, when its memory may be used again.
func (m *importing) header(ctx context.Context, id objects.ID) (*commit.Commit, error) {
	lists := [][]objects.Object{m.writer.commits.Put()}
	for _, l := range m.landing {
		lists = append(lists, l.batch.Put)
	}
	for _, made := range lists {
		for _, o := range made {
			if o.ID == id {
				return commit.Parse(o)
			}
		}
	}
	return m.repo.header(ctx, id)
}
