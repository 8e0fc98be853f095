package compile

import (
	"slices"
	"sync"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// The prompt cache makes compiling after an append take time in proportion to the number of new
// commits.
//
// The decisions about a turn are final once the next turn has begun, unless a later
// commit refers to it: an edit, an annotation, a summary, a merge or a system block. So the
// cache keeps, for each set of options, a few prefixes: prompts up to, and without, the last
// turn of a history. The walk of the next compile stops at the end of a prefix, or at the end of
// the prompt that was compiled from it; only the commits after the prefix are decided again.
// Their lists are then appended to those of the prefix, in place where the last prompt has the
// same elements there. A prompt with a budget depends on all turns and is never cached.
// TestCachedPromptsEqualFreshOnes compares both ways; the benchmark is "compile after one commit".

// promptCache holds the prefixes of one set of options.
type promptCache struct {
	mu       sync.Mutex
	prefixes []*prefix // the newest last
}

const (
	maxPrefixes      = 4       // of one set of options
	maxCachedEntries = 1 << 20 // of all of them
)

// cacheKey is the key of a promptCache in the cache of a store.
type cacheKey Options

// promptCacheOf returns the cache for some options; nil when the reader has none, and for a budget.
func promptCacheOf(r objects.Reader, o Options) *promptCache {
	store, ok := r.(objects.Cacher)
	if !ok || o.Budget > 0 {
		return nil
	}
	return store.Cache().Get(cacheKey(o), func() any { return &promptCache{} }).(*promptCache)
}

// prefix is a prompt up to the last turn of a history. Only its field newest changes.
type prefix struct {
	tip           objects.ID // its last commit
	entryCount    int        // its commits
	turns         int32
	lastMessage   int   // number of the last message of the history
	reasoningTurn int32 // the last turn that has reasoning; -1: none has

	// lastReasoningTurn is the last turn with reasoning of the whole history for which the
	// prefix was decided. StripAllButLast depends on it.
	lastReasoningTurn int32

	tokens       Tokens
	messageCount int                    // messages of the prompt that are complete
	blockCount   int                    // blocks of these
	toolMessage  *unfinishedToolMessage // a message that later results may still join; nil: none
	callCount    int                    // tool calls sent
	lastSent     *Entry

	newest promptSlices // of the last prompt compiled from it; guarded by promptCache.mu
}

// promptSlices are the lists of a prompt.
type promptSlices struct {
	entries      []Entry
	messages     []content.Message
	blockEntries []int32
}

// walkStop is a commit at which a walk may stop, because everything before it is cached.
type walkStop struct {
	prefix *prefix
	tail   []Entry // of the newest prompt, after the prefix
}

// walkStops lists where a walk may stop. The lists that they refer to never change.
func (m *promptCache) walkStops() (list []walkStop) {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.prefixes {
		list = append(list, walkStop{p, p.newest.entries[p.entryCount:]})
	}
	return list
}

// stopsAt reports whether a walk can stop at commit id: at the end of the prefix or of the tail.
// afterPrefix has the cached entries from the end of the prefix up to id.
func (s *walkStop) stopsAt(id objects.ID) (afterPrefix []Entry, ok bool) {
	if s.prefix.tip == id {
		return nil, true
	}
	if n := len(s.tail); n > 0 && s.tail[n-1].ID == id && changeNothingBefore(s.tail) {
		return s.tail, true
	}
	return nil, false
}

// add caches the prefix of a history and the lists of its prompt. They replace the prefix that
// the history was compiled from.
func (m *promptCache) add(h *history, p *prefix, prompt promptSlices) {
	m.mu.Lock()
	defer m.mu.Unlock()
	old := h.from.prefix
	if old != nil && old.tip == p.tip {
		if len(prompt.entries) >= len(old.newest.entries) {
			old.newest = prompt
		}
		return
	}
	if n := len(prompt.entries) - p.entryCount; !changeNothingBefore(h.entries[len(h.entries)-n:]) {
		return // what comes after the prefix may have changed what is in it
	}
	p.newest = prompt
	m.prefixes = slices.DeleteFunc(m.prefixes, func(x *prefix) bool { return x == old || x.tip == p.tip })
	m.prefixes = append(m.prefixes, p)
	m.evictOldest()
}

// evictOldest removes the oldest prefixes beyond the limits, but never the newest.
func (m *promptCache) evictOldest() {
	entries := 0
	for i, p := range slices.Backward(m.prefixes) {
		entries += p.entryCount
		if i < len(m.prefixes)-1 && (entries > maxCachedEntries || len(m.prefixes)-i > maxPrefixes) {
			m.prefixes = slices.Clone(m.prefixes[i+1:])
			return
		}
	}
}

// changeNothingBefore reports whether entries change nothing before them: they are appended blocks,
// and no system blocks.
func changeNothingBefore(entries []Entry) bool {
	for i := range entries {
		if e := &entries[i]; e.Op != commit.Append || e.Kind == content.KindSystem {
			return false
		}
	}
	return true
}

// stillValid reports whether compiling without the cache would give the same prefix, when the
// commits of h follow it: h must begin with a new turn, and change nothing in the prefix.
func (p *prefix) stillValid(h *history, o Options) bool {
	if len(h.entries) == 0 || !h.entries[0].beginsTurn() || !changeNothingBefore(h.entries) {
		return false
	}
	return o.Policy.Strip != priority.StripAllButLast || h.reasoningTurn == p.lastReasoningTurn ||
		h.reasoningTurn > p.turns && p.lastReasoningTurn > p.turns
}

// reuseBlocks sets the blocks of entries that the last prompt has, and returns the entries that it
// does not have. All lists are in the order of the history.
func (s *walkStop) reuseBlocks(list []*Entry) (missing []*Entry) {
	tail := s.tail
	for _, e := range list {
		for len(tail) > 0 && tail[0].ID != e.ID {
			tail = tail[1:]
		}
		if e.Block == nil && len(tail) > 0 && tail[0].extra == nil {
			e.Block = tail[0].Block
		}
		if e.Block == nil {
			missing = append(missing, e)
		}
	}
	return missing
}

// appendToPrefix appends the lists for the end of a history to those of the prefix. It shares the
// memory of the last prompt as far as that has the same elements.
func (m *promptCache) appendToPrefix(p *prefix, end promptSlices) promptSlices {
	if p == nil {
		return end
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	have := &p.newest
	entries := commonPrefixLen(len(have.entries)-p.entryCount, len(end.entries), func(i int) bool {
		return equalEntry(&have.entries[p.entryCount+i], &end.entries[i])
	})
	blocks := 0 // of the messages that are equal
	messages := commonPrefixLen(len(have.messages)-p.messageCount, len(end.messages), func(i int) bool {
		was, is := &have.messages[p.messageCount+i], &end.messages[i]
		if was.Role != is.Role || len(was.Blocks) != len(is.Blocks) {
			return false
		}
		to := blocks + len(is.Blocks)
		for j := blocks; j < to; j++ {
			if index := end.blockEntries[j]; have.blockEntries[p.blockCount+j] != index || int(index) >= p.entryCount+entries {
				return false
			}
		}
		blocks = to
		return true
	})
	return promptSlices{
		entries:      appendShared(&have.entries, p.entryCount, end.entries, entries),
		messages:     appendShared(&have.messages, p.messageCount, end.messages, messages),
		blockEntries: appendShared(&have.blockEntries, p.blockCount, end.blockEntries, blocks),
	}
}

// commonPrefixLen returns the number of equal elements at the beginning of two lists of the lengths a
// and b.
func commonPrefixLen(a, b int, equal func(i int) bool) (n int) {
	for n < min(a, b) && equal(n) {
		n++
	}
	return n
}

// appendShared returns the first n elements of *list followed by more. The first alreadyInList
// elements of more are in *list, after the first n. When *list ends after these, the rest
// of more is written into its free capacity, and *list loses that capacity, so that no other
// prompt writes to it.
func appendShared[T any](list *[]T, n int, more []T, alreadyInList int) []T {
	have, at := *list, n+alreadyInList
	more = more[alreadyInList:]
	switch {
	case at == 0 && len(more) == 0:
		return nil
	case at == len(have):
		*list = have[:at:at]
		return append(have, more...)
	case len(more) == 0:
		return have[:at:at]
	}
	return append(have[:at:at], more...)
}

// equalEntry reports whether two entries are of one commit and have the same decisions.
func equalEntry(a, b *Entry) bool {
	return a.ID == b.ID && (a.Block == nil) == (b.Block == nil) && (a.Tombstone() == nil) == (b.Tombstone() == nil) && a.EditedBy() == b.EditedBy() && a.SummarizedBy() == b.SummarizedBy() &&
		a.Level == b.Level && a.Why() == b.Why() && a.InPrompt == b.InPrompt && a.Turn == b.Turn && a.Tokens == b.Tokens && a.message == b.message && a.flags == b.flags
}
