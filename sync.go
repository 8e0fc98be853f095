package tract

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/compile"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/internal/history"
	"github.com/tract-vcs/tract/internal/reconcile"
	"github.com/tract-vcs/tract/internal/refs"
	"github.com/tract-vcs/tract/objects"
)

// SyncResult is what Sync found and did.
type SyncResult struct {
	Branch  string       // that says what the list says: the branch that was asked, or a fork of it
	Tip     objects.ID   // of that branch; zero: it has no commits
	Known   int          // messages of the list, from the first, that were there already
	Commits []objects.ID // that were added, oldest first
}

// maxSyncRaces is how often Sync starts again because another writer was faster.
const maxSyncRaces = 16

// Sync takes the whole list of messages of a client, who sends all of it each time, and
// commits what is new, in one batch. The same list again adds nothing, and so does a list
// that ends before the branch does.
//
// A list that begins with everything the branch says goes on after its tip. It may say
// this as [Branch.Messages] does, as it was before edits, or as [Repo.Compile] does. A
// list whose past differs is committed to a fork: a new branch NAME/fork-N, which begins
// at the last commit that both have. A later Sync of such a list, on either branch, goes
// on with that fork. [SyncResult.Branch] names the branch: the client should go on there.
//
// The comparison takes a client into account that writes JSON arguments anew, drops or
// adds reasoning in its past, joins the text blocks of a message or cuts them, changes
// call ids, or sends parallel results in another order. A list without any instruction is
// compared without those of the branch, which stay. Secrets count as their masks, and a
// purged block is known by its content: the fork of a list that repeats it leaves it purged.
//
// What is committed was said elsewhere: its secrets are masked as those of an import are,
// and tool results need no call. The role of a message counts before the usual role of its
// blocks; a message without one has the roles of its blocks. A note is an error.
func (b *Branch) Sync(ctx context.Context, messages []content.Message) (*SyncResult, error) {
	c := b.repo.defaultOptions()
	list, err := newSyncList(messages)
	if err != nil {
		return nil, fmt.Errorf("sync: %w", err)
	}
	for range maxSyncRaces {
		var result *SyncResult
		result, err = b.syncOnce(ctx, c, list)
		if moved := (*ConflictError)(nil); !errors.As(err, &moved) {
			return result, err
		}
	}
	return nil, err
}

// syncList is the list of a client. Each message has the role of all its blocks, and
// there are no empty blocks.
type syncList struct {
	messages     []content.Message
	of           []int // of each block: the number of the client's message
	count        int   // messages of the client
	instructions bool  // there is one
}

func newSyncList(messages []content.Message) (*syncList, error) {
	l := &syncList{count: len(messages)}
	for i, m := range messages {
		if err := content.CheckBlocks(m.Blocks); err != nil {
			return nil, fmt.Errorf("message %d: %w", i+1, err)
		}
		begins := true
		for _, block := range dropEmpty(m.Blocks) {
			role := m.Role
			result, isResult := block.(content.ToolResult)
			switch {
			case role == content.NoRole:
				role = content.RoleOf(block)
			case isResult && !result.Server && role == content.RoleUser:
				role = content.RoleTool
			}
			if role == content.NoRole || block.Kind().Traits().Private {
				return nil, fmt.Errorf("message %d: a block of kind %s is not part of a conversation: leave it out of the list", i+1, block.Kind())
			}
			if n := len(l.messages); begins || l.messages[n-1].Role != role {
				l.messages, begins = append(l.messages, content.Message{Role: role}), false
			}
			last := &l.messages[len(l.messages)-1]
			last.Blocks = append(last.Blocks, block)
			l.of = append(l.of, i)
			l.instructions = l.instructions || role == content.RoleSystem
		}
	}
	return l, nil
}

// messagesWithin returns the number of messages of the client of which a branch has every block, when it
// has the first n blocks.
func (l *syncList) messagesWithin(n int) int {
	if n == len(l.of) {
		return l.count
	}
	return l.of[n]
}

// syncPlace is where a list belongs.
type syncPlace struct {
	branch string
	tip    objects.ID // of the branch
	base   objects.ID // the commit that new blocks follow
	listed int        // blocks of the list that the branch has
	whole  bool       // base is the tip
}

func (b *Branch) syncOnce(ctx context.Context, c *callOptions, list *syncList) (*SyncResult, error) {
	at, err := b.repo.place(ctx, c, b.name, list)
	if err != nil {
		return nil, fmt.Errorf("sync branch %s: %w", b.name, err)
	}
	forks := map[string]bool{}
	if !at.whole && at.listed < len(list.of) {
		if at, err = b.placeAmongForks(ctx, c, list, at, forks); err != nil {
			return nil, fmt.Errorf("sync branch %s: %w", b.name, err)
		}
	}
	result := &SyncResult{Branch: at.branch, Tip: at.tip, Known: list.messagesWithin(at.listed)}
	if at.listed == len(list.of) {
		return result, nil
	}
	if !at.whole {
		result.Branch = reconcile.ForkName(b.name, func(name string) bool { return forks[name] })
	}
	to := b.repo.Branch(result.Branch)
	result.Commits, err = to.appendAfter(ctx, c, "sync", at.base, !at.whole, func(parent *commit.Commit) ([]commit.Draft, error) {
		var drafts []commit.Draft
		for _, m := range reconcile.Rest(list.messages, at.listed) {
			from := &origins{base: commit.Origin{Session: to.name}}
			drafts = append(drafts, c.newDrafts(parent, m.Blocks, from, func(content.Block) content.Role { return m.Role })...)
			parent = nil // a later message begins anew
		}
		return drafts, nil
	})
	if err != nil {
		return nil, err
	}
	result.Tip = result.Commits[len(result.Commits)-1]
	return result, nil
}

// placeAmongForks looks for a better place on the forks that earlier calls made and on the
// branch that they are forks of, and notes their names.
func (b *Branch) placeAmongForks(ctx context.Context, c *callOptions, list *syncList, best syncPlace, names map[string]bool) (syncPlace, error) {
	found, err := b.repo.store.Refs(ctx, objects.RefQuery{Prefix: refs.Heads + reconcile.ForkedFrom(b.name) + reconcile.ForkSuffix})
	if err != nil {
		return best, err
	}
	candidates := []string{reconcile.ForkedFrom(b.name)}
	for _, ref := range found {
		candidates = append(candidates, strings.TrimPrefix(ref.Name, refs.Heads))
	}
	for _, name := range candidates {
		if names[name] = true; name == b.name {
			continue
		}
		at, err := b.repo.place(ctx, c, name, list)
		if err != nil {
			return best, err
		}
		ends := at.whole || at.listed == len(list.of) // no fork is needed
		if at.tip.IsZero() {
			continue
		}
		if at.listed > best.listed || at.listed == best.listed && ends && !best.whole {
			best = at
		}
	}
	return best, nil
}

// place finds where a list belongs on one branch.
func (r *Repo) place(ctx context.Context, c *callOptions, branch string, list *syncList) (syncPlace, error) {
	tip, err := r.Branch(branch).Tip(ctx)
	if err != nil {
		return syncPlace{}, err
	}
	h, err := r.readHistory(ctx, tip)
	if err != nil {
		return syncPlace{}, err
	}
	if !list.instructions {
		h.blocks = slices.DeleteFunc(h.blocks, func(s saidBlock) bool { return h.line[s.at].Role == content.RoleSystem })
	}
	masks := c.newMasker().Mode != history.MaskOff
	theirs, err := h.comparable(list.messages, masks)
	if err != nil {
		return syncPlace{}, err
	}
	best := syncPlace{branch: branch, tip: tip, listed: -1}
	for _, edited := range []bool{true, false} {
		at := h.place(theirs, edited, masks)
		at.branch, at.tip = branch, tip
		if at.whole && !best.whole || at.whole == best.whole && at.listed > best.listed {
			best = at
		}
	}
	if best.whole || best.listed == len(list.of) || tip.IsZero() {
		return best, nil
	}
	p, err := compile.Chain(ctx, r.store, tip, c.compilerOptions())
	if err != nil {
		return best, nil //nolint:nilerr // no client has a prompt that cannot be made
	}
	prompt := p.Messages
	if !list.instructions {
		prompt = slices.DeleteFunc(slices.Clone(prompt), func(m content.Message) bool { return m.Role == content.RoleSystem })
	}
	if m := reconcile.CompareMessages(maskedMessages(prompt, masks), theirs); m.Whole && m.Listed > best.listed {
		best = syncPlace{branch: branch, tip: tip, base: tip, listed: m.Listed, whole: true}
	}
	return best, nil
}

// place finds where a list belongs, which is compared with the blocks as they read after
// their edits, or before.
func (h *branchHistory) place(list []content.Message, edited, masks bool) syncPlace {
	block := func(s *saidBlock) content.Block {
		if edited {
			return s.block
		}
		return s.first
	}
	n := len(h.blocks)
	for {
		m := reconcile.CompareMessages(maskedMessages(messagesOf(h, h.blocks[:n], block), masks), list)
		if m.Whole && n == len(h.blocks) {
			at := syncPlace{listed: m.Listed, whole: true}
			if len(h.line) > 0 {
				at.base = h.line[len(h.line)-1].ID
			}
			return at
		}
		n = m.Known
		base, can := h.forkAt(n, edited)
		if can || m.Listed == blocksOf(list) {
			return syncPlace{base: base, listed: m.Listed}
		}
		for !can {
			n--
			_, can = h.forkAt(n, edited)
		}
	}
}

// forkAt returns the commit at which a fork has the first n blocks and no more: with the
// annotations and the instructions that follow them, if these are not compared. There is
// none where an edit of them came later, or where a merge brought the last of them.
func (h *branchHistory) forkAt(n int, edited bool) (base objects.ID, can bool) {
	at, last := -1, 0
	if n > 0 {
		at = h.blocks[n-1].at
	}
	end := len(h.line)
	if n < len(h.blocks) {
		end = h.blocks[n].at
	}
	for _, s := range h.blocks[:n] {
		if edited {
			last = max(last, s.edit)
		}
	}
	if at >= 0 && !h.own[at] {
		return base, false
	}
	for at+1 < end && h.own[at+1] {
		at++
	}
	if at >= 0 {
		base = h.line[at].ID
	}
	return base, last <= max(at, 0)
}

func blocksOf(messages []content.Message) (n int) {
	for _, m := range messages {
		n += len(m.Blocks)
	}
	return n
}

// comparable returns the list of a client as it is compared with a history: secrets are
// masked, and where a block was purged, its placeholder stands for it.
func (h *branchHistory) comparable(list []content.Message, masks bool) ([]content.Message, error) {
	purged := map[objects.ID]content.Block{}
	for _, s := range h.blocks {
		for _, c := range []*commit.Commit{h.line[s.at], h.line[s.edit]} {
			if c.Tombstone != nil {
				purged[c.ContentID] = readable(c)
			}
		}
	}
	list = maskedMessages(list, masks)
	if len(purged) == 0 {
		return list, nil
	}
	var all []content.Message
	for _, m := range list {
		blocks := slices.Clone(m.Blocks)
		for i, block := range blocks {
			id, err := commit.ContentID(block)
			if err != nil {
				return nil, err
			}
			if placeholder := purged[id]; placeholder != nil {
				blocks[i] = placeholder
			}
		}
		all = append(all, content.Message{Role: m.Role, Blocks: blocks})
	}
	return all, nil
}

// maskedMessages returns messages with their secrets masked. What is stored may be masked, and
// what a client sends again is not: secrets count as their masks on both sides.
func maskedMessages(messages []content.Message, masks bool) []content.Message {
	if !masks {
		return messages
	}
	all := slices.Clone(messages)
	for i, m := range all {
		all[i].Blocks = slices.Clone(m.Blocks)
		for j, b := range m.Blocks {
			all[i].Blocks[j], _ = history.MaskBlock(b)
		}
	}
	return all
}
