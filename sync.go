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

// How Sync finds the place of a list. readHistory reads the blocks of the branch, and package
// reconcile compares them with the list, first with the blocks after their edits, then with
// those before them, then with the compiled prompt. When the list has all blocks of the
// branch, the rest of the list follows the tip. Otherwise the longest common beginning counts:
// forkPointAfterBlocks finds the commit at which a fork has exactly these blocks. The forks of earlier
// calls are compared in the same way, and the target with the most common blocks is used. The
// commits are written on the condition that the branch has not moved; otherwise Sync starts
// again.

// SyncResult is the result of [Branch.Sync].
type SyncResult struct {
	Branch  string       // the branch that has the messages: the one that Sync was called on, or a fork of it
	Tip     objects.ID   // of that branch; zero: it has no commits
	Known   int          // number of messages at the start of the list that the branch had before
	Commits []objects.ID // the new commits, oldest first
}

// maxSyncRaces is the number of attempts of Sync when other writers move the branch.
const maxSyncRaces = 16

// Sync takes the complete list of messages of a client that sends its whole conversation
// each time, and commits the new messages in one batch. Syncing the same list again adds
// nothing, and so does a list that ends before the branch does.
//
// When the list begins with all messages of the branch, the rest is appended to the tip. The
// list may have these messages as [Branch.Messages] returns them, as they were before edits,
// or as [Repo.Compile] returns them. A list whose earlier messages differ is committed to a
// fork: a new branch NAME/fork-N, which begins at the last commit that both have. A later
// Sync of such a list, on either branch, continues that fork. [SyncResult.Branch] names the
// branch: the client should continue there.
//
// The comparison allows for a client that re-encodes JSON arguments, drops or adds reasoning
// in earlier messages, joins or splits the text blocks of a message, changes call ids, or
// sends parallel results in another order. A list without any instruction is compared
// without those of the branch, which stay. A secret is equal to its mask, and a purged block
// is recognized by its content: the fork of a list that repeats it leaves it purged.
//
// The messages come from outside, so their secrets are masked as in an import, and tool
// results need no call. The role of a message takes precedence over the usual roles of its
// blocks; in a message without a role, each block has its usual role. A note is an error.
func (b *Branch) Sync(ctx context.Context, messages []content.Message) (*SyncResult, error) {
	c := b.repo.defaultOptions()
	list, err := splitIntoSingleRoleMessages(messages)
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

// clientMessages is the list of a client. Each message has the role of all its blocks, and
// there are no empty blocks.
type clientMessages struct {
	messages     []content.Message
	sentIn       []int // for each block: the index of the client's message
	count        int   // number of the client's messages
	instructions bool  // the list has at least one instruction
}

// splitIntoSingleRoleMessages checks the messages of a client, drops their empty blocks, and
// splits each message into messages of one role.
func splitIntoSingleRoleMessages(messages []content.Message) (*clientMessages, error) {
	l := &clientMessages{count: len(messages)}
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
			l.sentIn = append(l.sentIn, i)
			l.instructions = l.instructions || role == content.RoleSystem
		}
	}
	return l, nil
}

// messagesWithin returns the number of the client's messages that lie completely within the
// first n blocks.
func (l *clientMessages) messagesWithin(n int) int {
	if n == len(l.sentIn) {
		return l.count
	}
	return l.sentIn[n]
}

// syncTarget is the branch and the commit after which the new blocks of a list are committed.
type syncTarget struct {
	branch  string
	tip     objects.ID // of the branch
	base    objects.ID // the commit that new blocks follow
	matched int        // number of blocks at the start of the list that the history of base has
	atTip   bool       // base is the tip, so no fork is needed
}

// syncOnce is one attempt of Sync.
func (b *Branch) syncOnce(ctx context.Context, c *callOptions, list *clientMessages) (*SyncResult, error) {
	at, err := b.repo.findTargetOnBranch(ctx, c, b.name, list)
	if err != nil {
		return nil, fmt.Errorf("sync branch %s: %w", b.name, err)
	}
	var forks map[string]bool
	if !at.atTip && at.matched < len(list.sentIn) {
		if at, forks, err = b.findTargetAmongForks(ctx, c, list, at); err != nil {
			return nil, fmt.Errorf("sync branch %s: %w", b.name, err)
		}
	}
	result := &SyncResult{Branch: at.branch, Tip: at.tip, Known: list.messagesWithin(at.matched)}
	if at.matched == len(list.sentIn) {
		return result, nil
	}
	if !at.atTip {
		if result.Branch, err = refs.FreeName(refs.ForkedFrom(b.name), refs.ForkSuffix, func(name string) (bool, error) { return forks[name], nil }); err != nil {
			return nil, err
		}
	}
	to := b.repo.Branch(result.Branch)
	result.Commits, err = to.appendIfTipOrNoBranch(ctx, c, "sync", at.base, !at.atTip, func(parent *commit.Commit) ([]commit.Draft, error) {
		var drafts []commit.Draft
		for _, m := range messagesAfter(list.messages, at.matched) {
			from := &originsBySource{base: commit.Origin{Session: to.name}}
			drafts = append(drafts, c.newDrafts(parent, m.Blocks, from, func(content.Block) content.Role { return m.Role })...)
			parent = nil // only the first message may continue the last one of the branch
		}
		return drafts, nil
	})
	if err != nil {
		return nil, err
	}
	result.Tip = result.Commits[len(result.Commits)-1]
	return result, nil
}

// findTargetAmongForks looks for a target that is better than best on the forks that earlier
// calls made and on the branch that they are forks of. tried has the names of all of these.
func (b *Branch) findTargetAmongForks(ctx context.Context, c *callOptions, list *clientMessages, best syncTarget) (better syncTarget, tried map[string]bool, err error) {
	found, err := b.repo.store.Refs(ctx, objects.RefQuery{Prefix: refs.Heads + refs.ForkedFrom(b.name) + refs.ForkSuffix})
	if err != nil {
		return best, nil, err
	}
	candidates := []string{refs.ForkedFrom(b.name)}
	for _, ref := range found {
		candidates = append(candidates, strings.TrimPrefix(ref.Name, refs.Heads))
	}
	tried = map[string]bool{}
	for _, name := range candidates {
		if tried[name] = true; name == b.name {
			continue
		}
		at, err := b.repo.findTargetOnBranch(ctx, c, name, list)
		if err != nil {
			return best, nil, err
		}
		ends := at.atTip || at.matched == len(list.sentIn) // no fork is needed
		if at.tip.IsZero() {
			continue
		}
		if at.matched > best.matched || at.matched == best.matched && ends && !best.atTip {
			best = at
		}
	}
	return best, tried, nil
}

// findTargetOnBranch returns the target of a list on one branch.
func (r *Repo) findTargetOnBranch(ctx context.Context, c *callOptions, branch string, list *clientMessages) (syncTarget, error) {
	tip, err := r.Branch(branch).Tip(ctx)
	if err != nil {
		return syncTarget{}, err
	}
	h, err := r.readHistory(ctx, tip)
	if err != nil {
		return syncTarget{}, err
	}
	if !list.instructions {
		h.blocks = slices.DeleteFunc(h.blocks, func(s historyBlock) bool { return h.line[s.lineIndex].Role == content.RoleSystem })
	}
	maskSecrets := c.newMasker().Mode != history.MaskOff
	theirs, err := h.replaceSecretsAndPurged(list.messages, maskSecrets)
	if err != nil {
		return syncTarget{}, err
	}
	best := syncTarget{branch: branch, tip: tip, matched: -1}
	for _, edited := range []bool{true, false} {
		at := h.matchMessages(theirs, edited, maskSecrets)
		at.branch, at.tip = branch, tip
		if at.atTip && !best.atTip || at.atTip == best.atTip && at.matched > best.matched {
			best = at
		}
	}
	if best.atTip || best.matched == len(list.sentIn) || tip.IsZero() {
		return best, nil
	}
	p, err := compile.Chain(ctx, r.store, tip, c.compilerOptions())
	if err != nil {
		return best, nil //nolint:nilerr // the list cannot repeat a prompt that cannot be compiled
	}
	prompt := p.Messages
	if !list.instructions {
		prompt = slices.DeleteFunc(slices.Clone(prompt), func(m content.Message) bool { return m.Role == content.RoleSystem })
	}
	if m := reconcile.CompareMessages(maskMessagesIf(prompt, maskSecrets), theirs); m.Whole && m.Listed > best.matched {
		best = syncTarget{branch: branch, tip: tip, base: tip, matched: m.Listed, atTip: true}
	}
	return best, nil
}

// matchMessages compares a list with the blocks of the history, after their edits or before
// them, and returns the target for the rest of the list.
func (h *branchHistory) matchMessages(list []content.Message, afterEdits, maskSecrets bool) syncTarget {
	block := func(s *historyBlock) content.Block {
		if afterEdits {
			return s.current
		}
		return s.original
	}
	n := len(h.blocks)
	for {
		m := reconcile.CompareMessages(maskMessagesIf(joinToMessages(h, h.blocks[:n], block), maskSecrets), list)
		if m.Whole && n == len(h.blocks) {
			at := syncTarget{matched: m.Listed, atTip: true}
			if len(h.line) > 0 {
				at.base = h.line[len(h.line)-1].ID
			}
			return at
		}
		n = m.Known
		base, ok := h.forkPointAfterBlocks(n, afterEdits)
		if ok || m.Listed == countBlocks(list) {
			return syncTarget{base: base, matched: m.Listed}
		}
		for !ok {
			n--
			_, ok = h.forkPointAfterBlocks(n, afterEdits)
		}
	}
}

// forkPointAfterBlocks returns the commit at which a fork has exactly the first n compared blocks, along
// with the commits after them that were not compared. ok is false when there is no such
// commit: a later edit changed one of the blocks, or a merge brought the last of them.
func (h *branchHistory) forkPointAfterBlocks(n int, afterEdits bool) (base objects.ID, ok bool) {
	at, last := -1, 0
	if n > 0 {
		at = h.blocks[n-1].lineIndex
	}
	end := len(h.line)
	if n < len(h.blocks) {
		end = h.blocks[n].lineIndex
	}
	for _, s := range h.blocks[:n] {
		if afterEdits {
			last = max(last, s.editIndex)
		}
	}
	if at >= 0 && !h.onFirstParentLine[at] {
		return base, false
	}
	for at+1 < end && h.onFirstParentLine[at+1] {
		at++
	}
	if at >= 0 {
		base = h.line[at].ID
	}
	return base, last <= max(at, 0)
}

// countBlocks returns the number of blocks of messages.
func countBlocks(messages []content.Message) (n int) {
	for _, m := range messages {
		n += len(m.Blocks)
	}
	return n
}

// replaceSecretsAndPurged returns the list of a client in the form that is compared with the history:
// with its secrets masked if maskSecrets is true, and with placeholders for purged blocks.
func (h *branchHistory) replaceSecretsAndPurged(list []content.Message, maskSecrets bool) ([]content.Message, error) {
	purged := map[objects.ID]content.Block{}
	for _, s := range h.blocks {
		for _, c := range []*commit.Commit{h.line[s.lineIndex], h.line[s.editIndex]} {
			if c.Tombstone != nil {
				purged[c.ContentID] = blockOrPlaceholder(c)
			}
		}
	}
	list = maskMessagesIf(list, maskSecrets)
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

// maskMessagesIf returns messages with their secrets masked, if maskSecrets. Stored blocks may
// be masked while a client sends the secrets again, so both sides are compared masked.
func maskMessagesIf(messages []content.Message, maskSecrets bool) []content.Message {
	if !maskSecrets {
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

// messagesAfter returns a conversation without its first n blocks.
func messagesAfter(messages []content.Message, n int) []content.Message {
	for i, m := range messages {
		if n < len(m.Blocks) {
			return append([]content.Message{{Role: m.Role, Blocks: m.Blocks[n:]}}, messages[i+1:]...)
		}
		n -= len(m.Blocks)
	}
	return nil
}
