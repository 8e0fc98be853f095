package tract

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/objects"
)

// ImportedMessage is one message that another program kept.
type ImportedMessage struct {
	Branch string        // that it goes on, made when it is missing
	From   string        // ID of the part that a new branch begins after; empty: nothing before it
	Origin commit.Origin // what is known of it; Source and Session are set by Import
	Label  commit.Label
	Parts  []ImportedPart
}

// ImportedPart is one block of a message. Parts of one message that follow each
// other may have the same ID.
type ImportedPart struct {
	ID    string        // of its place in the source: what has it is imported once
	Time  time.Time     // zero: now
	Block content.Block // one that content.CheckBlock refuses ends the import
}

// check refuses a message whose blocks or times cannot be stored.
func (f *ImportedMessage) check() error {
	for _, p := range f.Parts {
		if err := cmp.Or(content.CheckBlock(p.Block), checkTime(p.Time)); err != nil {
			return fmt.Errorf("part %q: %w", p.ID, err)
		}
	}
	return checkTime(f.Origin.Started)
}

// ImportOptions say how an Import works.
type ImportOptions struct {
	DryRun bool // say what would be done, and write nothing
}

// ImportResult is what an import did to one branch.
type ImportResult struct {
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

// positionOf is the key of the first block of a part in the source of an importer.
func positionOf(importer, part string) commit.Key {
	return commit.Key{Kind: commit.KeyImport, Text: part, Importer: importer}
}

// Import commits messages that another program kept, in their order, in a
// transaction for every few thousand; all of them are one operation for Undo. What an
// earlier import brought is not committed again, so that a source that has grown adds
// what is new; one that differs from what was imported is a *[DivergedError]. An error
// of the list, or the end of ctx, ends the import: what came before it is committed and
// returned with the error.
func (r *Repo) Import(ctx context.Context, list iter.Seq2[ImportedMessage, error], o ImportOptions) ([]ImportResult, error) {
	m := &importing{repo: r, options: r.defaultOptions(), dry: o.DryRun, branches: map[string]*importedBranch{}, at: map[commit.Key]objects.ID{}}
	kept := context.WithoutCancel(ctx) // who stops it keeps what was read
	var err error
	for f, bad := range list {
		if err = cmp.Or(bad, ctx.Err()); err == nil {
			err = m.add(kept, &f)
		}
		if err != nil {
			break
		}
	}
	if bad := m.flush(kept); bad != nil && (err == nil || ctx.Err() == nil) {
		err = bad
	}
	return m.result(err)
}

// importing is an import on its way.
type importing struct {
	repo     *Repo
	options  *callOptions
	dry      bool
	branches map[string]*importedBranch
	order    []*importedBranch
	at       map[commit.Key]objects.ID // by positionOf a part: the commit of its last block; zero in a dry run
	writer   commit.Writer             // of the batch
	count    int                       // commits in it
	size     int                       // bytes of what they say
}

// importedBranch is a branch that an import adds to.
type importedBranch struct {
	name    string
	stored  objects.ID     // its tip in the store
	tip     *commit.Commit // with what waits in the batch
	known   map[commit.Key]*commit.Commit
	ends    map[commit.Key]bool // keys of the last answer and its results: what is new may follow these
	foreign bool                // the branch has blocks of its own after what was imported
	reached bool                // one of them was seen
	ready   bool                // new parts may be added
	ImportResult
	waiting int // parts in the batch
}

func (m *importing) result(err error) ([]ImportResult, error) {
	var list []ImportResult
	for _, g := range m.order {
		g.Branch, g.Tip = g.name, g.stored
		list = append(list, g.ImportResult)
	}
	return list, err
}

// loadBranch finds out what an earlier import brought to a branch.
func (m *importing) loadBranch(ctx context.Context, name string) (*importedBranch, error) {
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
	g := &importedBranch{name: name, stored: tip, known: map[commit.Key]*commit.Commit{}, ends: map[commit.Key]bool{}}
	if !tip.IsZero() {
		if err := m.readImported(ctx, g); err != nil {
			return nil, fmt.Errorf("import: %w", err)
		}
	}
	m.branches[name], m.order = g, append(m.order, g)
	return g, nil
}

// readImported reads what earlier imports brought to a branch.
func (m *importing) readImported(ctx context.Context, g *importedBranch) error {
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
		if c.Key.Kind != commit.KeyImport {
			g.foreign = g.foreign || len(g.known) == 0
			continue
		}
		g.known[c.Key] = c
		if part := positionOf(c.Key.Importer, c.Key.Text); m.at[part].IsZero() {
			m.at[part] = c.ID
		}
		if !closed {
			g.ends[c.Key] = true
			closed = c.Role != content.RoleTool
		}
	}
	return nil
}

// add takes one message.
func (m *importing) add(ctx context.Context, f *ImportedMessage) error {
	if err := f.check(); err != nil {
		return fmt.Errorf("import into branch %s: %w", f.Branch, err)
	}
	g, err := m.loadBranch(ctx, f.Branch)
	if err != nil {
		return err
	}
	f.Origin.Usage = f.Origin.Usage.Bounded()
	f.Origin.Source, f.Origin.Session = commit.SourceImport, f.Branch
	var key commit.Key
	var before *commit.Commit
	for i, part := range f.Parts {
		position := positionOf(f.Origin.Importer, part.ID)
		if i > 0 && part.ID == f.Parts[i-1].ID {
			key.Block++
		} else {
			key = position
		}
		if known := g.known[key]; known != nil {
			before, g.reached = known, g.reached || g.ends[key]
			g.Parts++
			continue
		}
		if content.IsEmpty(part.Block) {
			if g.tip != nil {
				m.at[position] = g.tip.ID
			}
			continue
		}
		if err := m.prepareBranch(ctx, g, f); err != nil {
			return err
		}
		g.Parts++
		if before, err = m.write(g, part, key, f, before); err != nil {
			return fmt.Errorf("import into branch %s: %w", g.name, err)
		}
		m.at[position] = objects.ID{}
		if before != nil { // nil in a dry run
			m.at[position] = before.ID
		}
	}
	if m.count >= mostCommits || m.size >= mostBytes {
		return m.flush(ctx)
	}
	return nil
}

// prepareBranch makes a branch ready for what is new.
func (m *importing) prepareBranch(ctx context.Context, g *importedBranch, f *ImportedMessage) error {
	switch {
	case g.ready:
		return nil
	case !g.stored.IsZero() && (g.foreign || !g.reached):
		return &DivergedError{g.name}
	case g.stored.IsZero() && f.From != "":
		at, known := m.at[positionOf(f.Origin.Importer, f.From)]
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
	g.ready = true
	return nil
}

// write makes the commit of a part, after the part before it in its message, and puts it into the batch. The commit is nil when nothing is to be
// written. A part that comes later than the rest of its message has what is known of the
// message by then: a log may tell what it cost only with its last part.
func (m *importing) write(g *importedBranch, part ImportedPart, key commit.Key, f *ImportedMessage, before *commit.Commit) (*commit.Commit, error) {
	if m.dry {
		g.Added++
		return nil, nil
	}
	d := m.options.newDraft(part.Block, &f.Origin)
	d.Role, d.Key, d.Label = content.RoleOf(part.Block), key, f.Label
	if !part.Time.IsZero() {
		d.Time = part.Time
	}
	if before != nil && before.Role == d.Role && d.Role != content.RoleSystem {
		d.Index = before.Index + 1
	}
	made, err := m.options.writeCommits(&m.writer, g.tip, d)
	if err != nil {
		return nil, err
	}
	g.tip = made[0]
	g.waiting++
	m.count++
	m.size += int(g.tip.Size)
	return g.tip, nil
}

// AppendResponse adds a reply that was got without this package, such as one that was
// saved: its thoughts, its answer and its calls, as one message with where it came
// from. A reply whose id is among the last 1,000 commits of the branch already is
// not added again, unless it says something else; what was added then is returned.
func (b *Branch) AppendResponse(ctx context.Context, reply *llm.Response, o AppendOptions) ([]objects.ID, error) {
	if err := content.CheckBlocks(reply.Blocks); err != nil {
		return nil, fmt.Errorf("append reply: %w", err)
	}
	c, err := b.repo.resolveAppend(o)
	if err != nil {
		return nil, err
	}
	if c.key.IsZero() && reply.ID != "" {
		c.key = commit.Key{Kind: commit.KeyResponse, Text: reply.ID}
	}
	origin := b.newResponseOrigin(reply, reply.From)
	origin.Source = commit.SourceImport
	var drafts []commit.Draft
	for _, block := range reply.Blocks {
		if !content.IsBlank(block) {
			d := c.newDraft(block, origin)
			d.Index, d.Priority = len(drafts), c.priority
			drafts = append(drafts, d)
		}
	}
	if len(drafts) == 0 {
		return nil, fmt.Errorf("append reply: %w", ErrEmpty)
	}
	return b.write(ctx, c, "append reply", func(*commit.Commit) ([]commit.Draft, error) { return drafts, nil })
}
