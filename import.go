package tract

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/refs"
)

// Foreign is one message that another program kept.
type Foreign struct {
	Branch string        // that it goes on, made when it is missing
	From   string        // ID of the part that a new branch begins after; empty: nothing before it
	Origin commit.Origin // what is known of it; Source and Session are set by Import
	Label  commit.Label
	Parts  []ForeignPart
}

// ForeignPart is one block of a message. Parts of one message that follow each
// other may have the same ID.
type ForeignPart struct {
	ID    string        // of its place in the source: what has it is imported once
	Time  time.Time     // zero: now
	Block content.Block // one that content.CheckBlock refuses ends the import
}

// check refuses a message whose blocks or times cannot be stored.
func (f *Foreign) check() error {
	for _, p := range f.Parts {
		if err := cmp.Or(content.CheckBlock(p.Block), checkTime(p.Time)); err != nil {
			return fmt.Errorf("part %q: %w", p.ID, err)
		}
	}
	return checkTime(f.Origin.Started)
}

// Imported is what an import did to one branch.
type Imported struct {
	Branch string
	Parts  int // that the source has
	Added  int // of them, that were not there yet
	Tip    objects.ID
}

// DivergedError says that a branch goes on in another way than the source: the
// source was changed before its end, or the branch was talked on with.
type DivergedError struct{ Branch string }

// Error names the branch.
func (e *DivergedError) Error() string {
	return fmt.Sprintf("import: branch %s is there and goes on in another way than the source", e.Branch)
}

// importKey begins the idempotency keys of what was imported. After it come the place
// of a part in its source, and which block of the part it is.
const importKey = "import/"

// sourceOf is the place that a key of an imported block tells.
func sourceOf(key string) string { return key[len(importKey):strings.LastIndexByte(key, '#')] }

// Import commits messages that another program kept, in their order, in a
// transaction for every few thousand; all of them are one operation for Undo. What an
// earlier import brought is not committed again, so that a source that has grown adds
// what is new; one that differs from what was imported is a *[DivergedError]. An error
// of the list ends the import: what came before it is committed and told. The list is
// read ahead of what is committed; the parts of a message are not to be changed before
// Import returns.
func (r *Repo) Import(ctx context.Context, list iter.Seq2[Foreign, error], opts ...Option) ([]Imported, error) {
	return r.importAll(ctx, list, false, opts)
}

// PlanImport tells what Import would do, and writes nothing.
func (r *Repo) PlanImport(ctx context.Context, list iter.Seq2[Foreign, error], opts ...Option) ([]Imported, error) {
	return r.importAll(ctx, list, true, opts)
}

func (r *Repo) importAll(ctx context.Context, list iter.Seq2[Foreign, error], dry bool, opts []Option) ([]Imported, error) {
	c, err := r.call(opts)
	if err != nil {
		return nil, err
	}
	m := &importing{
		repo: r, call: c, dry: dry, branches: map[string]*growing{}, at: map[string]objects.ID{},
		writer: c.writer(),
	}
	m.begin()
	m.pages.masks = *c.masking()
	err = m.all(ctx, list)
	bad := m.flush(context.WithoutCancel(ctx))
	if bad == nil {
		bad = m.landed()
	}
	if bad != nil && (err == nil || ctx.Err() == nil) {
		err = bad
	}
	return m.result(err)
}

// importing is an import on its way.
type importing struct {
	repo     *Repo
	call     *call
	dry      bool
	branches map[string]*growing
	order    []*growing
	at       map[string]objects.ID // by the place of a part: the commit of its last block; see trace
	traced   bool                  // at has every place
	writer   writer                // of the batch
	next     *landing              // the batch that is made
	count    int                   // commits in it
	size     int                   // bytes of what they say
	landing  *landing              // the one before it, if that is not settled
	spare    *commit.Writer        // of one that is
	pages    pages                 // on their way to it
}

// growing is a branch that is being added to.
type growing struct {
	name    string
	stored  objects.ID     // its tip in the store
	tip     *commit.Commit // with what waits in the batch
	last    commit.Commit  // it, if it was made here
	known   map[string]*commit.Commit
	ends    map[string]bool // keys of the last answer and its results: what is new may follow these
	foreign bool            // the branch has blocks of its own after what was imported
	reached bool            // one of them was seen
	grows   bool
	Imported
	waiting int // parts in the batch
}

func (m *importing) result(err error) ([]Imported, error) {
	var list []Imported
	for _, g := range m.order {
		g.Branch, g.Tip = g.name, g.stored
		list = append(list, g.Imported)
	}
	return list, err
}

// branch finds out what an earlier import brought to a branch.
func (m *importing) branch(ctx context.Context, name string) (*growing, error) {
	if g := m.branches[name]; g != nil {
		return g, nil
	}
	if err := refs.Check(name); err != nil {
		return nil, fmt.Errorf("import: branch %w", err)
	}
	tip, err := m.repo.Branch(name).Tip(ctx)
	if err != nil {
		return nil, fmt.Errorf("import: %w", err)
	}
	g := &growing{name: name, stored: tip, known: map[string]*commit.Commit{}, ends: map[string]bool{}}
	if !tip.IsZero() {
		if err := m.look(ctx, g); err != nil {
			return nil, fmt.Errorf("import: %w", err)
		}
	}
	m.branches[name], m.order = g, append(m.order, g)
	return g, nil
}

func (m *importing) look(ctx context.Context, g *growing) error {
	closed := false
	for c, err := range commit.Walk(ctx, m.repo.store, g.stored, 0) {
		if err != nil {
			return err
		}
		if g.tip == nil {
			g.tip = c
		}
		if c.Op != commit.Append && c.Op != commit.Merge {
			continue
		}
		if !strings.HasPrefix(c.Key, importKey) {
			g.foreign = g.foreign || len(g.known) == 0
			continue
		}
		g.known[c.Key] = c
		if at := sourceOf(c.Key); m.at[at].IsZero() {
			m.at[at] = c.ID
		}
		if !closed {
			g.ends[c.Key] = true
			closed = c.Role != content.RoleTool
		}
	}
	return nil
}

// add takes one message.
func (m *importing) add(ctx context.Context, f *Foreign, s safe) error {
	if err := f.check(); err != nil {
		return fmt.Errorf("import into branch %s: %w", f.Branch, err)
	}
	g, err := m.branch(ctx, f.Branch)
	if err != nil {
		return err
	}
	f.Origin.Usage = f.Origin.Usage.Bounded()
	f.Origin.Source, f.Origin.Session = commit.SourceImport, f.Branch
	id, n := "", 0
	var before *commit.Commit
	for i, part := range f.Parts {
		if n++; part.ID != id {
			id, n = part.ID, 0
		}
		key := importKey + f.Origin.Importer + "/" + part.ID + "#" + strconv.Itoa(n)
		place := sourceOf(key)
		if known := g.known[key]; known != nil {
			before, g.reached = known, g.reached || g.ends[key]
			g.Parts++
			continue
		}
		if isEmpty(part.Block) {
			if g.tip != nil {
				m.at[place] = g.tip.ID
			}
			continue
		}
		if err := m.opens(ctx, g, f); err != nil {
			return err
		}
		g.Parts++
		if !m.dry {
			part.Block = s.part(i, part.Block, m.writer.masks)
			m.pages.grows.Store(true)
		}
		if before, err = m.write(g, part, key, f, before); err != nil {
			return fmt.Errorf("import into branch %s: %w", g.name, err)
		}
		switch {
		case m.dry:
			m.at[place] = objects.ID{}
		case m.traced:
			m.at[place] = before.ID
		}
	}
	if m.lands() {
		return m.flush(ctx)
	}
	if !m.dry {
		m.next.checkSome(m.size)
	}
	return nil
}

// opens makes a branch ready for what is new.
func (m *importing) opens(ctx context.Context, g *growing, f *Foreign) error {
	switch {
	case g.grows:
		return nil
	case !g.stored.IsZero() && (g.foreign || !g.reached):
		return &DivergedError{g.name}
	case g.stored.IsZero() && f.From != "":
		if err := m.trace(ctx); err != nil {
			return err
		}
		at, known := m.at[f.Origin.Importer+"/"+f.From]
		if !known {
			return fmt.Errorf("import into branch %s: it begins after %q, which was not imported", g.name, f.From)
		}
		if m.dry {
			break
		}
		tip, err := m.header(ctx, at)
		if err != nil {
			return err
		}
		g.tip = tip
	}
	g.grows = true
	return nil
}

// trace finds where the parts are that were imported so far. Few sources have branches
// that begin within others, so nobody keeps that in mind until one comes.
func (m *importing) trace(ctx context.Context) error {
	if m.dry || m.traced {
		return nil
	}
	if err := m.flush(ctx); err != nil {
		return err
	}
	if err := m.landed(); err != nil {
		return err
	}
	for _, g := range m.order {
		var line []*commit.Commit
		for c, err := range commit.Walk(ctx, m.repo.store, g.stored, 0) {
			if err != nil {
				return err
			}
			if (c.Op == commit.Append || c.Op == commit.Merge) && strings.HasPrefix(c.Key, importKey) {
				line = append(line, c)
			}
		}
		for _, c := range slices.Backward(line) {
			m.at[sourceOf(c.Key)] = c.ID
		}
	}
	m.traced = true
	return nil
}

// write makes the commit of a part, whose secrets are masked, after the part before it
// in its message, and puts it into the batch. The commit is nil when nothing is to be
// written. A part that comes later than the rest of its message has what is known of the
// message by then: a log may tell what it cost only with its last part. See [imported].
func (m *importing) write(g *growing, part ForeignPart, key string, f *Foreign, before *commit.Commit) (*commit.Commit, error) {
	if m.dry {
		g.waiting++
		m.count++
		return nil, nil
	}
	d := commit.Draft{
		Block: part.Block, Role: content.RoleOf(part.Block), Time: part.Time, Author: m.call.author,
		Key: key, Origin: &f.Origin, Label: f.Label,
	}
	if d.Time.IsZero() {
		d.Time = m.call.time
	}
	if before != nil && before.Role == d.Role && d.Role != content.RoleSystem {
		d.Index = before.Index + 1
	}
	clear(m.writer.origins)
	made, err := m.writer.writeMasked(g.tip, &d)
	if err != nil {
		return nil, err
	}
	m.call.tell(m.writer.masks.found)
	m.writer.masks.found = nil
	g.last = *made
	g.tip = &g.last
	m.writer.commits.Forget() // that was all of them
	g.waiting++
	m.count++
	m.size += int(made.Size)
	return g.tip, nil
}

// AppendReply adds a reply that was got without this package, such as one that was
// saved: its thoughts, its answer and its calls, as one message with where it came
// from. A reply whose id is among the last 1,000 commits of the branch already is
// not added again, unless it says something else; what was added then is returned.
func (b *Branch) AppendReply(ctx context.Context, reply *llm.Response, opts ...Option) ([]objects.ID, error) {
	if err := content.CheckBlocks(reply.Blocks); err != nil {
		return nil, fmt.Errorf("append reply: %w", err)
	}
	c, err := b.repo.call(opts)
	if err != nil {
		return nil, err
	}
	if c.key == "" && reply.ID != "" {
		c.key, c.ofReply = "reply/"+reply.ID, true
	}
	origin := &commit.Origin{
		Source: commit.SourceImport, Session: b.name, Provider: reply.From.Provider, Dialect: reply.From.Dialect, Endpoint: reply.From.Endpoint,
		Model: reply.Model, ResponseID: reply.ID, Finish: reply.Finish, Incomplete: reply.Incomplete, Usage: reply.Usage.Bounded(),
	}
	var drafts []commit.Draft
	for _, block := range reply.Blocks {
		if !saysNothing(block) {
			drafts = append(drafts, commit.Draft{
				Block: block, Index: len(drafts), Priority: c.priority, Time: c.time, Author: c.author, Key: c.key, Origin: origin, Label: c.label,
			})
		}
	}
	if len(drafts) == 0 {
		return nil, fmt.Errorf("append reply: %w", ErrEmpty)
	}
	return b.write(ctx, c, "append reply", func(*commit.Commit) ([]commit.Draft, error) { return drafts, nil })
}
