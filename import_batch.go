package tract

import (
	"context"
	"fmt"
	"slices"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/refs"
)

// How many commits of an import land in one transaction, and how many bytes of what they
// say: enough that a transaction costs little, and little memory. A batch lands when there
// is enough of it and the one before it is written; until then more comes to it, up to the
// most.
const (
	leastCommits = 1 << 12
	leastBytes   = 1 << 20
	mostCommits  = 1 << 14
	mostBytes    = 4 << 20
)

// checkStep is how many objects of a batch are checked at once, while more are made.
const checkStep = 1 << 10

// landing is a batch that is made, and then written while the next one is made.
type landing struct {
	commits *commit.Writer
	batch   objects.Batch
	moves   []move
	put     int           // objects that were given to be checked
	checked chan struct{} // closed when these are; nil: there are none
	bad     error         // what is wrong with them
	done    chan struct{} // closed when err says what has come of it
	err     error
}

// move is what a batch does to a branch.
type move struct {
	branch *growing
	tip    objects.ID
	parts  int
}

// check begins to check what was put into a batch, behind what is being checked.
func (l *landing) check() {
	list, before, checked := l.commits.Put(), l.checked, make(chan struct{})
	l.put, l.checked = len(list), checked
	go func() {
		defer close(checked)
		if before != nil {
			<-before
		}
		if l.batch.Put = list; l.bad == nil {
			l.bad = l.batch.CheckAhead()
		}
	}()
}

// checkSome begins to check what was put, if that is much.
func (l *landing) checkSome(size int) {
	if len(l.commits.Put()) < l.put+checkStep {
		return
	}
	if l.put == 0 { // what moves for want of room is checked again
		l.commits.Grow(min(2*leastBytes/max(size, 1)*checkStep, 4*leastCommits))
	}
	l.check()
}

// isDone tells whether it is known what has come of a batch.
func (l *landing) isDone() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// begin begins a batch.
func (m *importing) begin() {
	m.next = &landing{commits: m.spare, done: make(chan struct{})}
	if m.spare = nil; m.next.commits == nil {
		m.next.commits = new(commit.Writer)
	}
	m.writer.commits, m.count, m.size = m.next.commits, 0, 0
}

// lands tells whether it is time to write the batch.
func (m *importing) lands() bool {
	if m.count >= mostCommits || m.size >= mostBytes {
		return true
	}
	return (m.count >= leastCommits || m.size >= leastBytes) && (m.landing == nil || m.landing.isDone())
}

// flush begins to write the batch, when the one before it is written.
func (m *importing) flush(ctx context.Context) error {
	if m.count == 0 {
		return nil
	}
	next := m.next
	if !m.dry {
		next.check()
	}
	if err := m.landed(); err != nil {
		return err
	}
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
			next.batch.Refs = append(next.batch.Refs, objects.RefUpdate{Name: refs.Heads + g.name, Old: g.stored, New: g.tip.ID})
		}
		g.waiting = 0
	}
	m.landing = next
	m.begin()
	if m.dry {
		close(next.done)
		return nil
	}
	go func() {
		defer close(next.done)
		next.err = m.apply(ctx, next)
	}()
	return nil
}

// apply writes a batch.
func (m *importing) apply(ctx context.Context, l *landing) error {
	if <-l.checked; l.bad != nil {
		return l.bad
	}
	l.batch.Copies, l.batch.Note = true, m.call.note(ctx, "import")
	return m.repo.store.Apply(ctx, l.batch)
}

// landed waits for the batch that is being written. When it cannot be, the next one is
// not either.
func (m *importing) landed() error {
	l := m.landing
	if l == nil {
		return nil
	}
	m.landing = nil
	if <-l.done; l.err != nil {
		if m.count = 0; m.next.checked != nil { // what is made since stands on what is not there
			<-m.next.checked
		}
		return fmt.Errorf("import: %w", l.err)
	}
	l.commits.Reset(len(l.commits.Put()))
	m.spare = l.commits
	for _, moved := range l.moves {
		moved.branch.stored = moved.tip
		moved.branch.Added += moved.parts
	}
	return nil
}

// header is that of a commit that was imported, perhaps in a batch that is not written
// yet: then it holds until the next flush, when its memory may be used again.
func (m *importing) header(ctx context.Context, id objects.ID) (*commit.Commit, error) {
	lists := [][]objects.Object{m.writer.commits.Put()}
	if l := m.landing; l != nil {
		lists = append(lists, l.commits.Put())
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
