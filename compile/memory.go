package compile

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tract-vcs/tract/commit"
	"github.com/tract-vcs/tract/content"
	"github.com/tract-vcs/tract/objects"
	"github.com/tract-vcs/tract/priority"
)

// memory is the prompts compiled last with the same options, up to their last
// turn: whatever is appended changes nothing of what is before it, unless it
// speaks of that.
type memory struct {
	mu    sync.Mutex
	bases []*base // the newest last

	begun atomic.Bool // something is remembered, or was: a walk asks at every commit
}

// keptBases is how many prompts are remembered for one set of options.
const keptBases = 4

// keptEntries is the most commits of the prompts that are remembered together.
const keptEntries = 1 << 20

// memoKey is that of compile in the memo of a store.
type memoKey Options

// recall gives what is remembered; nil when the reader remembers nothing. A budget
// reaches back over all turns.
func recall(r objects.Reader, o Options) *memory {
	store, ok := r.(objects.Cacher)
	if !ok || o.Budget > 0 {
		return nil
	}
	return store.Cache().Get(memoKey(o), func() any { return &memory{} }).(*memory)
}

// sentFlags is what the requests read last have sent, by manifest: that of the next one
// is told from it.
type sentFlags struct {
	mu    sync.Mutex
	known map[objects.ID][]bool
	order []objects.ID // the newest last
}

// flagsKey is that of sentFlags in the memo of a store.
type flagsKey struct{}

// keptManifests is of how many requests that is remembered: of some branches.
const keptManifests = 16

func keptFlags(r objects.Reader) *sentFlags {
	kept := &sentFlags{known: map[objects.ID][]bool{}}
	if store, ok := r.(objects.Cacher); ok {
		kept = store.Cache().Get(flagsKey{}, func() any { return kept }).(*sentFlags)
	}
	return kept
}

func (s *sentFlags) get(id objects.ID) (flags []bool, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	flags, ok = s.known[id]
	return flags, ok
}

func (s *sentFlags) put(id objects.ID, flags []bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, there := s.known[id]; id.IsZero() || there {
		return
	}
	if s.order = append(s.order, id); len(s.order) > keptManifests {
		delete(s.known, s.order[0])
		s.order = s.order[1:]
	}
	s.known[id] = flags
}

// base is a prompt up to the last turn of a history. Nothing in it changes; its
// lists may go on behind it, in prompts that were compiled later.
type base struct {
	tip      objects.ID // the last commit of it
	count    int        // commits
	turns    int32
	messages int
	thought  int32 // as in history
	thinking int32 // the last turn with reasoning of the history as it was when it was decided
	tokens   Tokens
	said     int     // messages of the prompt that are whole
	blocks   int     // of these
	open     *spoken // the one that may go on; nil: none may
	calls    int     // that were sent
	before   *Entry  // the last that was sent

	memory *memory
	parts  parts
}

// parts are the lists of the newest prompt that goes on from a base. The mutex of
// the memory guards them.
type parts struct {
	entries  []Entry
	messages []content.Message
	said     []int32
}

// at is the base that ends with a commit, or whose newest prompt does, with what that
// has behind the base.
func (m *memory) at(id objects.ID) (b *base, behind []Entry) {
	if m.empty() {
		return nil, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, b := range m.bases {
		if b.tip == id {
			return b, nil
		}
		have := b.parts.entries
		if last := len(have) - 1; last >= b.count && have[last].ID == id && plain(have[b.count:]) {
			return b, have[b.count:]
		}
	}
	return nil, nil
}

// remember keeps a base of a history, with the parts of its prompt, in the place of
// the one that it goes on from.
func (m *memory) remember(h *history, b *base, whole parts) {
	m.mu.Lock()
	defer m.mu.Unlock()
	old := h.base
	if old != nil && old.tip == b.tip {
		if len(whole.entries) >= len(old.parts.entries) {
			old.parts = whole
		}
		return
	}
	if n := len(whole.entries) - b.count; !plain(h.entries[len(h.entries)-n:]) {
		return // it was decided with what came later
	}
	b.memory, b.parts = m, whole
	m.bases = slices.DeleteFunc(m.bases, func(x *base) bool { return x == old || x.tip == b.tip })
	m.bases = append(m.bases, b)
	m.begun.Store(true)
	sum := 0
	for i, x := range slices.Backward(m.bases) {
		if sum += x.count; i < len(m.bases)-1 && (sum > keptEntries || len(m.bases)-i > keptBases) {
			m.bases = slices.Clone(m.bases[i+1:])
			break
		}
	}
}

// empty tells whether nothing is remembered.
func (m *memory) empty() bool { return m == nil || !m.begun.Load() }

// plain tells whether entries speak of nothing before them.
func plain(entries []Entry) bool {
	for i := range entries { // none is copied: its block may just be loaded
		if e := &entries[i]; e.Op != commit.Append || e.Kind == content.KindSystem {
			return false
		}
	}
	return true
}

// holds tells whether a base is still what it was when the history goes on so: with
// another turn, and nothing that speaks of what is before.
func (b *base) holds(h *history, o Options) bool {
	if len(h.entries) == 0 || !h.entries[0].beginsTurn() || !plain(h.entries) {
		return false
	}
	return o.Policy.Strip != priority.StripAllButLast || h.thought == b.thinking || h.thought > b.turns && b.thinking > b.turns
}

// behind is the entries of the newest prompt that goes on from a base.
func (b *base) behind() []Entry {
	b.memory.mu.Lock()
	defer b.memory.mu.Unlock()
	return b.parts.entries[b.count:]
}

// lend gives entries of the end of a history the blocks that they have in the prompt
// before, and lists the others. Both are in the order of the history.
func (b *base) lend(list []*Entry) (rest []*Entry) {
	have := b.behind()
	for _, e := range list {
		for len(have) > 0 && have[0].ID != e.ID {
			have = have[1:]
		}
		if e.Block == nil && len(have) > 0 && have[0].rare == nil {
			e.Block = have[0].Block
		}
		if e.Block == nil {
			rest = append(rest, e)
		}
	}
	return rest
}

// join puts the parts of the end of a history behind its base, and gives the parts
// of the whole. Where the last prompt goes on in the same way its memory is used.
func (b *base) join(end parts) parts {
	if b == nil {
		return end
	}
	b.memory.mu.Lock()
	defer b.memory.mu.Unlock()
	have := &b.parts
	entries := alike(len(have.entries)-b.count, len(end.entries), func(i int) bool {
		return sameEntry(&have.entries[b.count+i], &end.entries[i])
	})
	blocks := 0 // of the messages that are alike
	said := alike(len(have.messages)-b.said, len(end.messages), func(i int) bool {
		was, is := &have.messages[b.said+i], &end.messages[i]
		if was.Role != is.Role || len(was.Blocks) != len(is.Blocks) {
			return false
		}
		to := blocks + len(is.Blocks)
		for j := blocks; j < to; j++ {
			if place := end.said[j]; have.said[b.blocks+j] != place || int(place) >= b.count+entries {
				return false
			}
		}
		blocks = to
		return true
	})
	return parts{
		entries:  extend(&have.entries, b.count, end.entries, entries),
		messages: extend(&have.messages, b.said, end.messages, said),
		said:     extend(&have.said, b.blocks, end.said, blocks),
	}
}

// alike is how many elements two lists have alike from the beginning.
func alike(a, b int, same func(i int) bool) (n int) {
	for n < min(a, b) && same(n) {
		n++
	}
	return n
}

// extend gives the first n of a list and then more, of which so many are there
// already. What nobody has behind it is written to.
func extend[T any](list *[]T, n int, more []T, there int) []T {
	have, at := *list, n+there
	switch more = more[there:]; {
	case at == 0 && len(more) == 0:
		return nil
	case at == len(have):
	case len(more) == 0:
		return have[:at:at]
	default:
		return append(have[:at:at], more...)
	}
	*list = have[:at:at] // who comes next must not write there
	return append(have, more...)
}

// sameEntry compares what was decided about one commit.
func sameEntry(a, b *Entry) bool {
	return a.ID == b.ID && (a.Block == nil) == (b.Block == nil) && (a.Tombstone() == nil) == (b.Tombstone() == nil) && a.EditedBy() == b.EditedBy() && a.SummarizedBy() == b.SummarizedBy() &&
		a.Level == b.Level && a.Why() == b.Why() && a.Sent == b.Sent && a.Turn == b.Turn && a.Tokens == b.Tokens && a.message == b.message && a.place == b.place
}
