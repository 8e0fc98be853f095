package tract

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/llm"
	"github.com/tract-vcs/tract/objects"
)

// How an import skips what it has imported before. Each commit of an import has a key: the importer,
// the ID of the part in the source, and the number of the block in that part. Before the first message
// of a branch, loadBranch reads the keys on the branch, down to a commit that is on a branch that was
// read before: forks share most of their commits. A part whose key is known is skipped; the
// first new part must follow the last response that was imported, or its tool results. When the
// source does not reach that point, or the branch has other blocks after it, the branch has diverged.
// New commits collect in a batch, which startWritingBatch writes in one transaction with the new tips
// of all its branches, while the next batch is made. A cancelled import still writes the batch, so that the next
// import continues there.

// ImportedMessage is one message that another program kept.
type ImportedMessage struct {
	Branch string        // the branch to append to; it is created when missing
	From   string        // ID of the part that a new branch begins after; empty: the branch begins with this message
	Origin commit.Origin // origin of the commits; Import sets Source and Session
	Label  commit.Label
	Parts  []ImportedPart
}

// ImportedPart is one block of a message. Parts of one message that follow each
// other may have the same ID.
type ImportedPart struct {
	ID    string        // identifies the part in the source; a part with the same ID is imported once
	Time  time.Time     // zero: now
	Block content.Block // a block that content.CheckBlock refuses ends the import
}

// checkBlocksAndTimes returns an error for a message whose blocks or times cannot be stored.
func (m *ImportedMessage) checkBlocksAndTimes() error {
	for _, p := range m.Parts {
		if err := cmp.Or(content.CheckBlock(p.Block), checkTime(p.Time)); err != nil {
			return fmt.Errorf("part %q: %w", p.ID, err)
		}
	}
	return checkTime(m.Origin.Started)
}

// ImportOptions are the options of [Repo.Import].
type ImportOptions struct {
	DryRun bool // return what would be imported, and write nothing
}

// ImportResult is what an import did to one branch.
type ImportResult struct {
	Branch string
	Parts  int // parts of the branch in the source
	Added  int // parts that were new
	Tip    objects.ID
}

// DivergedError is the error for a branch that has diverged from the source of an import:
// the source was changed before its end, or the conversation was continued on the branch.
type DivergedError struct{ Branch string }

// Error names the branch.
func (e *DivergedError) Error() string {
	return fmt.Sprintf("import: branch %s exists and has diverged from the source", e.Branch)
}

// partKey identifies a part in all branches of a source.
type partKey struct{ importer, id string }

// importedBlock is a commit of an import.
type importedBlock struct {
	id    objects.ID // zero: there is none, or it is only planned
	depth uint64
	role  content.Role
	index int
}

func newImportedBlock(c *commit.Commit) importedBlock {
	return importedBlock{c.ID, c.Depth, c.Role, c.Index}
}

// importedPart is where a part is: a branch after this part begins after the commit.
type importedPart struct {
	commit objects.ID      // see importedBranch.last
	branch *importedBranch // the branch on which the part was found or made last
}

// Import commits messages that another program kept, in their order, with one transaction
// for every few thousand commits; Undo takes them back as one operation. Parts that an
// earlier import committed are skipped, so importing a source that has grown adds only its
// new parts. A source that differs from what was imported before is a *[DivergedError]. An
// error in list, or the end of ctx, ends the import: the messages before it are committed
// and returned with the error.
func (r *Repo) Import(ctx context.Context, list iter.Seq2[ImportedMessage, error], o ImportOptions) ([]ImportResult, error) {
	m := &importer{repo: r, options: r.defaultOptions(), dryRun: o.DryRun, branches: map[string]*importedBranch{}, parts: map[partKey]importedPart{}}
	kept := context.WithoutCancel(ctx) // a cancelled import still commits the messages it has read
	var err error
	for f, bad := range list {
		if err = cmp.Or(bad, ctx.Err()); err == nil {
			err = m.addMessage(kept, &f)
		}
		if err != nil {
			break
		}
	}
	bad := m.startWritingBatch(kept)
	if bad == nil {
		bad = m.waitForBatch()
	}
	if bad != nil && (err == nil || ctx.Err() == nil) {
		err = bad
	}
	return m.results(), err
}

// importer is a running import.
type importer struct {
	repo         *Repo
	options      *callOptions
	dryRun       bool
	branches     map[string]*importedBranch
	order        []*importedBranch
	parts        map[partKey]importedPart
	writer       commit.Writer // of the batch
	batchCommits int           // commits in the batch
	batchBytes   int           // bytes of content in the batch
	flushedBytes int           // bytes of content in all batches before
	writing      *importBatch  // the batch before, while it is written; nil: it was
	failed       error         // of a batch
}

// importedBranch is a branch that an import adds to.
type importedBranch struct {
	name       string
	stored     objects.ID                   // its tip in the store
	tip        *commit.Commit               // its tip with the commits of the batch
	last       objects.ID                   // the commit of the last part that the source had for it; zero: none, or only planned
	known      map[commit.Key]importedBlock // in the store, but for those on base
	base       *importedBranch              // a branch with the rest of the commits; nil: there is no rest
	baseDepth  uint64                       // the depth of the last commit of base that is on this branch too
	endKeys    map[commit.Key]bool          // keys of the last response and its tool results: new parts may follow these
	continued  bool                         // the branch has other commits after the imported ones
	reachedEnd bool                         // the source has one of endKeys
	canGrow    bool                         // new parts may be added
	ImportResult
	batchParts int // parts in the batch
}

// results returns what the import has done to each branch so far.
func (m *importer) results() []ImportResult {
	var list []ImportResult
	for _, g := range m.order {
		g.Branch, g.Tip = g.name, g.stored
		list = append(list, g.ImportResult)
	}
	return list
}

// loadBranch returns the state of the branch of a message, with the parts of earlier imports; on
// the first call for the branch it reads them from the store.
func (m *importer) loadBranch(ctx context.Context, f *ImportedMessage) (*importedBranch, error) {
	name := f.Branch
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
	begin := m.parts[partKey{f.Origin.Importer, f.From}].commit
	g := &importedBranch{name: name, stored: tip, last: begin, known: map[commit.Key]importedBlock{}, endKeys: map[commit.Key]bool{}}
	if !tip.IsZero() {
		if err := m.readImported(ctx, g); err != nil {
			return nil, fmt.Errorf("import: %w", err)
		}
	}
	m.branches[name], m.order = g, append(m.order, g)
	return g, nil
}

// readImported reads the commits of earlier imports on a branch, down to one that another branch has.
func (m *importer) readImported(ctx context.Context, g *importedBranch) error {
	closed := false
	for c, err := range commit.WalkReuse(ctx, m.repo.store, g.stored, 0) {
		if err != nil {
			return err
		}
		if g.tip == nil {
			g.tip = c.Clone()
		}
		if c.Op != commit.Append && c.Op != commit.Merge {
			continue
		}
		if c.Key.Kind != commit.KeyImport {
			g.continued = g.continued || len(g.known) == 0
			continue
		}
		part := partKey{c.Key.Importer, c.Key.Text}
		at, seen := m.parts[part]
		if b, ok := at.branch.find(c.Key); ok && b.id == c.ID && closed {
			g.base, g.baseDepth = at.branch, c.Depth
			return nil
		}
		if !seen {
			m.parts[part] = importedPart{c.ID, g}
		}
		g.known[c.Key] = newImportedBlock(c)
		if !closed {
			g.endKeys[c.Key] = true
			closed = c.Role != content.RoleTool
		}
	}
	return nil
}

// find returns the commit of an earlier import with a key, if the branch has it; no branch has none.
func (g *importedBranch) find(key commit.Key) (b importedBlock, ok bool) {
	for most := uint64(math.MaxUint64); g != nil; g = g.base {
		if b, ok = g.known[key]; ok && b.depth <= most {
			return b, true
		}
		most = min(most, g.baseDepth)
	}
	return importedBlock{}, false
}

// addMessage adds the new parts of one message to the batch, and starts to write a batch that is full.
func (m *importer) addMessage(ctx context.Context, f *ImportedMessage) error {
	if err := f.checkBlocksAndTimes(); err != nil {
		return fmt.Errorf("import into branch %s: %w", f.Branch, err)
	}
	g, err := m.loadBranch(ctx, f)
	if err != nil {
		return err
	}
	f.Origin.Usage = f.Origin.Usage.Bounded()
	f.Origin.Source, f.Origin.Session = commit.SourceImport, f.Branch
	var key commit.Key
	var before importedBlock
	for i, part := range f.Parts {
		position := partKey{f.Origin.Importer, part.ID}
		if i > 0 && part.ID == f.Parts[i-1].ID {
			key.Block++
		} else {
			key = commit.Key{Kind: commit.KeyImport, Text: part.ID, Importer: f.Origin.Importer}
		}
		if known, ok := g.find(key); ok {
			before, g.reachedEnd = known, g.reachedEnd || g.endKeys[key]
			g.last, m.parts[position] = known.id, importedPart{known.id, g}
			g.Parts++
			continue
		}
		if content.IsEmpty(part.Block) {
			m.parts[position] = importedPart{g.last, g}
			continue
		}
		if err := m.findBranchStart(ctx, g, f); err != nil {
			return err
		}
		g.Parts++
		if before, err = m.addToBatch(g, part, key, f, before); err != nil {
			return fmt.Errorf("import into branch %s: %w", g.name, err)
		}
		if !m.dryRun {
			g.last = before.id
		}
		m.parts[position] = importedPart{g.last, g}
	}
	if m.batchCommits >= mostCommits || m.batchBytes >= min(max(m.flushedBytes/4, leastBytes), mostBytes) {
		m.flushedBytes += m.batchBytes
		return m.startWritingBatch(ctx)
	}
	return nil
}

// findBranchStart finds the commit that a new branch begins after, when first is the message with
// its first new part. It refuses an existing branch that has diverged from the source.
func (m *importer) findBranchStart(ctx context.Context, g *importedBranch, first *ImportedMessage) error {
	switch {
	case g.canGrow:
		return nil
	case !g.stored.IsZero() && (g.continued || !g.reachedEnd):
		return &DivergedError{g.name}
	case g.stored.IsZero() && first.From != "":
		at, known := m.parts[partKey{first.Origin.Importer, first.From}]
		if !known {
			return fmt.Errorf("import into branch %s: it begins after %q, which was not imported", g.name, first.From)
		}
		if m.dryRun || at.commit.IsZero() { // zero: after parts without content
			break
		}
		tip, err := m.header(ctx, at.commit)
		if err != nil {
			return err
		}
		g.tip = tip
	}
	g.canGrow = true
	return nil
}

// addToBatch adds the commit of a part to the batch and returns it; in a dry run it only counts
// the part. before is the commit of the part before it in the message. The
// origin is that of f: a log may have the usage of a message only with its last part.
func (m *importer) addToBatch(g *importedBranch, part ImportedPart, key commit.Key, f *ImportedMessage, before importedBlock) (importedBlock, error) {
	if m.dryRun {
		g.Added++
		return importedBlock{}, nil
	}
	d := m.options.newDraftWithoutRoleOrPriority(part.Block, &f.Origin)
	d.Role, d.Key, d.Label = content.RoleOf(part.Block), key, f.Label
	if !part.Time.IsZero() {
		d.Time = part.Time
	}
	if !before.id.IsZero() && before.role == d.Role && d.Role != content.RoleSystem {
		d.Index = before.index + 1
	}
	made, err := m.options.maskAndWrite(&m.writer, g.tip, d)
	if err != nil {
		return importedBlock{}, err
	}
	g.tip = made[0]
	g.batchParts++
	m.batchCommits++
	m.batchBytes += int(g.tip.Size)
	return newImportedBlock(g.tip), nil
}

// AppendResponse appends a response that was received without this package, such as a saved
// one: its reasoning, its text and its tool calls, as one message with its origin. When the
// last 1,000 commits of the branch already have a response with this id and content, nothing
// is written and the commits of that response are returned.
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
			d := c.newDraftWithoutRoleOrPriority(block, origin)
			d.Index, d.Priority = len(drafts), c.priority
			drafts = append(drafts, d)
		}
	}
	if len(drafts) == 0 {
		return nil, fmt.Errorf("append reply: %w", ErrEmpty)
	}
	return b.write(ctx, c, "append reply", func(*commit.Commit) ([]commit.Draft, error) { return drafts, nil })
}
